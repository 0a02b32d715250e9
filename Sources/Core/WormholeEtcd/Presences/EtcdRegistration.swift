import Dispatch
import Synchronization
import Wormhole
import WormholeSystem

/// The registration of this process on etcd, which enters again when its session has ended.
///
/// An exclusive one does so only if no other has had the role meanwhile; otherwise it is lost.
final class EtcdRegistration: PresenceHold {
  private enum Phase {
    case here(RegistrationEpoch, EtcdSession.EndHandler)
    case left
    /// Another registration has the role, or had it.
    case overtaken(LeaseHolder?)
  }

  private let record: PresenceRecord
  private let presence: EtcdPresence
  private let companion: (any EtcdCompanion)?
  private let phase: Mutex<Phase>
  /// The revision of the last entering.
  private let revision: Mutex<Int64>
  /// Excludes: two threads that enter again at once.
  private let entering = Mutex(())
  private let lossHandlers = LossHandlers()

  /// The pause before another try to enter.
  private static let retry: Duration = .seconds(1)

  init(
    _ presence: EtcdPresence, _ record: PresenceRecord, epoch: RegistrationEpoch,
    with companion: (any EtcdCompanion)? = nil
  ) {
    self.presence = presence.lasting
    self.companion = companion
    self.record = record
    phase = Mutex(.left)
    revision = Mutex(epoch.revision)
    phase.withLock { $0 = here(epoch) }
    companion?.belongs(to: self)
  }

  private func here(_ epoch: RegistrationEpoch) -> Phase {
    .here(epoch, epoch.session.onEnd { [weak self] in self?.sessionEnded() })
  }

  // On its own thread, because the thread that releases the last reference must not wait for etcd.
  deinit {
    guard let epoch = takeEpoch() else { return }
    let (presence, record, companion) = (presence, record, companion)
    Blocking.queue().async { presence.end(record, epoch, with: companion, asDeath: false) }
  }

  func end(asDeath: Bool) {
    guard let epoch = takeEpoch() else { return }
    presence.end(record, epoch, with: companion, asDeath: asDeath)
  }

  /// The transaction by which it leaves; nil if it is not here.
  var leaving: EtcdTransaction? { epoch.map { presence.leaving(record, $0, with: companion) } }

  /// It has left, by that transaction.
  func left() {
    _ = takeEpoch()
    companion?.leaves()
  }

  /// - Returns: The epoch to end; nil if there is none, or if it belongs to a parent process.
  private func takeEpoch() -> RegistrationEpoch? {
    let old = phase.withLock { phase in
      defer { if case .here = phase { phase = .left } }
      return phase
    }
    guard case .here(let epoch, _) = old, record.identity == .current else { return nil }
    return epoch
  }

  private var epoch: RegistrationEpoch? {
    guard case .here(let epoch, _) = phase.withLock({ $0 }) else { return nil }
    return epoch
  }

  // MARK: Confirming

  var facts: HoldFacts {
    HoldFacts(
      fence: UInt64(revision.withLock { $0 }),
      deadline: (epoch?.session.limits ?? .passed).deadline)
  }

  private func standing() throws -> RegistrationEpoch {
    switch phase.withLock({ $0 }) {
    case .here(let epoch, _): return epoch
    case .left: throw presence.title.ended(path: presence.path)
    case .overtaken(let holder):
      throw presence.title.overtaken(by: holder, path: presence.path)
    }
  }

  func confirm(until deadline: ContinuousClock.Instant?) throws {
    guard record.identity == .current else { return }
    let epoch = try standing()
    let etcd = presence.etcd.call(within: deadline)
    try reporting("confirm being present", path: presence.path) {
      let outcome = try etcd.repeating(
        EtcdTransaction(if: presence.fence(of: record, at: epoch.revision), then: []))
      if !outcome.succeeded { try enterAgain(insteadOf: epoch, on: etcd) }
    }
    _ = try standing()
  }

  // MARK: Its loss

  var loss: WormholeError? {
    switch phase.withLock({ $0 }) {
    case .here(let epoch, _):
      return ContinuousClock.now < epoch.session.limits.stop
        ? nil : presence.title.unheard(path: presence.path)
    case .left: return nil
    case .overtaken(let holder):
      return presence.title.overtaken(by: holder, path: presence.path)
    }
  }

  // Its session reports it.
  func watch() {}

  func onLoss(_ handler: @escaping LossHandlers.Handler) {
    lossHandlers.add(handler)
    watchLoss()
  }

  /// Looks again when etcd should have answered.
  private func watchLoss() {
    guard !lossHandlers.isEmpty, record.identity == .current else { return }
    if let loss { return lossHandlers.report(loss) }
    guard let stop = epoch?.session.limits.stop else { return }
    Timers.after(ContinuousClock.now.duration(to: stop)) { [weak self] in
      self?.watchLoss()
    }
  }

  // MARK: Entering again

  private func sessionEnded() {
    guard record.identity == .current, let epoch else { return }
    lossHandlers.report(presence.title.unheard(path: presence.path))
    do {
      try enterAgain(insteadOf: epoch, on: presence.etcd.call())
    } catch {
      // No caller could get the error, and it may pass.
      Blocking.queue().after(Self.retry) { [weak self] in self?.sessionEnded() }
    }
  }

  private func enterAgain(insteadOf old: RegistrationEpoch, on etcd: EtcdContainer) throws {
    try entering.withLock { _ in
      // Another thread may have been faster.
      guard epoch?.moment == old.moment else { return }
      guard !record.isExclusive || old.moment.history == etcd.client.history else {
        // The heir's revision means nothing in another history.
        _ = replace(old, by: .overtaken(nil))
        return
      }
      let terms = record.isExclusive ? EtcdEntrance.Terms.again(since: old.revision) : nil
      switch try EtcdEntrance(presence, record).attempt(terms, on: etcd) {
      case .entered(let new):
        let isWanted = replace(old, by: here(new))
        if !isWanted { presence.end(record, new, with: nil, asDeath: false) }
      case .refused(let found):
        guard record.isExclusive else {
          throw EtcdError(.refused, "its former registration has not ended yet")
        }
        let member = presence.role(in: found.items)?.member
        _ = replace(old, by: .overtaken(member?.id == record.id ? nil : member?.holder))
      }
    }
  }

  /// - Returns: False if it was left meanwhile.
  private func replace(_ old: RegistrationEpoch, by new: Phase) -> Bool {
    let isReplaced = phase.withLock { phase in
      guard case .here(let epoch, _) = phase, epoch.moment == old.moment else { return false }
      phase = new
      if case .here(let epoch, _) = new { revision.withLock { $0 = epoch.revision } }
      return true
    }
    if isReplaced, let loss { lossHandlers.report(loss) }
    return isReplaced
  }
}
