import Synchronization
package import SystemCalls

/// The container's directory, held open and checked.
///
/// Everything inside is opened relative to this descriptor, so that nothing on the way can be
/// swapped for a link. Once a second at most an operation looks whether the path still names the
/// same directory, and opens the new one if somebody replaced it.
package final class ContainerRoot: Sendable {
  /// One directory, open.
  final class Handle: Sendable {
    let descriptor: FileDescriptor
    let status: FileStatus
    let synchronizedNames = SynchronizedNames()

    init(descriptor: consuming FileDescriptor, status: FileStatus) {
      self.descriptor = descriptor
      self.status = status
    }
  }

  let path: String
  let access: ContainerAccess
  private let state: Mutex<(handle: Handle, checked: ContinuousClock.Instant)>
  private static let recheck: Duration = .seconds(1)
  /// Whether the file system was seen to keep a file's time to the nanosecond.
  let keepsNanoseconds = Atomic(false)
  /// What this process published a moment ago.
  let followUps = FollowUps()

  init(path: String, access: ContainerAccess) throws {
    self.path = path
    self.access = access
    state = Mutex((try Self.open(path, access), ContinuousClock.now))
  }

  private static func open(_ path: String, _ access: ContainerAccess) throws -> Handle {
    let action = "open the container"
    do {
      let named = try fileStatus(path)
      guard named.kind == .directory else {
        throw AppGroupError(
          .containerUnsafe, action, path: path,
          reason: named.kind == .symbolicLink ? "it is a symbolic link" : "it is not a directory",
          remedy: "name the directory itself")
      }
      let descriptor = try FileDescriptor.open(path, [.readOnly, .directory, .noFollow])
      let status = try descriptor.status()
      try access.check(status, path: path) {
        do throws(Errno) {
          return try ContainerFormat.isPresent(at: descriptor.rawValue)
        } catch {
          // Whatever it is, nobody here can use it.
          return false
        }
      }
      return Handle(descriptor: descriptor, status: status)
    } catch let error as Errno {
      guard error == .noSuchFile || error == .notDirectory else {
        throw AppGroupError.refused(action, path: path, error)
      }
      throw AppGroupError(
        .containerMissing, action, path: path, reason: "there is no such directory",
        remedy: "mkdir -m 0700 '\(path)'", errorNumber: error.rawValue)
    }
  }

  /// The directory that the path names (as of at most a second ago).
  func handle() throws -> Handle {
    let now = ContinuousClock.now
    let (handle, checked) = state.withLock { ($0.handle, $0.checked) }
    if now - checked < Self.recheck { return handle }
    return try refreshed(handle, now: now)
  }

  /// Opens the directory anew if the path names another one than before, without waiting a second:
  /// for callers that found theirs removed.
  func refreshed(
    _ old: Handle, now: ContinuousClock.Instant = .now
  ) throws -> Handle {
    var current: FileStatus?
    do throws(Errno) {
      current = try fileStatus(path)
    } catch {
      // Opening below tells what is wrong with the path.
      current = nil
    }
    let handle: Handle
    if let current, current.isSameFile(as: old.status),
      current.permissions == old.status.permissions,
      current.owner == old.status.owner
    {
      handle = old
    } else {
      handle = try Self.open(path, access)
      keepsNanoseconds.store(false, ordering: .relaxed)
    }
    state.withLock { $0 = (handle, now) }
    return handle
  }

  /// Makes a directory inside with the container's mode; one that is there already is fine.
  package func makeDirectoryIfMissing(
    _ path: String, at directory: Int32, staging: String? = nil
  ) throws(Errno) {
    try access.makeDirectoryIfMissing(path, at: directory, staging: staging)
  }

  /// Makes a file inside with the container's mode, for writing; fails if the name is taken.
  package func createFile(_ path: String, at directory: Int32) throws(Errno) -> FileDescriptor {
    try access.createFile(path, at: directory)
  }
}
