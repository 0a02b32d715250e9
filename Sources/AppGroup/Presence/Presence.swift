public import PropertyLists
import SystemCalls

/// Who is here under a name: exactly, without heartbeats, and told the moment a process dies.
///
/// A registration is a file that its process has locked. The kernel ends the lock when the process
/// ends, however it does, and tells those who watch; nobody polls, and nobody is taken for alive
/// because its number is in use again, or because somebody copied the directory.
///
/// One thing has no event: whether a process runs or is stopped. That is read from /proc whenever
/// somebody looks, so a change of it is seen at the next look and calls no observer.
public struct Presence: Sendable {
  /// The container that the name belongs to.
  public let container: SharedContainer
  /// The name.
  public let name: String

  let place: PresenceDirectory

  /// How many bytes a registration's file may have at most, its `content` included: 64 KiB.
  public static let maximumBytes = PresenceRecord.limits.maximumBytes

  init(container: SharedContainer, name: String, kind: NameKind = .presence) {
    self.container = container
    self.name = name
    place = PresenceDirectory(
      directory: NamedDirectory(root: container.root, kind: kind, identifier: name))
  }

  /// Where the registrations are, or would be.
  public var path: String { place.directory.path }

  /// What somebody does who enters: who consumes a queue is present as its consumer.
  var action: String {
    (place.directory.kind.primitive == .consumer ? "consume" : "enter") + " \"\(name)\""
  }

  /// Registers this process until `leave()`, until the registration is forgotten, or until the
  /// process ends. A process may have several registrations.
  ///
  /// A registration outlives the removal of its file or directory, or of the whole container: a
  /// fifth of a second later it is made again, in what is there instead.
  ///
  /// - Parameter content: something small for others to know; it stays as it is.
  /// - Throws: `AppGroupError`: `unsupportedValue` for content that is too large or no property
  ///   list, or what the file system refuses.
  /// - Complexity: create, lock, write, rename; and a watch on the directory.
  public func enter(content: PropertyListValue? = nil) throws -> PresenceRegistration {
    let record = PresenceRecord(isExclusive: false, content: content)
    let registration = PresenceRegistration(self, record)
    try reporting(action, path: path) {
      try check(record)
      try registration.begin()
    }
    return registration
  }

  /// Who is here now, the oldest first.
  ///
  /// - Throws: `AppGroupError` for what the file system refuses, and `tooLarge` for a directory with
  ///   more than 10,000 files.
  /// - Complexity: opens and lists one directory. For each member open, fstat, flock, read and close
  ///   of its file, and a look in /proc.
  public func members() throws -> [PresenceMember] {
    try look()?.live ?? []
  }

  /// Whether somebody is here; if not, who was last.
  ///
  /// - Throws: as `members`.
  public func status() throws -> PresenceStatus {
    guard let look = try look() else { return .neverSeen }
    if let member = look.live.first(where: { $0.state == .running }) { return .running(member) }
    if let member = look.live.first(where: { $0.state == .unknown }) { return .unknown(member) }
    if let member = look.live.first { return .suspended(member) }
    return try reporting("look who was present", path: path) {
      if let record = try place.lastRecord() {
        return .gone(last: PresenceMember(record, state: .gone), ended: record.ended)
      }
      // Only where it cannot be moved aside.
      if let last = look.dead.last { return .gone(last: last, ended: nil) }
      return try place.hasLast() ? .gone(last: nil, ended: nil) : .neverSeen
    }
  }

  private func look() throws -> PresenceDirectory.Look? {
    try reporting("look who is present", path: path) { try place.look() }
  }

  func check(_ record: PresenceRecord) throws {
    do throws(PropertyListError) {
      _ = try record.bytes()
    } catch {
      throw AppGroupError(
        .unsupportedValue, action, path: path,
        reason: "nobody would accept its content: \(error.reason)",
        remedy: "say little here, and put the rest into a value")
    }
  }
}

extension SharedContainer {
  /// The presence under a name; nothing is touched before somebody enters or observes.
  ///
  /// - Parameter name: any string, byte for byte.
  public func presence(_ name: String) -> Presence { Presence(container: self, name: name) }

  /// The names under which somebody has entered or observed, in no order.
  ///
  /// - Throws: `AppGroupError` for what the file system refuses.
  public func presenceNames() throws -> [String] {
    try identifiers(of: .presence)
  }
}
