/// The checks of the workers' journals.
struct JournalChecks {
  let records: Records

  var all: [Check] {
    [nothingTorn, nothingLate, nothingFailed, postsHeard]
  }

  private var nothingTorn: Check {
    check("no value is torn or mixed", extent: "every read") { entry in
      if case .torn(let sentence) = entry { sentence } else { nil }
    }
  }

  private var nothingLate: Check {
    let count = records.count(.timedOut)
    return check("no wait goes beyond its deadline", extent: "\(count) deadlines passed") { entry in
      if case .late(let sentence) = entry { sentence } else { nil }
    }
  }

  private var nothingFailed: Check {
    check("no operation fails for another reason", extent: "every operation") { entry in
      if case .failed(let sentence) = entry { sentence } else { nil }
    }
  }

  private func check(
    _ promise: String, extent: String, _ pick: (JournalEntry) -> String?
  ) -> Check {
    let found = records.entries(pick)
    var evidence = found.prefix(3).map { "worker \($0.life): \($0.detail)" }
    if found.count > 3 { evidence.append("and \(found.count - 3) more") }
    return Check(promise: promise, extent: extent, evidence: evidence)
  }

  private var postsHeard: Check {
    let posts = BellHistory.posts(in: records)
    var checks = 0
    var evidence: [String] = []
    for journal in records.journals {
      var last: [String: BellHistory.Look] = [:]
      for case .checked(let bell, let from, let to, let heard) in journal.entries {
        checks += 1
        defer { last[bell] = BellHistory.Look(from: from, to: to) }
        guard let before = last[bell] else { continue }
        let history = posts[bell] ?? BellHistory()
        if let wrong = history.contradiction(
          before, BellHistory.Look(from: from, to: to), heard: heard)
        {
          evidence.append("worker \(journal.life), \(bell): \(wrong)")
        }
      }
    }
    let count = posts.values.reduce(0) { $0 + $1.posts.count }
    return Check(
      promise: "a check reports whether there was a post since the last check",
      extent: "\(checks) checks, \(count) posts", evidence: Array(evidence.prefix(3)))
  }
}

/// The posts of a notification.
struct BellHistory {
  struct Post {
    let from: UInt64
    /// Nil for the post of a killed process, which may or may not have taken effect by then.
    let to: UInt64?
  }

  /// The time of one check.
  struct Look {
    let from: UInt64
    let to: UInt64
  }

  var posts: [Post] = []

  static func posts(in records: Records) -> [String: BellHistory] {
    var histories: [String: BellHistory] = [:]
    for journal in records.journals {
      var open: (bell: String, from: UInt64)?
      for entry in journal.entries {
        switch entry {
        case .posting(let bell, let time): open = (bell, time)
        case .posted(let time):
          guard let begun = open else { continue }
          histories[begun.bell, default: BellHistory()].posts.append(
            Post(from: begun.from, to: time))
          open = nil
        default: continue
        }
      }
      if let open {
        histories[open.bell, default: BellHistory()].posts.append(Post(from: open.from, to: nil))
      }
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
