import Wormhole
import WormholePropertyLists
import WormholeSystem

/// One update of several values on etcd: all are read at one revision and changed in one
/// transaction, if none of them has changed.
final class EtcdValuesChange<Result: Sendable>: Waiting {
  private let update: ValuesUpdate<Result>
  private let etcd: EtcdContainer
  private let values: [EtcdValue]

  init(_ update: ValuesUpdate<Result>, on etcd: EtcdContainer) {
    self.update = update
    self.etcd = etcd
    values = update.values.compactMap { $0.store as? EtcdValue }
  }

  /// Besides the contents' conditions: two of the commit record, two of the value that was changed last,
  /// and the container's.
  private static var maximumConditions: Int { EtcdContainer.maximumOperations - 5 }

  private var location: String { update.container.location }

  func step() throws -> WaitingStep<Result> {
    try reporting("change several values", path: location) {
      guard values.count + roleConditions.count <= Self.maximumConditions else {
        throw WormholeError(
          .tooLarge, "change several values", path: location,
          reason: "there are \(values.count), and etcd changes at most "
            + "\(Self.maximumConditions) in one step",
          remedy: "change fewer at once, or raise --max-txn-ops")
      }
      let etcd = etcd.until(CallLimit.callDeadline(update.terms.deadline))
      let states = try read(on: etcd)
      let found = zip(values, states).map { $0.snapshot(of: $1) }
      let edits: [Edit]
      let result: Result
      do {
        (edits, result) = try update.decide(found)
      } catch let error as BodyError {
        throw error.cause
      }
      if try publish(edits, states, found: found, on: etcd) { return .done(result) }
      try update.terms.requireTime(
        to: "change several values", path: location, others: "one of them",
        repeats: update.terms.repeatsAfterLoss)
      return .again
    }
  }

  private var roleConditions: [EtcdTransaction.Condition] { update.role?.conditions ?? [] }

  private func read(on etcd: EtcdContainer) throws -> [SeenState] {
    let outcome = try etcd.commit(
      EtcdTransaction(if: [], then: values.map { .read(.key($0.key)) }))
    return outcome.results.map { .init(item: $0.items.first, seen: outcome.moment) }
  }

  /// - Returns: False if another process was faster.
  private func publish(
    _ edits: [Edit], _ states: [SeenState], found: [PlainSnapshot],
    on etcd: EtcdContainer
  ) throws -> Bool {
    var transaction = EtcdTransaction(if: roleConditions, then: [])
    var commitRecord: EtcdContainer.CommitRecord?
    var replaced: [(EtcdValue, SeenState)] = []
    let stamp = Stamp.unique()
    var others: [(key: [UInt8], item: KeyValue?)] = []
    for (index, edit) in edits.enumerated() {
      let (value, state) = (values[index], states[index])
      if case .keep = edit {
        others.append((value.key, state.item))
        continue
      }
      let content = try value.content(edit, stamp, terms: update.terms, after: found[index])
      replaced.append((value, state))
      guard commitRecord != nil else {
        commitRecord = value.commitRecord(state, content)
        continue
      }
      others.append((value.key, state.item))
      transaction.operations.append(.put(key: value.key, value: content))
    }
    transaction.conditions += .unchanged(others, stamp: Stamp.bytes)
    if let commitRecord {
      let outcome = try etcd.commit(transaction, commitRecord)
      if outcome.succeeded {
        for (value, state) in replaced { value.retireLease(of: state, after: outcome) }
        return true
      }
    }
    try update.role?.check(on: etcd)
    return commitRecord == nil
  }
}
