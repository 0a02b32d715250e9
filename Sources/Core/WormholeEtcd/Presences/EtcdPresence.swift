import Wormhole
import WormholeSystem

/// The presence of one name on etcd.
///
/// ```
/// p/<name>/m/<id>   a registration: its record, as in a directory, with the name of its host. Hangs on
///                   the lease of its process's session. Empty: it was left (see `EtcdEntrance`)
/// p/<name>/x        the exclusive role: the id of its registration. Hangs on the same lease
/// p/<name>/h        the same without a lease: who had the role last
/// p/<name>/last     the record of who entered or left last; with `ended` if it left
/// ```
///
/// **Entering** is one transaction: it puts all of these in one revision, which is the fence of the
/// registration: as long as `m/<id>` was created and `x` was changed at this revision, it holds.
/// The role is taken if `x` does not exist, or, by comparing its revision, from a holder that may
/// be overtaken, whose registration ends in the same step.
///
/// **Its end**: leaving deletes the keys, and the end of the session does. So others learn of a
/// death when the lease has ended. A process on the same machine is also looked up in /proc.
struct EtcdPresence: PresenceStore {
  private(set) var etcd: EtcdContainer
  let title: PresenceTitle
  let prefix: [UInt8]

  init(_ etcd: EtcdContainer, name: String, kind: NameKind) {
    self.etcd = etcd
    title = PresenceTitle(name: name, kind: kind)
    prefix = etcd.key(kind, name, part: "/")
  }

  /// The same for a registration, which outlives its caller's deadline.
  var lasting: EtcdPresence {
    var presence = self
    presence.etcd = etcd.with()
    return presence
  }

  var path: String { etcd.location(of: prefix) }

  private static let memberPart = "m/"
  var members: KeyRange { .prefix(key(Self.memberPart)) }
  var everything: KeyRange { .prefix(prefix) }
  var roleKey: [UInt8] { key("x") }
  var heirKey: [UInt8] { key("h") }
  var lastKey: [UInt8] { key("last") }

  func memberKey(_ id: String) -> [UInt8] { key(Self.memberPart + id) }

  private func key(_ part: String) -> [UInt8] { prefix + Array(part.utf8) }

  // MARK: Looking

  func look(without isKnown: (String) -> Bool) throws -> PresenceListing {
    look(in: try etcd.read(members).items)
  }

  /// Returns the members among keys, in the order of entering.
  func look(in items: [KeyValue]) -> PresenceListing {
    let all = items.sorted { $0.created < $1.created }.compactMap { member($0) }
    return PresenceListing(
      live: all.filter { $0.state != .gone }, dead: all.filter { $0.state == .gone })
  }

  /// - Returns: nil if it is not a registration.
  private func member(_ item: KeyValue) -> PresenceMember? {
    let start = key(Self.memberPart)
    guard item.key.starts(with: start) else { return nil }
    let id = String(decoding: item.key.dropFirst(start.count), as: UTF8.self)
    guard let record = PresenceRecord(item.value, id: id) else { return nil }
    return PresenceMember(record, state: Self.state(of: record))
  }

  /// The state of a process whose key exists. For another machine nothing else is known.
  private static func state(of record: PresenceRecord) -> PresenceMember.State {
    guard record.identity.isVisible else { return .unknown }
    guard let status = record.identity.status, !status.isDead else {
      return record.identity.hasEnded ? .gone : .unknown
    }
    return status.isStopped ? .suspended : .running
  }

  func last(after listing: PresenceListing) throws -> PresenceStatus {
    guard let item = try etcd.item(lastKey) else { return .neverSeen }
    guard let record = PresenceRecord(item.value, id: nil) else {
      return .gone(last: nil, ended: nil)
    }
    return .gone(last: PresenceMember(record, state: .gone), ended: record.ended)
  }

  func watch(_ signal: @escaping @Sendable () -> Void) throws -> any MembershipWatch {
    try EtcdMembershipWatch(self, signal)
  }

  // MARK: The role

  func proof(of number: UInt64) -> RoleProof {
    // A key that does not exist was changed at 0.
    let revision = number == 0 ? -1 : Int64(clamping: number)
    return RoleProof(
      number: number,
      condition: EtcdCondition(conditions: [.modified(roleKey, at: revision).fencing]),
      location: etcd.location.description, lost: title.fenced(path: path))
  }

  /// The role, as long as it is not free.
  struct Role {
    let item: KeyValue
    /// The registration that has it; nil if it was removed, or never written.
    let member: PresenceMember?
  }

  /// - Returns: Nil if it is free.
  func role(in items: [KeyValue]) -> Role? {
    guard let item = items.first(where: { $0.key == roleKey }) else { return nil }
    let id = String(decoding: item.value.prefix(64), as: UTF8.self)
    let registration = items.first { $0.key == memberKey(id) }
    return Role(item: item, member: registration.flatMap { member($0) })
  }

  /// Removes the records of the last process, unless a process has the role; in one round trip.
  func removeRecords() throws {
    _ = try etcd.commit(
      EtcdTransaction(
        if: [.absent(roleKey)], then: [.delete(.key(heirKey)), .delete(.key(lastKey))]))
  }

  // MARK: Entering

  func enter(_ record: PresenceRecord, tidies: Bool) throws -> any PresenceHold {
    guard
      case .entered(let epoch) = try EtcdEntrance(self, record).attempt(nil, on: etcd.call())
    else { throw EtcdError(.refused, "somebody has used its key") }
    return EtcdRegistration(self, record, epoch: epoch)
  }

  func exclusiveEntry(
    _ record: PresenceRecord, _ overtaking: Presence.Overtaking,
    until deadline: ContinuousClock.Instant, isGone: (() throws -> Bool)?
  ) -> any Waiting<any PresenceHold> {
    EtcdRoleAcquisition(self, record, overtaking: overtaking, until: deadline)
  }
}
