import Foundation

/// The temporary file of a message on its way: `TMPDIR/mmwormhole-message-UUID/message`.
///
/// The file stays until the session reports the end of the transfer, possibly in a later process.
/// So its path, not a table in memory, tells that it may be removed. A process that is killed
/// between writing the file and handing it over leaves it until TMPDIR is cleaned.
enum MessageFile {
  /// The key of the message's identifier in the transfer's metadata.
  static let identifierKey = "identifier"
  private static let prefix = "mmwormhole-message-"

  /// Writes the file, in a directory that only the user may enter.
  static func write(_ content: Data) throws -> URL {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
      prefix + UUID().uuidString, isDirectory: true)
    try FileManager.default.createDirectory(
      at: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    let file = directory.appendingPathComponent("message", isDirectory: false)
    do {
      try content.write(to: file, options: .withoutOverwriting)
    } catch {
      remove(file)
      throw error
    }
    return file
  }

  /// Removes the file with its directory if it belongs to a message; leaves any other file alone.
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
