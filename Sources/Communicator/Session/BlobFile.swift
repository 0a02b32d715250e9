internal import Foundation

/// The temporary file of a blob on its way: `TMPDIR/communicator-blob-UUID/blob`.
///
/// Each has a directory of its own that only the user may enter, so two blobs never share a file. It is
/// there until the session says that the transfer has ended, which may be in a later process: that is
/// why its place, not a table in memory, says that it may be removed. A process that is killed between
/// writing the file and handing it over leaves it to the system's cleaning of TMPDIR.
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

  /// Removes the file with its directory if it is a blob's; leaves any other alone.
  static func remove(_ file: URL) {
    let directory = file.deletingLastPathComponent()
    guard directory.lastPathComponent.hasPrefix(prefix),
      directory.deletingLastPathComponent().standardizedFileURL.path
        == FileManager.default.temporaryDirectory.standardizedFileURL.path
    else { return }
    do {
      try FileManager.default.removeItem(at: directory)
    } catch {
      // It is gone already, or TMPDIR's cleaning will find it: there is nobody to tell.
    }
  }
}
