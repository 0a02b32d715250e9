import Wormhole
import WormholePropertyLists
import WormholeSystem

/// One change of a value on etcd: read, decide, publish; begin again if another was faster.
///
/// The content that this process saw last serves as the first read, so that a change often takes
/// one round trip; a replacement of a name that it has not seen begins as if there was none. It never
/// decides to publish nothing from cached content.
final class EtcdChange<Result: Sendable>: Waiting {
  private let value: EtcdValue
  private let terms: ChangeTerms
  private let needsContent: Bool
  private let decide: @Sendable (PlainSnapshot) throws -> (Edit, Result)
  private var known: SeenState?
  /// Whether `known` was read for this change.
  private var isFresh = false
  /// The lease of the new content, and the history in which it was made.
  private var lease: (number: Int64, history: Int)?

  /// - Parameter needsContent: Whether the closure uses the content.
  init(
    _ value: EtcdValue, terms: ChangeTerms, needsContent: Bool = true,
    _ decide: @escaping @Sendable (PlainSnapshot) throws -> (Edit, Result)
  ) {
    self.value = value
    self.terms = terms
    self.needsContent = needsContent
    self.decide = decide
    // Otherwise the closure may run only once.
    known = terms.repeatsAfterLoss || !needsContent ? value.lastState : nil
    if known == nil, !needsContent { known = value.assumedState }
  }

  deinit {
    guard let lease else { return }
    RetiredLeases.add(
      lease.number, for: value.key, of: value.etcd.client, history: lease.history)
  }

  func step() throws -> WaitingStep<Result> {
    try reporting("change the value", path: value.path) {
      let etcd = value.etcd.until(CallLimit.callDeadline(terms.deadline))
      let state: SeenState
      if let known {
        state = known
      } else {
        state = try value.read(on: etcd)
        isFresh = true
      }
      known = state
      do {
        return try attempt(state, on: etcd)
      } catch let error as BodyError {
        guard isFresh else { return readAgain() }
        throw error.cause
      }
    }
  }

  private func attempt(
    _ state: SeenState, on etcd: EtcdContainer
  ) throws -> WaitingStep<Result> {
    let old = value.snapshot(of: state)
    let edit: Edit
    let result: Result
    do { (edit, result) = try decide(old) } catch {
      throw BodyError(cause: error)
    }
    if case .keep = edit { return isFresh ? .done(result) : readAgain() }
    let stamp = Stamp.unique()
    let lease = try grantLease(for: edit, on: etcd)
    let content =
      try lease == nil
      ? stamp.wire : value.content(edit, stamp, terms: terms, after: needsContent ? old : nil)
    if case .replace = edit { terms.willPublish(stamp) }
    let commitRecord = value.commitRecord(state, content)
    let outcome: EtcdTransaction.Outcome
    do throws(EtcdError) {
      outcome = try etcd.commit(
        EtcdTransaction(if: [], then: [], otherwise: [.key(value.key)]), commitRecord,
        lease: lease ?? 0)
    } catch {
      // If it was made, the content hangs on its lease.
      if [.leaseGone, .outcomeUnknown].contains(error.code) { self.lease = nil }
      guard error.code == .leaseGone, ContinuousClock.now < terms.deadline else { throw error }
      // This process was stopped for longer than the lease lasts.
      return .again
    }
    guard outcome.succeeded else { return try beginAgain(outcome) }
    self.lease = nil
    value.retireLease(of: state, after: outcome)
    value.know(
      .init(item: commitRecord.item(at: outcome.revision, lease: lease ?? 0), seen: outcome.moment))
    return .done(result)
  }

  private func readAgain() -> WaitingStep<Result> {
    known = nil
    return .again
  }

  private func beginAgain(_ outcome: EtcdTransaction.Outcome) throws -> WaitingStep<Result> {
    try terms.requireTime(
      to: "change the value", path: value.path, others: "it",
      repeats: terms.repeatsAfterLoss || !needsContent)
    guard let result = outcome.results.last else { return readAgain() }
    let state = SeenState(item: result.items.first, seen: outcome.moment)
    value.know(state)
    known = state
    isFresh = true
    return .again
  }

  /// The lease of a value that expires; 0 if it does not expire, nil if it has expired by now.
  ///
  /// The only look at the clock: a second one could find it expired, and put it without a lease.
  private func grantLease(for edit: Edit, on etcd: EtcdContainer) throws -> Int64? {
    guard case .replace = edit, let expiry = terms.expiry else { return 0 }
    if let lease { return lease.number }
    let history = etcd.client.history
    lease = try etcd.grantLease(until: expiry).map { ($0, history) }
    return lease?.number
  }
}

extension ChangeTerms {
  /// Throws the error of a change that may not begin again after another process was faster.
  ///
  /// - Parameter changed: What the other process has changed.
  func requireTime(
    to action: String, path: String, others changed: String, repeats: Bool
  ) throws(WormholeError) {
    guard repeats else {
      throw WormholeError(
        .leaseLost, action, path: path,
        reason: "another process has changed \(changed) in the meantime", remedy: "begin again")
    }
    guard ContinuousClock.now < deadline else {
      throw WormholeError(
        .timedOut, action, path: path,
        reason: "other processes change \(changed) all the time, and the deadline passed",
        remedy: "try again, or with a later deadline")
    }
  }
}
