import WormholeEtcd
package import WormholeSystem

/// An action in a container has failed.
///
/// ```swift
/// do {
///   try await container.value("seats").update(until: .now + .seconds(1)) { $0 = [7] }
/// } catch let error as AppGroupError where error.code == .timedOut {
///   print("later, please: \(error.holder?.description ?? "somebody") has the seats")
/// }
/// ```
public struct AppGroupError: DescribedError {
  /// The kind of failure, for programs.
  ///
  /// ```swift
  /// let retried: Set<AppGroupError.Code> = [.timedOut, .leaseLost]     // worth a second try
  /// print(retried.map(\.rawValue))
  /// ```
  #if hasAttribute(nonexhaustive)
    @nonexhaustive
  #endif
  public enum Code: String, Sendable, Hashable {
    /// There is no container at that place.
    case containerMissing
    /// The container's owner or mode would let others in, or it is not a directory.
    case containerUnsafe
    /// The container was written by a newer version of this package.
    case formatTooNew
    /// The container was written by a version of this package from before its first release.
    case formatTooOld
    /// The entry in a value's place is not a regular file of this user.
    case notAValue
    /// The bytes are not a property list, or a hostile one.
    case damaged
    /// The content is larger than the limit.
    case tooLarge
    /// The value cannot be represented as a property list.
    case unsupportedValue
    /// Another process took over the lease while this process held it; nothing of this process's
    /// change is visible.
    case leaseLost
    /// The deadline passed while another process held the lease.
    case timedOut
    /// The queue holds as many entries, or bytes, as its sender allows.
    case queueFull
    /// The disk, its inodes or the user's quota are used up.
    case noSpace
    /// The process or the machine has no descriptors left.
    case tooManyOpenFiles
    /// The user lacks the permission.
    case permissionDenied
    /// Two identifiers have the same long name; see `OnDiskFormat`.
    case nameCollision
    /// The registration was cancelled.
    case invalidToken
    /// No member of the etcd cluster answered in time; nothing was done.
    case unreachable
    /// The answer of the etcd cluster was lost: the change was made, or will be a little later, or not.
    case outcomeUnknown
    /// The container's engine cannot do that; see "Beyond one machine".
    case notSupported
    /// Any other failure of the operating system.
    case inputOutput
  }

  /// The kind of failure.
  public let code: Code
  /// The parts of the sentence.
  public let failure: FailureDescription

  package init(
    _ code: Code, _ action: String, path: String, reason: String, remedy: String? = nil,
    errorNumber: Int32? = nil, holder: LeaseHolder? = nil
  ) {
    self.code = code
    failure = FailureDescription(
      action, path: path, reason: reason, remedy: remedy, errorNumber: errorNumber, holder: holder)
  }
}

extension AppGroupError {
  /// Creates the error for a call that the kernel refused.
  package static func refused(_ action: String, path: String, _ error: Errno) -> AppGroupError {
    let (code, remedy) = advice(for: error)
    return AppGroupError(
      code, action, path: path, reason: error.description.lowercasedFirst, remedy: remedy,
      errorNumber: error.rawValue)
  }

  private static func advice(for error: Errno) -> (Code, String?) {
    switch error {
    case .noSpace:
      return (.noSpace, "free space (df) or inodes (df -i) on that file system")
    case .diskQuotaExceeded:
      return (.noSpace, "remove files of yours on that file system, or raise the quota (quota -s)")
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
    case .unsupported:
      return (.inputOutput, "keep the container on a file system that can do it; see Limits")
    default:
      return (.inputOutput, nil)
    }
  }
}

/// Runs a closure and turns an error of the kernel or of etcd into an error with a sentence.
package func reporting<Result: ~Copyable>(
  _ action: @autoclosure () -> String, path: @autoclosure () -> String, _ body: () throws -> Result
) throws -> Result {
  do {
    return try body()
  } catch let error as Errno {
    throw AppGroupError.refused(action(), path: path(), error)
  } catch let error as EtcdError {
    throw AppGroupError.refused(action(), path: path(), error)
  }
}

extension String {
  // "No such file or directory" reads better without its capital in the middle of a sentence.
  fileprivate var lowercasedFirst: String { prefix(1).lowercased() + dropFirst() }
}
