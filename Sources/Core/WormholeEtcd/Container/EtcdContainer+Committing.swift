import Synchronization
import WormholeSystem

// A process must not put a key into an opened container that was removed since: no process would
// open, list or remove the key there. A key that exists shows that its container does.
extension EtcdContainer {
  /// Adds the condition that the container exists, and a look at it if a condition does not hold.
  func requireContainer(in transaction: inout EtcdTransaction) {
    transaction.conditions.append(.exists(formatKey))
    transaction.otherwise.append(.key(formatKey))
  }

  /// Takes the result of that look from the outcome.
  ///
  /// - Throws: `EtcdError`: `.containerGone`. Then the next opening in this process looks for it.
  func requireContainer(in outcome: inout EtcdTransaction.Outcome) throws(EtcdError) {
    guard !outcome.succeeded, outcome.results.popLast()?.items.isEmpty == true else { return }
    if !shared.isOfGroup.load(ordering: .relaxed) { forget() }
    throw .containerGone
  }
}

// Transactions.
extension EtcdContainer {
  /// A key that a transaction replaces, which shows its outcome later: it puts the key with a value
  /// that no other transaction puts, and only if the key is unchanged.
  struct CommitRecord: Sendable {
    let key: [UInt8]
    /// The key's state; nil if it does not exist.
    let base: KeyValue?
    /// The revision of that state; nil for the revision of its last change.
    var seen: Int64?
    let value: [UInt8]
    /// The number of bytes of the stamp at the beginning of a content.
    var stamp = EtcdTransaction.Condition.comparedBytes

    var conditions: [EtcdTransaction.Condition] {
      [EtcdTransaction.Condition].unchanged([(key, base)], stamp: stamp).map(\.comparing)
    }

    /// The key's state after the transaction.
    func item(at revision: Int64, lease: Int64 = 0) -> KeyValue {
      KeyValue(key: key, value: value, created: 0, modified: revision, version: 0, lease: lease)
    }
  }

  /// Makes a change under conditions, and determines its outcome if its answer is lost.
  ///
  /// A transaction whose outcome is unknown is made again: at most one of the two can happen,
  /// because both replace the same state of the commit record. If the second is refused, the first change
  /// of the commit record since then shows whether it was ours.
  ///
  /// - Parameter transaction: Without the commit record's condition and operation, which come first.
  /// - Returns: The outcome; without results if it was determined later, otherwise without the
  ///   result of the commit record's operation.
  /// - Throws: `EtcdError`: `.outcomeUnknown` if the deadline passed first, or the history that
  ///   shows it was compacted; otherwise nothing has changed: `.containerGone` for a new key of a
  ///   container that was removed, unless it is a group's.
  func commit(
    _ transaction: EtcdTransaction, _ commitRecord: CommitRecord, lease: Int64 = 0
  ) throws(EtcdError) -> EtcdTransaction.Outcome {
    var whole = transaction
    let mustExist = commitRecord.base == nil && commitRecord.key != formatKey
    if mustExist { requireContainer(in: &whole) }
    whole.conditions.insert(contentsOf: commitRecord.conditions, at: 0)
    whole.operations.insert(
      .put(key: commitRecord.key, value: commitRecord.value, lease: lease), at: 0)
    let call = call()
    return try call.changing { () throws(EtcdError) in
      try call.settle(whole, commitRecord, mustExist: mustExist)
    }
  }

  private func settle(
    _ transaction: EtcdTransaction, _ commitRecord: CommitRecord, mustExist: Bool
  ) throws(EtcdError) -> EtcdTransaction.Outcome {
    try settling { inDoubt throws(EtcdError) in
      var outcome = try commit(transaction)
      if outcome.succeeded {
        outcome.results.removeFirst()
        return outcome
      }
      // An old number is safe if it is replaced meanwhile: a watch from it begins again.
      let history = client.history
      guard inDoubt, let revision = try ownChange(commitRecord) else {
        if mustExist { try requireContainer(in: &outcome) }
        return outcome
      }
      return .init(succeeded: true, revision: revision, history: history, results: [])
    }
  }

  /// Makes a change under conditions, once; or reads, unless that was done at the opening.
  func commit(
    _ transaction: EtcdTransaction
  ) throws(EtcdError) -> EtcdTransaction.Outcome {
    if let ahead = prefetched(transaction) { return ahead }
    return try client.commit(transaction, until: callDeadline)
  }

  /// Takes the outcome of a read at the opening; nil if there was none.
  func prefetched(_ transaction: EtcdTransaction) -> EtcdTransaction.Outcome? {
    shared.ahead.withLock { $0.isEmpty ? nil : $0.removeValue(forKey: transaction) }
  }

  /// Makes a change that may be made twice.
  func repeating(
    _ transaction: EtcdTransaction
  ) throws(EtcdError) -> EtcdTransaction.Outcome {
    let call = call()
    return try call.settling { _ throws(EtcdError) in try call.commit(transaction) }
  }

  /// Makes a change until its outcome is known: one whose answer is lost is made again.
  ///
  /// - Parameter change: Makes it. Its argument says whether an earlier one may have been made.
  /// - Throws: What the change throws; `EtcdError.outcomeUnknown` if the outcome remains unknown.
  func settling<Result, Failure: Error>(
    _ change: (_ inDoubt: Bool) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let deadline = callDeadline
    var doubt: EtcdError?
    var pause = Duration.milliseconds(5)
    while true {
      do throws(Failure) {
        return try change(doubt != nil)
      } catch {
        guard let last = error as? EtcdError,
          let first = doubt ?? (last.code == .outcomeUnknown ? last : nil)
        else { throw error }
        doubt = first
        let mayPass = last.code == .outcomeUnknown || last.code == .unreachable
        guard mayPass, ContinuousClock.now + pause < deadline else {
          let then = last == first ? "" : "; then: \(last.reason)"
          throw EtcdError(.outcomeUnknown, first.reason + then) as? Failure ?? error
        }
        pauseThread(pause)
        pause = min(pause * 2, .milliseconds(200))
      }
    }
  }

  /// Returns the revision of our change of a commit record; nil if another one came first, or none did.
  ///
  /// - Throws: `EtcdError`: `.compacted` if the history that shows it was compacted.
  private func ownChange(_ commitRecord: CommitRecord) throws(EtcdError) -> Int64? {
    let deadline = callDeadline
    var seen = commitRecord.seen ?? commitRecord.base?.modified ?? 0
    // After a compaction its revision, at which the state is still known; at first the current one.
    var revision: Int64?
    while true {
      let page = try client.page(.key(commitRecord.key), at: revision, limit: 1, until: deadline)
      let state = page.items.first
      if let state, state.value == commitRecord.value { return state.modified }
      // Nothing has changed since the key was seen: its state was assumed.
      if let state, state.modified <= seen, revision == nil { return nil }
      if state?.modified == commitRecord.base?.modified {
        guard let revision else { return nil }
        seen = revision
      } else if revision != nil {
        throw EtcdError(.compacted, "what came first was compacted")
      }
      do throws(EtcdError) {
        let first = try client.firstChange(of: commitRecord.key, from: seen + 1, until: deadline)
        return first.kind == .put && first.keyValue.value == commitRecord.value
          ? first.keyValue.modified : nil
      } catch {
        guard error.code == .compacted, let oldest = error.revision else { throw error }
        revision = oldest
      }
    }
  }
}
