import WormholeWorkshop

/// The checks of the workers' operations and the observers' reports.
struct HistoryChecks {
  let records: Records
  /// The last value of each key.
  let last: [String: HistoryValue]
  /// Whether an observer may be behind: on etcd. Then `JournalChecks` has its order.
  var isOnEtcd = false

  var all: [Check] {
    [noLostUpdate, linearizable] + (isOnEtcd ? [] : [observersInOrder])
      + [nothingUnpublished, nothingBackwards]
  }

  private var everything: [HistoryOperation] { records.operations + records.observations }

  /// A counter equals the number of its increments; an increment that a kill interrupted may count
  /// or not.
  private var noLostUpdate: Check {
    var total = 0
    var evidence: [String] = []
    for key in Workload.counters {
      var (done, open) = (0, 0)
      for operation in records.operations where operation.key == key {
        guard case .update = operation.call else { continue }
        if operation.outcome == .unknown { open += 1 } else { done += 1 }
      }
      total += done
      let counter = Int(last[key] ?? 0)
      guard !(done...(done + open)).contains(counter) else { continue }
      evidence.append(
        "\(key) is \(counter) after \(done) increments, and \(open) of unknown outcome")
    }
    return Check(promise: "no update is lost", extent: "\(total) increments", evidence: evidence)
  }

  private var linearizable: Check {
    check(
      "reads, writes, updates and compare-and-sets are linearizable",
      extent: "\(records.operations.count) operations", records.operations)
  }

  private var observersInOrder: Check {
    check(
      "observers receive the published values in order",
      extent: "\(records.observations.count) deliveries", everything)
  }

  private func check(
    _ promise: String, extent: String, _ operations: [HistoryOperation]
  ) -> Check {
    let evidence =
      switch checkLinearizability(of: operations, initial: Workload.initial) {
      case .linearizable: [String]()
      case .violation(let violation):
        violation.description.split(separator: "\n").map(String.init)
      case .undecided(let limit):
        ["not decided within \(limit) steps; run it for a shorter time"]
      }
    return Check(promise: promise, extent: extent, evidence: evidence)
  }

  private var nothingUnpublished: Check {
    let found = findUnwrittenRead(in: everything, initial: Workload.initial)
    return Check(
      promise: "only published values are read", extent: "\(everything.count) operations",
      evidence: found.map {
        ["process \($0.process): \($0.sentence) of \($0.key), which no process published"]
      } ?? [])
  }

  private var nothingBackwards: Check {
    let reads = everything.filter {
      $0.call == .read && Workload.isAscending($0.key)
    }
    return Check(
      promise: "no reader goes backwards", extent: "\(reads.count) reads",
      evidence: findBackwardRead(in: reads).map { [$0.description] } ?? [])
  }
}
