public import Wormhole
package import WormholeSystem

/// A coordinated access has failed, or had no effect.
///
/// ```swift
/// do {
///   try FileCoordinator().coordinate(writingItemAt: file) { url in try Data().write(to: url) }
/// } catch let error as FileCoordinationError where error.code == .conflict {
///   print(error, error.keptCopy ?? "")        // where the change is that was not published
/// }
/// ```
public struct FileCoordinationError: DescribedError {
  /// The kind of failure.
  ///
  /// ```swift
  /// do {
  ///   try FileCoordinator().coordinate(readingItemAt: file) { url in print(url) }
  /// } catch let error as FileCoordinationError where error.code == .timedOut {
  ///   print(error.holder?.description ?? "somebody", "is in the way")
  /// }
  /// ```
  public struct Code: ErrorCode {
    /// Its name.
    public let rawValue: String
    /// Creates a code from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The deadline passed while another process had access.
    public static let timedOut = Self("timedOut")
    /// The access was taken over from this process, because it was stopped or took longer than its
    /// term; nothing of its change is visible.
    public static let overtaken = Self("overtaken")
    /// `FileCoordinator.cancel()` was called while the access was waiting.
    public static let cancelled = Self("cancelled")
    /// The item was changed since its copy was made: a file by an access of the same purpose, a
    /// directory by any change of an entry. Nothing of the access is visible, and its copy is kept.
    public static let conflict = Self("conflict")
    /// The directory of the item does not exist.
    public static let directoryMissing = Self("directoryMissing")
    /// The item can be neither copied nor published: it is a device, a socket, a mount point, or
    /// not in the file system, such as a web URL.
    public static let notAnItem = Self("notAnItem")
    /// The hidden directory beside the item belongs to an untrusted user.
    public static let unsafe = Self("unsafe")
    /// The disk, its inodes or the user's quota are used up.
    public static let noSpace = Self("noSpace")
    /// The process or the machine has no descriptors left.
    public static let tooManyOpenFiles = Self("tooManyOpenFiles")
    /// The user lacks permission, or the file system is read-only.
    public static let permissionDenied = Self("permissionDenied")
    /// Any other failure of the operating system.
    public static let inputOutput = Self("inputOutput")
  }

  /// The kind of failure.
  public let code: Code
  /// The parts of the sentence.
  public let failure: FailureDescription
  /// With `conflict` and `timedOut`, the path of the changed copy, which stays beside the item
  /// until the program or its user removes it. Nil if there is no copy, or it could not be kept.
  public let keptCopy: String?

  /// With `overtaken`, which process took the access over, when and why, as a sentence.
  package let takeover: String?

  package init(
    _ code: Code, _ action: String, path: String, reason: String, remedy: String? = nil,
    errorNumber: Int32? = nil, holder: LeaseHolder? = nil, takeover: String? = nil
  ) {
    self.init(
      code,
      FailureDescription(
        action, path: path, reason: reason, remedy: remedy, errorNumber: errorNumber, holder: holder
      ),
      takeover: takeover)
  }

  init(
    _ code: Code, _ failure: FailureDescription, keptCopy: String? = nil, takeover: String? = nil
  ) {
    self.code = code
    self.failure = failure
    self.keptCopy = keptCopy
    self.takeover = takeover
  }
}

extension FileCoordinationError {
  package static func refused(_ action: String, path: String, _ error: Errno)
    -> FileCoordinationError
  {
    // The sentences for refused calls are the same as for a container's files.
    let refusal = AppGroupError.refused(action, path: path, error)
    return FileCoordinationError(Code(refusal.code), refusal.failure)
  }

  package static func timedOut(
    _ action: String, path: String, holder: LeaseHolder?, of thing: String = "the item",
    _ patience: String? = nil
  ) -> FileCoordinationError {
    let holding = holder?.holding ?? "held by another process"
    let isOwn = holder?.processID == Program.processID
    return FileCoordinationError(
      .timedOut, action, path: path,
      reason: "the deadline passed with \(thing) \(holding)" + (patience ?? ""),
      remedy: isOwn
        ? "that is this process: an accessor that coordinates its own item again waits for itself"
        : "try again, or with a later deadline",
      holder: holder)
  }

  package static func conflict(path: String) -> FileCoordinationError {
    FileCoordinationError(
      .conflict, "publish the item", path: path,
      reason: "it was changed since its copy was made, by an access of the same purpose or by a "
        + "program that does not coordinate; nothing of this change is visible",
      remedy: "read the item again and repeat the change")
  }

  /// Others changed entries of a directory since its copy was made.
  package static func conflict(path: String, entries: [String], areMore: Bool)
    -> FileCoordinationError
  {
    let names = entries.joined(separator: ", ") + (areMore ? " and more" : "")
    return FileCoordinationError(
      .conflict, "publish the directory", path: path,
      reason: "others changed \(names) in it since its copy was made; nothing of this change is "
        + "visible",
      remedy: "read the directory again and repeat the change, or change its entries one by one")
  }

  func keeping(copy: String) -> FileCoordinationError {
    var failure = failure
    failure.remedy =
      (remedy.map { $0 + "; " } ?? "") + "the copy that was to be published is \(copy)"
    return FileCoordinationError(code, failure, keptCopy: copy)
  }

  /// - Parameters:
  ///   - time: The time since it was taken over.
  ///   - cause: Why others could take it over, as a sentence.
  package static func overtaken(
    _ action: String, path: String, by holder: LeaseHolder?, ago time: Duration? = nil,
    because cause: String = "this process was stopped or took longer than its term"
  ) -> FileCoordinationError {
    let who = holder.map { "\($0)," } ?? "a process that cannot be named any more"
    let when = time.map { " \($0.tenthsOfSeconds) s ago" } ?? ""
    let takeover = "\(who) took it over\(when), because \(cause)"
    return FileCoordinationError(
      .overtaken, action, path: path, reason: "\(takeover); nothing of its change is visible",
      remedy: "read the item again and repeat the change", holder: holder, takeover: takeover)
  }

  /// An entry below the item stood in the way.
  package init(_ error: TreeError, _ action: String, path: String) {
    let entry = error.path.text.isEmpty ? "" : "\(error.path.text): "
    switch error.reason {
    case .refused(let errno):
      let refusal = FileCoordinationError.refused(action, path: path, errno)
      var failure = refusal.failure
      failure.reason = entry + refusal.reason
      self.init(refusal.code, failure)
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

extension FileCoordinationError.Code {
  package init(_ code: AppGroupError.Code) {
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

/// Runs a closure; an error of the kernel becomes an error with a sentence.
package func reporting<Result>(
  _ action: String, path: @autoclosure () -> String, _ body: () throws -> Result
) throws -> Result {
  do {
    return try body()
  } catch let error as Errno {
    throw FileCoordinationError.refused(action, path: path(), error)
  } catch let error as AppGroupError {
    var failure = error.failure
    failure.action = action
    failure.path = path()
    throw FileCoordinationError(FileCoordinationError.Code(error.code), failure)
  } catch let error as TreeError {
    throw FileCoordinationError(error, action, path: path())
  }
}
