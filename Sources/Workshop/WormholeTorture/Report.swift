/// The report of a run on standard output: always the same lines in the same order.
struct Report {
  let records: Records
  let counts: Chaos.Counts
  /// The counts of the container's etcd, if it is on one.
  let etcd: Nemesis.Counts?
  let checks: [Check]

  var failed: Int { checks.count { !$0.holds } }

  var text: String { (operations + processes + members + promises).joined(separator: "\n") + "\n" }

  private var operations: [String] {
    let kinds = records.kinds
    let total = kinds.reduce(0) { $0 + $1.count }
    return ["operations"] + kinds.map { row($0.kind, $0.count) } + [row("all", total)]
  }

  private var processes: [String] {
    let (retried, lost) = (records.count(.retried), records.count(.lost))
    return [
      "processes", row("started", counts.started), row("stopped", counts.stopped),
      row("killed", counts.killed), row("empty names removed", counts.namesRemoved),
      row(etcd == nil ? "leases taken over" : "changes overtaken", retried + lost),
      row("  begun again", retried), row("  reported leaseLost", lost),
      row("deadlines passed", records.count(.timedOut)),
    ]
  }

  private var members: [String] {
    guard let etcd else { return [] }
    return [
      "etcd", row("members killed", etcd.killed), row("members stopped", etcd.stopped),
      row("majorities taken away", etcd.majoritiesTaken), row("leaders moved", etcd.leadersMoved),
      row("compactions", etcd.compactions), row("all connections cut", etcd.cuts),
      row("connections blocked", etcd.blocked), row("times of lost answers", etcd.lossy),
      row("  answers lost", etcd.answersLost), row("snapshots restored", etcd.restored),
      row("reported unreachable", records.count(.unreachable)),
      row("reported outcomeUnknown", records.count(.inDoubt)),
    ]
  }

  private var promises: [String] {
    ["checks"]
      + checks.flatMap { check in
        let line = "  \(check.holds ? "ok    " : "FAILED")  \(check.promise) (\(check.extent))"
        return [line] + check.evidence.map { "          \($0)" }
      }
  }

  private func row(_ name: String, _ count: Int) -> String {
    let number = String(count)
    let gap = String(repeating: " ", count: max(1, 36 - name.count - number.count))
    return "  " + name + gap + number
  }
}
