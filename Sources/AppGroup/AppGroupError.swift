package import SystemCalls

/// Why something in a container could not be done: what failed, on which file, why, who is in the
/// way, and what to do.
public struct AppGroupError: Error, Sendable {
  /// The kind of failure, for programs.
  public enum Code: String, Sendable, Hashable {
    /// There is no container at that place.
    case containerMissing
    /// The container's owner or mode would let others in, or it is not a directory.
    case containerUnsafe
    /// The container was written by a newer version of this package.
    case formatTooNew
    /// The container was written by a version of this package from before its first release.
    case formatTooOld
    /// What lies where a value should be is not a regular file of this user.
    case notAValue
    /// The bytes are no property list, or a hostile one.
    case damaged
    /// The content is larger than the limit.
    case tooLarge
    /// The value to be written cannot be a property list.
    case unsupportedValue
    /// The lease was taken away from this process while it held it; nothing of its change is visible.
    case leaseLost
    /// The deadline passed while another process held the lease.
    case timedOut
    /// As many entries wait in the queue, or as many bytes, as its sender allows.
    case queueFull
    /// The disk, its inodes or the user's quota are used up.
    case noSpace
    /// The process or the machine has no descriptors left.
    case tooManyOpenFiles
    /// The user may not do that.
    case permissionDenied
    /// Two identifiers have the same long name; see `OnDiskFormat`.
    case nameCollision
    /// The registration was cancelled.
    case invalidToken
    /// Any other failure of the operating system.
    case inputOutput
  }

  /// The kind of failure.
  public let code: Code
  /// What was being done, as a verb with its object: "read value \"tickets\"".
  public let action: String
  /// The file or directory it was done to.
  public let path: String
  /// Why it failed.
  public let reason: String
  /// What the user can do about it, if there is anything.
  public let remedy: String?
  /// The kernel's error number, if the kernel refused.
  public let errorNumber: Int32?
  /// The process in the way, or the one that took the lease away.
  public let holder: LeaseHolder?

  init(
    _ code: Code, _ action: String, path: String, reason: String, remedy: String? = nil,
    errorNumber: Int32? = nil, holder: LeaseHolder? = nil
  ) {
    self.code = code
    self.action = action
    self.path = path
    self.reason = reason
    self.remedy = remedy
    self.errorNumber = errorNumber
    self.holder = holder
  }
}

extension AppGroupError: CustomStringConvertible {
  /// One sentence: "cannot ACTION (PATH): REASON; REMEDY".
  public var description: String {
    let place = path.isEmpty ? "" : " (\(path))"
    let advice = remedy.map { "; \($0)" } ?? ""
    return "cannot \(action)\(place): \(reason)\(advice)"
  }
}

extension AppGroupError {
  /// The kernel refused a call.
  package static func refused(_ action: String, path: String, _ error: Errno) -> AppGroupError {
    let (code, remedy) = advice(for: error)
    return AppGroupError(
      code, action, path: path, reason: error.description.lowercasedFirst, remedy: remedy,
      errorNumber: error.rawValue)
  }

  private static func advice(for error: Errno) -> (Code, String?) {
    switch error {
    case .noSpace, .diskQuotaExceeded:
      return (.noSpace, "free space (df) or inodes (df -i) on that file system")
    case .tooManyOpenFiles:
      return (.tooManyOpenFiles, "raise the process's limit (ulimit -n) or close files")
    case .tooManyOpenFilesInSystem:
      return (.tooManyOpenFiles, "the machine's limit is in /proc/sys/fs/file-max")
    case .accessDenied, .notPermitted:
      return (.permissionDenied, "look at its owner and mode (ls -ld)")
    case .readOnlyFileSystem:
      return (.permissionDenied, "the file system is mounted read-only")
    case .fileTooLarge:
      return (.tooLarge, "the process's file size limit is in the way (ulimit -f)")
    case .tooManyLinks:
      return (.notAValue, "a symbolic link is in the way; remove it")
    default:
      return (.inputOutput, nil)
    }
  }
}

/// Runs a piece of work; what the kernel refuses in it becomes an error with a sentence.
func reporting<Result: ~Copyable>(
  _ action: @autoclosure () -> String, path: @autoclosure () -> String, _ body: () throws -> Result
) throws -> Result {
  do {
    return try body()
  } catch let error as Errno {
    throw AppGroupError.refused(action(), path: path(), error)
  }
}

extension String {
  // "No such file or directory" reads better in the middle of a sentence without its capital.
  fileprivate var lowercasedFirst: String { prefix(1).lowercased() + dropFirst() }
}
