import WormholeWorkshop

/// The report of a run on standard output: always the same lines in the same order.
struct Report {
  let records: Records
  let counts: Chaos.Counts
  /// The counts of the container's etcd, if it is on one.
  let etcd: [Nemesis.Deed: Int]?
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
      row("times that messages went as files", counts.observations),
      row(etcd == nil ? "leases taken over" : "changes overtaken", retried + lost),
      row("  begun again", retried), row("  reported leaseLost", lost),
      row("deadlines passed", records.count(.timedOut)),
    ]
  }

  private var members: [String] {
    guard let etcd else { return [] }
    return ["etcd"] + Nemesis.Deed.allCases.map { row($0.rawValue, etcd[$0] ?? 0) } + [
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
    "  " + name + " \(count)".padded(to: 36 - name.count, atRight: true)
  }
}
