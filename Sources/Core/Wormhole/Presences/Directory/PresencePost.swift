import WormholePropertyLists
import WormholeSystem

/// The file of one registration, open for writing and locked; the registration lives as long as
/// this object.
final class PresencePost: Sendable {
  private let file: FileDescriptor
  private let status: FileStatus

  private init(_ file: consuming FileDescriptor) throws(Errno) {
    status = try file.status()
    self.file = file
  }

  /// Returns whether a path inside still names this file.
  func isNamed(_ path: String, at directory: Int32) throws(Errno) -> Bool {
    try ifPresent(fileStatus(path, at: directory).isSameFile(as: status)) ?? false
  }

  /// Ends the registration for all processes. Closing the file would not, as long as a child that is
  /// being started shares the lock.
  func unlock() throws(Errno) { try file.unlock() }

  private var isRemoved: Bool {
    get throws(Errno) { try file.status().links == 0 }
  }

  /// Creates, locks and writes `entering-<id>.plist`.
  ///
  /// - Parameter place: The named directory.
  static func stage(
    _ record: PresenceRecord, at place: borrowing FileDescriptor, in root: ContainerRoot
  ) throws -> PresencePost {
    let name = PresenceDirectory.enteringName(record.id)
    var record = record
    record.directory = try place.status().inode
    let bytes = try record.bytes()
    for _ in 0..<renameRaceLimit {
      let made: FileDescriptor
      do throws(Errno) {
        made = try root.access.createFile(name, at: place.rawValue)
      } catch {
        guard error == .alreadyExists else { throw error }
        // Our own file from a failed attempt, or a copy of it.
        try removeIfPresent(name, at: place.rawValue)
        continue
      }
      // A sweeper that has the lock now removes the file, or has removed it: create another one.
      guard try made.tryLock(.exclusive) else {
        try removeIfPresent(name, at: place.rawValue)
        continue
      }
      let post = try PresencePost(made)
      guard try !post.isRemoved else { continue }
      do throws(Errno) {
        try post.file.writeAll(bytes)
      } catch {
        // Otherwise it is swept as soon as it is unlocked, which is now.
        _ = try? removeIfPresent(name, at: place.rawValue)
        throw error
      }
      return post
    }
    throw Errno.deviceBusy
  }
}
