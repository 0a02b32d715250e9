/// The checks of the workers' journals.
struct JournalChecks {
  let records: Records

  /// The checks of what observers and watches on etcd received.
  var onEtcd: [Check] {
    [
      check(
        "no observer and no watch goes backwards",
        extent: "\(records.observations.count) deliveries"
      ) {
        if case .backwards(let sentence) = $0 { sentence } else { nil }
      },
      check(
        "a watch reports every change", extent: "\(records.count(.did("watched changes"))) times"
      ) {
        if case .missed(let sentence) = $0 { sentence } else { nil }
      },
    ]
  }

  var all: [Check] {
    [
      check("no value is torn or mixed", extent: "every read") {
        if case .torn(let sentence) = $0 { sentence } else { nil }
      },
      check(
        "several values change in one step",
        extent: "\(records.count(.did("increment of two"))) changes"
      ) {
        if case .uneven(let sentence) = $0 { sentence } else { nil }
      },
      check(
        "no wait goes beyond its deadline", extent: "\(records.count(.timedOut)) deadlines passed"
      ) {
        if case .late(let sentence) = $0 { sentence } else { nil }
      },
      check("no operation fails for another reason", extent: "every operation") {
        if case .failed(let sentence) = $0 { sentence } else { nil }
      },
      postsHeard,
    ]
  }

  private func check(
    _ promise: String, extent: String, _ pick: (JournalEntry) -> String?
  ) -> Check {
    Check(
      promise, extent,
      firstOf: records.entries(pick).map { "worker \($0.life): \($0.detail.onOneLine)" })
  }

  private var postsHeard: Check {
    let posts = BellHistory.posts(in: records)
    var checks = 0
    var evidence: [String] = []
    for journal in records.journals {
      var last: [String: BellHistory.Look] = [:]
      for case .checked(let bell, let from, let to, let heard) in journal.entries {
        checks += 1
        defer { last[bell] = (from, to) }
        guard let before = last[bell] else { continue }
        let history = posts[bell] ?? BellHistory()
        if let wrong = history.contradiction(before, (from, to), heard: heard) {
          evidence.append("worker \(journal.life), \(bell): \(wrong)")
        }
      }
    }
    let count = posts.values.reduce(0) { $0 + $1.posts.count }
    return Check(
      "a check reports whether there was a post since the last check",
      "\(checks) checks, \(count) posts", firstOf: evidence)
  }
}

/// The posts of a notification.
struct BellHistory {
  /// The time of one check.
  typealias Look = (from: UInt64, to: UInt64)

  /// Without an end: the post of a killed process, which may or may not have taken effect by then.
  var posts: [(from: UInt64, to: UInt64?)] = []

  static func posts(in records: Records) -> [String: BellHistory] {
    var histories: [String: BellHistory] = [:]
    for journal in records.journals {
      var open: (bell: String, from: UInt64)?
      for entry in journal.entries {
        switch entry {
        case .posting(let bell, let time):
          // A post without an end was interrupted by an error.
          if let open {
            histories[open.bell, default: BellHistory()].posts.append((open.from, nil))
          }
          open = (bell, time)
        case .posted(let time):
          guard let begun = open else { continue }
          histories[begun.bell, default: BellHistory()].posts.append((begun.from, time))
          open = nil
        case .unposted: open = nil
        default: continue
        }
      }
      if let open { histories[open.bell, default: BellHistory()].posts.append((open.from, nil)) }
    }
    return histories
  }

  /// Returns the contradiction in a check's answer, given the check before it.
  func contradiction(_ before: Look, _ now: Look, heard: Bool) -> String? {
    let isBetween = posts.contains { post in
      post.from > before.to && (post.to.map { $0 < now.from } ?? false)
    }
    if isBetween, !heard { return "a post between two checks was not reported" }
    let mayBe = posts.contains { post in
      post.from <= now.to && (post.to.map { $0 >= before.from } ?? true)
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
  /// The offences in words, the first one first; empty if the promise holds.
  let evidence: [String]

  var holds: Bool { evidence.isEmpty }
}

extension Check {
  /// A check with the first three offences, and the number of the others.
  init(_ promise: String, _ extent: String, firstOf offences: [String]) {
    let others = offences.count > 3 ? ["and \(offences.count - 3) more"] : []
    self.init(promise: promise, extent: extent, evidence: offences.prefix(3) + others)
  }
}

extension String {
  fileprivate var onOneLine: String { split(separator: "\n").joined(separator: " ") }
}
