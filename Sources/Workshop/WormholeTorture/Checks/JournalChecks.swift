import WormholeWorkshop

struct JournalChecks {
  let records: Records
  /// Whether to also check what observers and watches on etcd received.
  var isOnEtcd = false

  var all: [Check] {
    [
      check(.whole, "every read"),
      check(.together, "\(records.count(.did("increment of two"))) changes"),
      check(.inTime, "\(records.count(.timedOut)) deadlines passed"),
      check(.noFault, "every operation"),
      postsHeard,
    ]
      + (isOnEtcd
        ? [
          check(.forwards, "\(records.observations.count) deliveries"),
          check(.everyChange, "\(records.count(.did("watched changes"))) times"),
        ] : [])
  }

  private func check(_ promise: Promise, _ extent: String) -> Check {
    var offences: [String] = []
    for journal in records.journals {
      for case .broke(promise, let sentence) in journal.entries {
        offences.append("worker \(journal.life): \(sentence.replacing("\n", with: " "))")
      }
    }
    return Check(promise.rawValue, extent, firstOf: offences)
  }

  private var postsHeard: Check {
    let posts = Dictionary(grouping: records.posts, by: \.key)
    var checks = 0
    var evidence: [String] = []
    for journal in records.journals {
      var last: [String: Interval] = [:]
      for case .checked(let name, let from, let to, let heard) in journal.entries {
        checks += 1
        defer { last[name] = (from, to) }
        guard let before = last[name] else { continue }
        let wrong = Self.contradiction(before, (from, to), heard: heard, among: posts[name] ?? [])
        if let wrong { evidence.append("worker \(journal.life), \(name): \(wrong)") }
      }
    }
    return Check(
      "a check reports whether there was a post since the last check",
      "\(checks) checks, \(records.posts.count) posts", firstOf: evidence)
  }

  /// The time of one check.
  private typealias Interval = (from: UInt64, to: UInt64)

  /// Returns the contradiction in a check's answer, given the check before it and the posts. A
  /// check without an end is a killed process's, and may or may not have taken effect by then.
  private static func contradiction(
    _ before: Interval, _ now: Interval, heard: Bool, among posts: [HistoryOperation]
  ) -> String? {
    let isBetween = posts.contains { post in
      post.invocation > before.to && (post.response.map { $0 < now.from } ?? false)
    }
    if isBetween, !heard { return "a post between two checks was not reported" }
    let mayBe = posts.contains { post in
      post.invocation <= now.to && (post.response.map { $0 >= before.from } ?? true)
    }
    if !mayBe, heard { return "a check reported a post that no process made" }
    return nil
  }
}

/// A promise, and the evidence against it.
struct Check {
  let promise: String
  /// The extent of the check, for a promise that holds: "1234 reads".
  let extent: String
  /// The offenses in words, in order; empty if the promise holds.
  let evidence: [String]

  var holds: Bool { evidence.isEmpty }

  init(_ promise: String, _ extent: String, evidence: [String]) {
    self.promise = promise
    self.extent = extent
    self.evidence = evidence
  }

  /// A check with the first three offenses, and the number of the others.
  init(_ promise: String, _ extent: String, firstOf offences: [String]) {
    let others = offences.count > 3 ? ["and \(offences.count - 3) more"] : []
    self.init(promise, extent, evidence: offences.prefix(3) + others)
  }
}

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

  /// A counter equals the number of its increments; an increment that a kill interrupted may or may
  /// not count.
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
    return Check("no update is lost", "\(total) increments", evidence: evidence)
  }

  private var linearizable: Check {
    check(
      "reads, writes, updates and compare-and-sets are linearizable",
      "\(records.operations.count) operations", records.operations)
  }

  private var observersInOrder: Check {
    check(
      "observers receive the published values in order",
      "\(records.observations.count) deliveries", everything)
  }

  private func check(
    _ promise: String, _ extent: String, _ operations: [HistoryOperation]
  ) -> Check {
    let evidence =
      switch checkLinearizability(of: operations, initial: Workload.initial) {
      case .linearizable: [String]()
      case .violation(let violation):
        violation.description.split(separator: "\n").map(String.init)
      case .undecided(let limit):
        ["not decided within \(limit) steps; run it for a shorter time"]
      }
    return Check(promise, extent, evidence: evidence)
  }

  private var nothingUnpublished: Check {
    let found = findUnwrittenRead(in: everything, initial: Workload.initial)
    let sentence = found.map {
      "process \($0.process): \($0.sentence) of \($0.key), which no process published"
    }
    return Check(
      "only published values are read", "\(everything.count) operations",
      evidence: sentence.map { [$0] } ?? [])
  }

  private var nothingBackwards: Check {
    let reads = everything.filter { $0.call == .read && Workload.isAscending($0.key) }
    return Check(
      "no reader goes backwards", "\(reads.count) reads",
      evidence: findBackwardRead(in: reads).map { [$0.description] } ?? [])
  }
}
