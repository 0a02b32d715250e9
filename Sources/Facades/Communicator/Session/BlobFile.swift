internal import Foundation

/// The temporary file of a blob on its way: `TMPDIR/communicator-blob-UUID/blob`.
///
/// Each file has its own directory that only the user may enter, so two blobs never share a file.
/// The file stays until the session reports the end of the transfer, possibly in a later process.
/// So its path, not a table in memory, tells that it may be removed. A process that is killed
/// between writing the file and handing it over leaves it until TMPDIR is cleaned.
enum BlobFile {
  private static let prefix = "communicator-blob-"

  /// Writes the file; blocks as long as that takes.
  static func write(_ content: Data) throws -> URL {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
      prefix + UUID().uuidString, isDirectory: true)
    try FileManager.default.createDirectory(
      at: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    let file = directory.appendingPathComponent("blob", isDirectory: false)
    do {
      try content.write(to: file, options: .withoutOverwriting)
    } catch {
      remove(file)
      throw error
    }
    return file
  }

  /// Removes the file with its directory if it belongs to a blob; leaves any other file alone.
  static func remove(_ file: URL) {
    let directory = file.deletingLastPathComponent()
    guard directory.lastPathComponent.hasPrefix(prefix),
      directory.deletingLastPathComponent().standardizedFileURL.path
        == FileManager.default.temporaryDirectory.standardizedFileURL.path
    else { return }
    do {
      try FileManager.default.removeItem(at: directory)
    } catch {
      // The file is gone already, or the cleaning of TMPDIR will find it; nobody needs the error.
    }
  }
}
