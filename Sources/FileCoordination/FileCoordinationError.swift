public import AppGroup
import SystemCalls

/// Why a coordinated access could not be made, or was of no effect: what failed, on which file, why,
/// who is in the way, and what to do.
public struct FileCoordinationError: Error, Sendable {
  /// The kind of failure.
  public enum Code: String, Sendable, Hashable {
    /// The deadline passed while another process had access.
    case timedOut
    /// The access was taken away from this process, because it was stopped or took longer than its
    /// term; nothing of its change is visible.
    case overtaken
    /// `FileCoordinator.cancel()` was called while the access was waited for.
    case cancelled
    /// The item was changed since its copy was made, by an access of the same purpose; or, of a
    /// directory, both were changed in different ways. Nothing of the change is visible, and the copy
    /// is kept.
    case conflict
    /// The directory that the item is in does not exist.
    case directoryMissing
    /// What lies there can be neither copied nor published: a device, a socket, a mount point,
    /// or nothing in the file system at all: a URL of the web.
    case notAnItem
    /// The hidden directory beside the item belongs to somebody who is not trusted.
    case unsafe
    /// The disk, its inodes or the user's quota are used up.
    case noSpace
    /// The process or the machine has no descriptors left.
    case tooManyOpenFiles
    /// The user may not do that, or the file system is read-only.
    case permissionDenied
    /// Any other failure of the operating system.
    case inputOutput
  }

  /// The kind of failure.
  public let code: Code
  /// What was being done, as a verb with its object.
  public let action: String
  /// The file or directory it was done to.
  public let path: String
  /// Why it failed.
  public let reason: String
  /// What the user can do about it, if there is anything.
  public let remedy: String?
  /// The kernel's error number, if the kernel refused.
  public let errorNumber: Int32?
  /// The process in the way, or the one that took the access away.
  public let holder: LeaseHolder?
  /// With `conflict`, where the changed copy is, beside the item, until the program or its user removes
  /// it. Nil when there is none, or it could not be kept.
  public let keptCopy: String?

  init(
    _ code: Code, _ action: String, path: String, reason: String, remedy: String? = nil,
    errorNumber: Int32? = nil, holder: LeaseHolder? = nil, keptCopy: String? = nil
  ) {
    self.keptCopy = keptCopy
    self.code = code
    self.action = action
    self.path = path
    self.reason = reason
    self.remedy = remedy
    self.errorNumber = errorNumber
    self.holder = holder
  }
}

extension FileCoordinationError: CustomStringConvertible {
  /// One sentence: "cannot ACTION (PATH): REASON; REMEDY".
  public var description: String {
    "cannot \(action) (\(path)): \(reason)" + (remedy.map { "; \($0)" } ?? "")
  }
}

extension FileCoordinationError {
  /// The kernel refused a call.
  static func refused(_ action: String, path: String, _ error: Errno) -> FileCoordinationError {
    // The sentences for what the kernel refuses are the same as for a container's files.
    let told = AppGroupError.refused(action, path: path, error)
    return FileCoordinationError(
      Code(told.code), action, path: path, reason: told.reason, remedy: told.remedy,
      errorNumber: error.rawValue)
  }

  static func timedOut(
    _ action: String, path: String, holder: LeaseHolder?, has: String = "has access to it"
  ) -> FileCoordinationError {
    let who = holder.map { "\($0), \(has)" } ?? "another process \(has)"
    let isOwn = holder?.processID == Program.processID
    return FileCoordinationError(
      .timedOut, action, path: path, reason: "the deadline passed while \(who)",
      remedy: isOwn
        ? "that is this process: an accessor that coordinates its own item again waits for itself"
        : "try again, or with a later deadline",
      holder: holder)
  }

  static func conflict(path: String) -> FileCoordinationError {
    FileCoordinationError(
      .conflict, "publish the item", path: path,
      reason: "it was changed since its copy was made, by an access of the same purpose or by a "
        + "program that does not coordinate; nothing of this change is visible",
      remedy: "read the item again and repeat the change")
  }

  /// The same, with the place of the copy.
  func keeping(copy: String) -> FileCoordinationError {
    FileCoordinationError(
      code, action, path: path, reason: reason,
      remedy: (remedy.map { $0 + "; " } ?? "") + "the copy that was to be published is \(copy)",
      errorNumber: errorNumber, holder: holder, keptCopy: copy)
  }

  static func overtaken(
    _ action: String, path: String, by holder: LeaseHolder?
  ) -> FileCoordinationError {
    let who = holder.map { "by \($0)" } ?? "by a process that cannot be told any more"
    return FileCoordinationError(
      .overtaken, action, path: path,
      reason: "the access was taken away \(who), because this process was stopped or took longer "
        + "than its term; nothing of its change is visible",
      remedy: "read the item again and repeat the change", holder: holder)
  }
}

extension FileCoordinationError.Code {
  init(_ code: AppGroupError.Code) {
    self =
      switch code {
      case .noSpace: .noSpace
      case .tooManyOpenFiles: .tooManyOpenFiles
      case .permissionDenied: .permissionDenied
      case .timedOut: .timedOut
      case .leaseLost: .overtaken
      default: .inputOutput
      }
  }
}

/// Runs a piece of work; what the kernel refuses in it becomes an error with a sentence.
func reporting<Result>(
  _ action: String, path: @autoclosure () -> String, _ body: () throws -> Result
) throws -> Result {
  do {
    return try body()
  } catch let error as Errno {
    throw FileCoordinationError.refused(action, path: path(), error)
  } catch let error as AppGroupError {
    throw FileCoordinationError(
      FileCoordinationError.Code(error.code), action, path: path(), reason: error.reason,
      remedy: error.remedy, errorNumber: error.errorNumber, holder: error.holder)
  } catch let error as TreeError {
    throw FileCoordinationError(error, action, path: path())
  }
}

extension FileCoordinationError {
  /// Something below the item stood in the way.
  init(_ error: TreeError, _ action: String, path: String) {
    let entry = error.path.text.isEmpty ? "" : "\(error.path.text): "
    switch error.reason {
    case .refused(let errno):
      let told = FileCoordinationError.refused(action, path: path, errno)
      self.init(
        told.code, action, path: path, reason: entry + told.reason, remedy: told.remedy,
        errorNumber: errno.rawValue)
    case .unsupported(let kind):
      self.init(
        .notAnItem, action, path: path, reason: "\(entry)a \(kind) cannot be copied",
        remedy: "move it elsewhere")
    case .mountPoint:
      self.init(
        .notAnItem, action, path: path, reason: "\(entry)another file system is mounted on it",
        remedy: "unmount it first")
    }
  }
}
