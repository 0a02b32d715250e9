import Wormhole
import WormholeSystem

/// The copy of a received file on another file system, under a hidden name until it is complete.
///
/// It is locked as long as its maker lives; so the next one in the same directory removes those that killed
/// processes have left.
final class ClaimedCopy {
  let file: SharedDescriptor
  /// With a slash at its end.
  private let directory: String
  private let path: String

  private static let prefix = ".claimed-"

  init(in directory: String) throws(Errno) {
    self.directory = directory
    // The next receiver tries it again; nothing else depends on it.
    try? Self.removeLeftovers(in: directory)
    path = directory + Self.prefix + Nonce.next()
    file = SharedDescriptor(
      try FileDescriptor.open(path, [.readWrite, .create, .exclusive, .noFollow]))
    // Free, because nobody else locks a young one; some file systems have no locks.
    _ = try? file.descriptor.tryLock(.exclusive)
  }

  private static func removeLeftovers(in directory: String) throws(Errno) {
    let open = try FileDescriptor.open(directory, [.readOnly, .directory])
    for name in try open.entries().map(\.name) {
      guard name.hasPrefix(prefix), Nonce.isOne(name.text.dropFirst(prefix.count)) else { continue }
      // An error means that another receiver has removed it, or that this user may not; both are harmless.
      try? removeIfLeft(name, at: open.rawValue)
    }
  }

  private static func removeIfLeft(_ name: FileName, at directory: Int32) throws(Errno) {
    // Open for writing, or NFS grants no such lock (flock(2)).
    let left = try FileDescriptor.open(name, at: directory, [.readWrite, .noFollow, .nonBlocking])
    guard try left.status().modifiedSeconds < realTime().seconds - 60,
      try left.tryLock(.exclusive)
    else { return }
    try removeFile(name, at: directory)
  }

  // It has its final name, or the error that is being thrown names the problem.
  deinit { try? removeFile(path) }

  /// Copies the content, and goes back to its beginning.
  func fill(from source: borrowing FileDescriptor) throws {
    var copy = ContentCopy(check: {})
    try copy.copy(source, source.status(), to: file.descriptor)
    try file.descriptor.seek(to: 0)
  }

  /// Gives it its name, in one step, and returns when that is on the disk.
  func move(to destination: String, _ mode: RenameMode) throws(Errno) {
    try rename(path, at: Directory.current, to: destination, at: Directory.current, mode)
    try FileDescriptor.open(directory, [.readOnly, .directory]).synchronize()
  }
}
