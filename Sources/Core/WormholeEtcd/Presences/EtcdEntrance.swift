import Dispatch
import FoundationEssentials
import Wormhole
import WormholeSystem

/// An epoch of a registration on etcd: it holds as long as its key was created, and the role
/// changed, at its revision.
struct RegistrationEpoch: Sendable {
  let session: EtcdSession
  let revision: Int64
  var moment: EtcdMoment { EtcdMoment(history: session.history, revision: revision) }
  /// Whether a copy of the transaction that made it may still arrive.
  let isDoubtful: Bool
}

/// A key that comes and goes with a registration, in the same transactions.
protocol EtcdCompanion: AnyObject, Sendable {
  /// Its key, which is under the session of the registration.
  var key: [UInt8] { get }

  /// The steps that put its key, and its reads after that; with further conditions of entering.
  func steps(with record: PresenceRecord, lease: Int64) -> EtcdTransaction

  /// Its key was put.
  ///
  /// - Parameter outcome: That of the transaction, whose last results are those of its steps; nil if
  ///   the answer was lost.
  func entered(_ session: EtcdSession, _ outcome: EtcdTransaction.Outcome?)

  /// Its key was not put, perhaps because of its own conditions: the next steps must not have them.
  func refused()

  /// It belongs to a registration.
  func belongs(to registration: EtcdRegistration)

  /// Its key is being deleted, at the latest by the end of the session.
  func leaves()
}

/// The attempts of one registration to enter.
///
/// **A late copy.** A transaction whose answer was lost may be made a little later, even after
/// others were refused. It puts the key of the registration only if the key does not exist, and
/// under the lease of this session. So a copy that arrives while the registration holds does
/// nothing. A copy after its end would be an unknown registration: if there was a doubt, the end
/// leaves an empty key behind instead of none, until the session ends.
final class EtcdEntrance {
  /// How the role is taken, or passed by a registration that is not exclusive.
  enum Terms {
    /// From the registration that has it; nil if it is free.
    case over(EtcdPresence.Role?)
    /// Once more, because no other process had it since a revision.
    case again(since: Int64)
  }

  enum Outcome {
    case entered(RegistrationEpoch)
    /// With the keys of the presence.
    case refused(EtcdClient.Content)
  }

  let record: PresenceRecord
  private let presence: EtcdPresence
  private let companion: (any EtcdCompanion)?
  /// The session of a transaction that may still arrive, until it has entered.
  private var doubt: EtcdSession?

  init(
    _ presence: EtcdPresence, _ record: PresenceRecord, with companion: (any EtcdCompanion)? = nil
  ) {
    self.record = record
    self.presence = presence
    self.companion = companion
  }

  /// Tries to enter; a transaction whose outcome is unknown is made again.
  ///
  /// - Parameter terms: How the role is taken; nil if it does not matter who has it.
  func attempt(_ terms: Terms?, on etcd: EtcdContainer) throws -> Outcome {
    let bytes = try record.bytes()
    return try etcd.settling { _ throws(EtcdError) in
      var pause = Duration.milliseconds(5)
      while true {
        let session = try etcd.session()
        // The error at the deadline still tells of the first doubt, although its session is gone.
        if doubt !== session { doubt = nil }
        do throws(EtcdError) {
          let outcome = try etcd.changing { () throws(EtcdError) in
            var outcome = try etcd.commit(transaction(bytes, terms, lease: session.lease))
            try etcd.requireContainer(in: &outcome)
            return outcome
          }
          return self.outcome(outcome, bytes, session: session)
        } catch {
          if error.code == .outcomeUnknown { doubt = session }
          guard error.code == .leaseGone else { throw error }
          // With all of its keys, so no copy can arrive later.
          session.end()
          guard ContinuousClock.now + pause < etcd.callDeadline else { throw error }
          pauseThread(pause)
          pause = min(pause * 2, .milliseconds(200))
        }
      }
    }
  }

  private func transaction(
    _ bytes: [UInt8], _ terms: Terms?, lease: Int64
  ) -> EtcdTransaction {
    let member = presence.memberKey(record.id)
    var transaction = EtcdTransaction(
      if: [.absent(member)],
      then: [
        .put(key: member, value: bytes, lease: lease),
        .put(key: presence.lastKey, value: bytes),
      ], otherwise: [presence.everything])
    let id = Array(record.id.utf8)
    if record.isExclusive, terms != nil {
      transaction.operations += [
        .put(key: presence.roleKey, value: id, lease: lease),
        .put(key: presence.heirKey, value: id),
      ]
    }
    switch terms {
    case nil: break
    case .over(nil): transaction.conditions.append(.absent(presence.roleKey))
    case .again(let revision):
      transaction.conditions += [
        .absent(presence.roleKey), .modified(presence.heirKey, at: revision),
        .value(of: presence.heirKey, id),
      ]
    case .over(let role?):
      transaction.conditions += role.item.unchanged
      if !record.isExclusive {
        // The heir shows the former holder that it has lost the role, which is free now.
        transaction.operations += [
          .delete(.key(presence.roleKey)), .put(key: presence.heirKey, value: id),
        ]
      }
      if let other = role.member {
        transaction.operations.append(.delete(.key(presence.memberKey(other.id))))
      }
    }
    if let steps = companion?.steps(with: record, lease: lease) {
      transaction.conditions += steps.conditions
      transaction.operations += steps.operations
    }
    presence.etcd.requireContainer(in: &transaction)
    return transaction
  }

  private func outcome(
    _ outcome: EtcdTransaction.Outcome, _ bytes: [UInt8], session: EtcdSession
  ) -> Outcome {
    func entered(_ revision: Int64) -> Outcome {
      defer { doubt = nil }
      companion?.entered(session, outcome.succeeded ? outcome : nil)
      return .entered(
        RegistrationEpoch(session: session, revision: revision, isDoubtful: doubt != nil))
    }
    if outcome.succeeded { return entered(outcome.revision) }
    let items = outcome.results.first?.items ?? []
    // An earlier copy of our own, whose answer was lost.
    if let own = items.first(where: { $0.key == presence.memberKey(record.id) }),
      own.lease == session.lease, own.value == bytes,
      !record.isExclusive
        || items.contains(where: { $0.key == presence.roleKey && $0.modified == own.created })
    {
      return entered(own.created)
    }
    companion?.refused()
    return .refused(.init(moment: outcome.moment, items: items))
  }

  /// Makes sure, in the background, that no copy of a transaction enters later.
  deinit {
    guard let session = doubt else { return }
    let (presence, record, companion) = (presence, record, companion)
    Blocking.queue().async { presence.bury(record, session, with: companion) }
  }
}

extension EtcdPresence {
  /// Ends a registration, without changing the keys of others.
  ///
  /// - Parameter asDeath: Whether to leave no record of leaving.
  func end(
    _ record: PresenceRecord, _ epoch: RegistrationEpoch, with companion: (any EtcdCompanion)?,
    asDeath: Bool
  ) {
    companion?.leaves()
    epoch.session.insist { deadline in
      try erase(record, epoch, with: companion, asDeath: asDeath, on: etcd.until(deadline))
    }
  }

  private func erase(
    _ record: PresenceRecord, _ epoch: RegistrationEpoch, with companion: (any EtcdCompanion)?,
    asDeath: Bool, on etcd: EtcdContainer
  ) throws(EtcdError) {
    let transaction = leaving(record, epoch, with: companion, asDeath: asDeath)
    guard try !etcd.repeating(transaction).succeeded, let companion else { return }
    // The registration was lost before, and its companion was not.
    _ = try etcd.repeating(
      EtcdTransaction(if: [.exists(companion.key)], then: [.delete(.key(companion.key))]))
  }

  /// The transaction by which a registration leaves.
  func leaving(
    _ record: PresenceRecord, _ epoch: RegistrationEpoch, with companion: (any EtcdCompanion)?,
    asDeath: Bool = false
  ) -> EtcdTransaction {
    var record = record
    record.ended = Date()
    let member = memberKey(record.id)
    var transaction = EtcdTransaction(
      if: fence(of: record, at: epoch.revision),
      then: [
        epoch.isDoubtful
          ? .put(key: member, value: [], lease: epoch.session.lease) : .delete(.key(member))
      ])
    if record.isExclusive { transaction.operations.append(.delete(.key(roleKey))) }
    // Entering has shown that it can be written.
    if !asDeath, let bytes = try? record.bytes() {
      transaction.operations.append(.put(key: lastKey, value: bytes))
    }
    if let companion { transaction.operations.append(.delete(.key(companion.key))) }
    return transaction
  }

  /// The conditions that hold as long as a registration does: never both in another history,
  /// because no other process uses its id.
  func fence(of record: PresenceRecord, at revision: Int64) -> [EtcdTransaction.Condition] {
    [.created(memberKey(record.id), at: revision).fencing]
      + (record.isExclusive ? [.modified(roleKey, at: revision).fencing] : [])
  }

  /// Ends a registration that may not even have begun.
  fileprivate func bury(
    _ record: PresenceRecord, _ session: EtcdSession, with companion: (any EtcdCompanion)?
  ) {
    let member = memberKey(record.id)
    session.insist { deadline in
      let etcd = etcd.until(deadline)
      let outcome = try etcd.repeating(
        EtcdTransaction(
          if: [.absent(member)], then: [.put(key: member, value: [], lease: session.lease)],
          otherwise: [.key(member)]))
      guard !outcome.succeeded, let item = outcome.results.first?.items.first, !item.value.isEmpty
      else { return }
      try erase(
        record, RegistrationEpoch(session: session, revision: item.created, isDoubtful: true),
        with: companion, asDeath: true, on: etcd)
    }
  }
}
