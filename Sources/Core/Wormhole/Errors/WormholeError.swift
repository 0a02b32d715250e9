package import WormholeSystem

/// An action has failed: in a container, between peers, at a coordinated file, or with defaults.
///
/// It says what failed, on which file, why, which process is in the way, and what to do. All
/// modules throw it, and each adds its own codes.
///
/// ```swift
/// do {
///   try await container.value("seats").update(until: .now + .seconds(1)) { $0 = [7] }
/// } catch let error as WormholeError where error.code == .timedOut {
///   print("later, please: \(error.holder?.description ?? "somebody") has the seats")
/// }
/// ```
public struct WormholeError: Error, Sendable {
  /// The kind of failure, for programs.
  ///
  /// It is a structure, so a module adds further kinds in an extension. A `catch` can name one:
  ///
  /// ```swift
  /// do {
  ///   try await container.value("seats").update(until: .now) { $0 = [7] }
  /// } catch WormholeError.Code.timedOut {
  ///   print("later, please")
  /// }
  /// ```
  public struct Code: ErrorCode {
    /// Its name.
    public let rawValue: String
    /// Creates a code from its name.
    public init(rawValue: String) { self.rawValue = rawValue }
  }

  /// The kind of failure, for programs.
  public package(set) var code: Code
  /// The attempted action, as a verb with its object: "read value \"tickets\"".
  public package(set) var action: String
  /// The file or directory of the action; empty if there is none.
  public package(set) var path: String
  /// The reason for the failure.
  public package(set) var reason: String
  /// What the user can do about it, if anything.
  public package(set) var remedy: String?
  /// The kernel's error number, if a system call failed.
  public let errorNumber: Int32?
  /// The process in the way, or the process that took over.
  public let holder: LeaseHolder?
  /// The other peer, for an action between peers.
  public package(set) var peer: String?
  /// The path of the changed copy that a coordinated access could not publish. It stays beside the
  /// item until the program or its user removes it. Nil if there is no copy, or it was not kept.
  public package(set) var keptCopy: String?
  /// Which process took a coordinated access over, when and why, as a sentence.
  package let takeover: String?

  package init(
    _ code: Code, _ action: String, path: String = "", peer: String? = nil, reason: String,
    remedy: String? = nil, errorNumber: Int32? = nil, holder: LeaseHolder? = nil,
    takeover: String? = nil
  ) {
    self.code = code
    self.action = action
    self.path = path
    self.peer = peer
    self.reason = reason
    self.remedy = remedy
    self.errorNumber = errorNumber
    self.holder = holder
    self.takeover = takeover
  }
}

extension WormholeError: CustomStringConvertible {
  /// One sentence: "cannot ACTION (PATH): REASON; REMEDY".
  public var description: String {
    "cannot \(action)\(place): \(reason)" + (remedy.map { "; \($0)" } ?? "")
  }

  /// The path, to follow a text.
  package var place: String { path.isEmpty ? "" : " (\(path))" }
}

extension WormholeError: Encodable {
  /// Encodes the sentence.
  public func encode(to encoder: any Encoder) throws { try description.encode(to: encoder) }
}

// Generic: with that type itself, `case .noSpace` would compare another type's error with a code.
extension ErrorCode {
  /// Lets a `catch` name a `WormholeError.Code`.
  ///
  /// - Parameters:
  ///   - code: The code after `catch`.
  ///   - error: The error that was thrown.
  public static func ~= (code: Self, error: any Error) -> Bool {
    (error as? WormholeError)?.code as? Self == code
  }
}

extension WormholeError.Code {
  /// There is no container at that location.
  public static let containerMissing = Self("containerMissing")
  /// The container's owner or mode would let other users in, or it is not a directory.
  public static let containerUnsafe = Self("containerUnsafe")
  /// The container was written by a newer version of this package.
  public static let formatTooNew = Self("formatTooNew")
  /// The entry at the place of a value's file is not a regular file of this user.
  public static let notAValue = Self("notAValue")
  /// The bytes are not a property list, or a hostile one; or the content is not what is expected
  /// there: not a dictionary of defaults, or different from the content that a peer sent.
  public static let damaged = Self("damaged")
  /// The content is larger than the limit, or a value larger than a peer would accept.
  public static let tooLarge = Self("tooLarge")
  /// The value cannot be represented as a property list, is too large for any reader of defaults,
  /// or does not suit the action; or the name is not valid for a peer.
  public static let unsupportedValue = Self("unsupportedValue")
  /// Another process took over the lease while this process held it; no part of this process's
  /// change is visible.
  public static let leaseLost = Self("leaseLost")
  /// The deadline passed: another process, which `holder` names if it is known, had the lease, the
  /// role or the item, or no answer came in time. A peer may nevertheless have handled a request.
  public static let timedOut = Self("timedOut")
  /// The call, its task or its coordinator was cancelled.
  public static let cancelled = Self("cancelled")
  /// The queue, or a peer's mailbox, holds as many entries, or bytes, as its sender allows.
  public static let queueFull = Self("queueFull")
  /// The disk, its inodes or the user's quota are used up.
  public static let noSpace = Self("noSpace")
  /// The process or the machine has no descriptors left.
  public static let tooManyOpenFiles = Self("tooManyOpenFiles")
  /// The user lacks permission, or the file system is read-only.
  public static let permissionDenied = Self("permissionDenied")
  /// Two identifiers have the same long name; see `OnDiskFormat`.
  public static let nameCollision = Self("nameCollision")
  /// The registration was cancelled.
  public static let invalidToken = Self("invalidToken")
  /// No member of the etcd cluster answered in time; nothing was done.
  public static let clusterUnreachable = Self("clusterUnreachable")
  /// The etcd cluster's answer was lost: the change was made, or will be a little later, or not.
  public static let outcomeUnknown = Self("outcomeUnknown")
  /// The container's engine does not support this (see "Beyond one machine"), or no engine of this
  /// program understands the container's location.
  public static let notSupported = Self("notSupported")
  /// Any other failure of the operating system.
  public static let inputOutput = Self("inputOutput")
}

extension WormholeError {
  /// Whether the reason may pass without an event: a lack of descriptors, or an error of the disk.
  package var mayPass: Bool { [.tooManyOpenFiles, .inputOutput].contains(code) }

  package static func refused(_ action: String, path: String, _ error: Errno) -> WormholeError {
    let (code, remedy) = advice(for: error)
    return WormholeError(
      code, action, path: path, reason: error.description.lowercasedFirst, remedy: remedy,
      errorNumber: error.rawValue)
  }

  private static func advice(for error: Errno) -> (Code, String?) {
    switch error {
    case .noSpace:
      return (.noSpace, "free space (df) or inodes (df -i) on that file system")
    case .diskQuotaExceeded:
      return (.noSpace, "remove some of your files there, or raise the quota (quota -s)")
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

/// An error of an engine, which becomes an error with a sentence.
package protocol EngineError: Error {
  /// Returns the error of a call that has failed because of this one.
  func reported(_ action: String, path: String) -> WormholeError
}

/// Runs a closure and turns an error of the kernel or of an engine into an error with a sentence.
package func reporting<Result: ~Copyable>(
  _ action: @autoclosure () -> String, path: @autoclosure () -> String, _ body: () throws -> Result
) throws -> Result {
  do {
    return try body()
  } catch let error as Errno {
    throw WormholeError.refused(action(), path: path(), error)
  } catch let error as any EngineError {
    throw error.reported(action(), path: path())
  }
}

extension ThreadShortage: EngineError {
  package func reported(_ action: String, path: String) -> WormholeError {
    WormholeError(
      .inputOutput, action, path: path, reason: reason, remedy: remedy,
      errorNumber: error.rawValue)
  }
}

extension String {
  // "No such file or directory" reads better without its capital in the middle of a sentence.
  fileprivate var lowercasedFirst: String { prefix(1).lowercased() + dropFirst() }
}
