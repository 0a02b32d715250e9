public import Wormhole
package import WormholeSystem

/// The codes of coordinated accesses.
///
/// ```swift
/// do {
///   try FileCoordinator().coordinate(writingItemAt: file) { url in try Data().write(to: url) }
/// } catch let error as WormholeError where error.code == .conflict {
///   print(error, error.keptCopy ?? "")        // where the change is that was not published
/// }
/// ```
extension WormholeError.Code {
  /// The access was taken over from this process, because it was stopped or took longer than its
  /// term; nothing of its change is visible.
  public static let overtaken = Self("overtaken")
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
}

extension WormholeError {
  package static func timedOut(
    _ action: String, path: String, holder: LeaseHolder?, of thing: String = "the item",
    _ patience: String? = nil
  ) -> WormholeError {
    let holding = holder?.holding ?? "held by another process"
    let isOwn = holder?.processID == Program.processID
    return WormholeError(
      .timedOut, action, path: path,
      reason: "the deadline passed with \(thing) \(holding)" + (patience ?? ""),
      remedy: isOwn
        ? "that is this process: an accessor that coordinates its own item again waits for itself"
        : "try again, or with a later deadline",
      holder: holder)
  }

  package static func conflict(path: String) -> WormholeError {
    WormholeError(
      .conflict, "publish the item", path: path,
      reason: "it was changed since its copy was made, by an access of the same purpose or by a "
        + "program that does not coordinate; nothing of this change is visible",
      remedy: "read the item again and repeat the change")
  }

  /// Others changed entries of a directory since its copy was made.
  package static func conflict(path: String, entries: [String], areMore: Bool) -> WormholeError {
    let names = entries.joined(separator: ", ") + (areMore ? " and more" : "")
    return WormholeError(
      .conflict, "publish the directory", path: path,
      reason: "others changed \(names) in it since its copy was made; nothing of this change is "
        + "visible",
      remedy: "read the directory again and repeat the change, or change its entries one by one")
  }

  func keeping(copy: String) -> WormholeError {
    var error = self
    error.remedy =
      (remedy.map { $0 + "; " } ?? "") + "the copy that was to be published is \(copy)"
    error.keptCopy = copy
    return error
  }

  /// - Parameters:
  ///   - time: The time since it was taken over.
  ///   - cause: Why others could take it over, as a sentence.
  package static func overtaken(
    _ action: String, path: String, by holder: LeaseHolder?, ago time: Duration? = nil,
    because cause: String = "this process was stopped or took longer than its term"
  ) -> WormholeError {
    let who = holder.map { "\($0)," } ?? "a process that cannot be named any more"
    let when = time.map { " \($0.tenthsOfSeconds) s ago" } ?? ""
    let takeover = "\(who) took it over\(when), because \(cause)"
    return WormholeError(
      .overtaken, action, path: path, reason: "\(takeover); nothing of its change is visible",
      remedy: "read the item again and repeat the change", holder: holder, takeover: takeover)
  }

  /// An entry below the item stood in the way.
  package init(_ error: TreeError, _ action: String, path: String) {
    let entry = error.path.text.isEmpty ? "" : "\(error.path.text): "
    switch error.reason {
    case .refused(let errno):
      self = .refused(action, path: path, errno)
      reason = entry + reason
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

/// Runs a closure; an error of the kernel, or of a tree of files, becomes an error with a sentence.
package func reporting<Result>(
  _ action: String, path: @autoclosure () -> String, _ body: () throws -> Result
) throws -> Result {
  do {
    return try Wormhole.reporting(action, path: path(), body)
  } catch var error as WormholeError where error.code == .notAValue {
    // A link in the way of an item, which is no value.
    error.code = .inputOutput
    throw error
  } catch let error as TreeError {
    throw WormholeError(error, action, path: path())
  }
}
