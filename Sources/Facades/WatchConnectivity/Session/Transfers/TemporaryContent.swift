import Foundation

/// The temporary files of content transferred as a file: `TMPDIR/wormhole-content-KIND-UUID/KIND`.
///
/// Each file has its own directory that only the user may enter, so two contents never share one.
/// The file stays until the session reports the end of the transfer, possibly in a later process;
/// its path, not a table in memory, therefore shows that it may be removed. A process that is
/// killed between writing the file and handing it over leaves it until TMPDIR is cleaned.
package struct TemporaryContent: Sendable {
  private let kind: String

  private static let common = "wormhole-content-"

  package init(kind: String) { self.kind = kind }

  /// Writes a file; blocks as long as that takes.
  package func write(_ content: Data) throws -> URL {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
      "\(Self.common)\(kind)-\(UUID().uuidString)", isDirectory: true)
    try FileManager.default.createDirectory(
      at: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    let file = directory.appendingPathComponent(kind, isDirectory: false)
    do {
      try content.write(to: file, options: .withoutOverwriting)
    } catch {
      Self.remove(file)
      throw error
    }
    return file
  }

  /// Removes one of these files with its directory; leaves any other file alone.
  package static func remove(_ file: URL) {
    let directory = file.deletingLastPathComponent()
    guard directory.lastPathComponent.hasPrefix(common),
      directory.deletingLastPathComponent().standardizedFileURL.path
        == FileManager.default.temporaryDirectory.standardizedFileURL.path
    else { return }
    // The file is gone, or cleaning TMPDIR will remove it; no caller needs the error.
    try? FileManager.default.removeItem(at: directory)
  }
}
