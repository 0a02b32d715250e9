import WormholeWorkshop

/// The checks of the workers' operations and the observers' reports.
struct HistoryChecks {
  let records: Records
  /// The final writes of the main process, and the last value of each key.
  let final: [HistoryOperation]
  let last: [String: HistoryValue]
  /// Whether an observer may be behind: on etcd. Then `JournalChecks` has its order.
  var isOnEtcd = false

  var all: [Check] {
    [noLostUpdate, linearizable] + (isOnEtcd ? [] : [observersInOrder])
      + [nothingUnpublished, nothingBackwards]
  }

  private var operations: [HistoryOperation] { records.operations + final }

  /// A counter equals the number of its increments; an increment that a kill interrupted may count
  /// or not.
  private var noLostUpdate: Check {
    var total = 0
    var evidence: [String] = []
    for key in Workload.counters {
      var (done, open) = (0, 0)
      for operation in operations where operation.key == key {
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
    let verdict = checkLinearizability(of: operations, initial: Workload.initial)
    return Check(
      promise: "reads, writes, updates and compare-and-sets are linearizable",
      extent: "\(operations.count) operations", evidence: evidence(verdict))
  }

  private var observersInOrder: Check {
    let everything = operations + records.observations
    let verdict = checkLinearizability(of: everything, initial: Workload.initial)
    return Check(
      promise: "observers receive the published values in order",
      extent: "\(records.observations.count) deliveries", evidence: evidence(verdict))
  }

  private func evidence(_ verdict: Verdict) -> [String] {
    switch verdict {
    case .linearizable: []
    case .violation(let violation):
      violation.description.split(separator: "\n").map(String.init)
    case .undecided(let limit): ["not decided within \(limit) steps; run it for a shorter time"]
    }
  }

  private var nothingUnpublished: Check {
    let everything = operations + records.observations
    let found = findUnwrittenRead(in: everything, initial: Workload.initial)
    return Check(
      promise: "only published values are read", extent: "\(everything.count) operations",
      evidence: found.map {
        ["process \($0.process): \($0.sentence) of \($0.key), which no process published"]
      } ?? [])
  }

  private var nothingBackwards: Check {
    let reads = (operations + records.observations).filter {
      $0.call == .read && Workload.isAscending($0.key)
    }
    return Check(
      promise: "no reader goes backwards", extent: "\(reads.count) reads",
      evidence: findBackwardRead(in: reads).map { [$0.description] } ?? [])
  }
}
