import WormholeSeam
import WormholeWorkshop

/// Decides whether the outcome of a schedule keeps the promises.
struct Oracle {
  let plan: Schedule.Plan
  let outcome: Outcome

  /// A call of a participant, and its answer.
  struct Call {
    let process: Int
    let words: [String]
    let number: UInt64
    let from: UInt64
    let began: Int64
    var to: UInt64?
    var ended: Int64 = 0
    var answer: [String] = []
    var failure: String?
    /// What the closure found in its last run.
    var found: [String] = []
    /// When an accessor had made its change.
    var told: UInt64?
    /// Whether it has joined or received something, after which it may lose that.
    var hasBegun = false
  }

  /// The longest wait that any operation is granted, and more for its own steps.
  static let patience: Int64 = 11_000_000_000

  /// Returns what is wrong, or nil.
  func violation() -> String? {
    switch outcome.end {
    case seam_deadlock: return "deadlock: every process waits, and no time ends it"
    case seam_endless: return "endless: \(outcome.steps) steps"
    case seam_stuck: return "stuck: a thread does not give way"
    default: break
    }
    for (process, status) in outcome.statuses.enumerated() where status > 0 {
      return "process \(process) ended with \(status)"
    }
    let isCalm = outcome.statuses.allSatisfy { $0 == 0 } && !outcome.wasStopped.contains(true)
    let faults: [Substring] = ["broken", "litter", "site", "wrong:", "left"]
    for line in outcome.notes.joined() where line.first.map(faults.contains) == true {
      // A process that was killed leaves something for the next one.
      if line.first == "site" || line.first == "left", !isCalm { continue }
      // A sweep does not wait long for a process that runs.
      if line.contains("sweep:"), line.contains("running;") { continue }
      return line.joined(separator: " ")
    }
    let calls = outcome.notes.indices.flatMap(calls(of:))
    for (process, notes) in outcome.notes.enumerated() where !outcome.wasStopped[process] {
      if let torn = notes.first(where: { $0[0] == "torn" }) {
        return "process \(process) read in one access \(torn[1]), then \(torn[2])"
      }
    }
    for call in calls {
      let name = "\(call.words.joined(separator: " ")) of process \(call.process)"
      let isExcused = outcome.wasStopped[call.process]
      if let failure = call.failure, !isAllowed(failure, of: call) {
        return "\(name) failed: \(failure)"
      }
      if call.to != nil, !isExcused, call.ended - call.began > Self.patience {
        return "\(name) took \((call.ended - call.began) / 1_000_000) ms"
      }
    }
    return registers(calls) ?? pairs(calls) ?? deliveries(calls) ?? consumers() ?? keys(calls)
      ?? messages(calls) ?? exclusions() ?? answers(calls) ?? observations(calls)
      ?? readersBehind(calls)
  }

  /// Whether an operation may end with an error: one that was stopped may have lost its place, and one that
  /// waits for a process which may not be overtaken may have waited in vain.
  private func isAllowed(_ failure: String, of call: Call) -> Bool {
    let kind = call.words[0]
    // A process that gets no turn for long is slower than the term of its lease.
    if failure.contains("longer than its term"),
      outcome.choices.count(where: { $0.action == .time }) > 20
    {
      return true
    }
    if kind == "cinner", failure.contains("no such"), plan.roles.joined().contains("cmovedir") {
      return true
    }
    let isStopped = outcome.wasStopped[call.process]
    if kind == "cupload", isStopped, failure.contains("no such file") { return true }
    if ["join", "subscribe"].contains(kind), !call.hasBegun { return false }
    if outcome.wasStopped[call.process], !Self.repeating.contains(kind),
      [
        "overtaken", "took it over", "taken the role over", "reads under this name", "lost",
        "replaced this one", "was taken over",
      ].contains(where: { failure.contains($0) })
    {
      return true
    }
    let others = outcome.wasStopped.indices.contains {
      $0 != call.process && outcome.wasStopped[$0]
    }
    // An accessor that was stopped continues to move what it works on in place, although it was overtaken.
    if others, ["cmove", "cinner"].contains(kind), failure.contains("No such file") { return true }
    return kind == "mutex" && others && failure.contains("wait longer")
  }

  /// What a process that was stopped repeats by itself.
  private static let repeating = [
    "update", "replace", "remove", "large", "durable", "both", "read",
  ]

  /// What did not end within a time after the last choice, or nil.
  func lateness(_ limit: Int64 = 1_000_000_000) -> String? {
    guard outcome.silence > 0 else { return nil }
    // These wait for a time of their own.
    let waiting = ["observe", "take", "work", "drop", "serve", "call"]
    for call in outcome.notes.indices.flatMap(calls(of:)) where !waiting.contains(call.words[0]) {
      let late = call.ended - max(outcome.silence, call.began)
      if call.to != nil, late > limit {
        return
          "\(call.words[0]) of process \(call.process) ended \(late / 1_000_000) ms after the storm"
      }
    }
    return nil
  }

  private func calls(of process: Int) -> [Call] {
    var calls: [Call] = []
    for line in outcome.notes[process] {
      let words = line.map(String.init)
      switch words[0] {
      case "call":
        calls.append(
          Call(
            process: process, words: Array(words[4...]), number: UInt64(words[3]) ?? 0,
            from: UInt64(words[1]) ?? 0, began: Int64(words[2]) ?? 0))
      case "answer", "failure":
        guard var call = calls.popLast() else { continue }
        call.to = UInt64(words[1])
        call.ended = Int64(words[2]) ?? 0
        if words[0] == "answer" {
          call.answer = Array(words[3...])
        } else {
          call.failure = words[3...].joined(separator: " ")
        }
        calls.append(call)
      case "try", "both", "told", "joined", "subscribed":
        guard var call = calls.popLast() else { continue }
        switch words[0] {
        case "told": call.told = UInt64(words[1])
        case "joined", "subscribed": call.hasBegun = true
        default: call.found = Array(words[1...])
        }
        calls.append(call)
      default: continue
      }
    }
    return calls
  }

  // MARK: Values

  /// Each value is a register.
  private func registers(_ calls: [Call]) -> String? {
    var operations = calls.flatMap(operations(of:))
    let end = (calls.map { max($0.from, $0.to ?? 0) }.max() ?? 0) + 1
    for line in outcome.notes[Participant.last] where line[0] == "final" {
      operations.append(
        HistoryOperation(
          process: Participant.last, key: String(line[1]), call: .read, invocation: end,
          outcome: .completed(.value(UInt64(line[2])), at: end)))
      if line[2] == "damaged" { return "\(line[1]) is damaged" }
    }
    // A change in place is not made in one step.
    let isTorn = plan.roles.indices.contains {
      !Set(plan.roles[$0]).isDisjoint(with: ["cplace", "cmove"])
        && (outcome.wasStopped[$0] || outcome.statuses[$0] == -1)
    }
    if isTorn { operations.removeAll { ["f", "g"].contains($0.key) } }
    switch checkLinearizability(of: operations, initial: ["a": 1, "b": 1, "f": 1, "i": 1]) {
    case .linearizable: return nil
    case .violation(let violation): return "not linearizable: \(violation)"
    case .undecided: return "undecided"
    }
  }

  private func operations(of call: Call) -> [HistoryOperation] {
    func operation(
      _ kind: HistoryOperation.Call, _ answer: HistoryOperation.Answer, key: String? = nil
    ) -> HistoryOperation {
      HistoryOperation(
        process: call.process, key: key ?? call.words[1], call: kind, invocation: call.from,
        outcome: call.to.map { .completed(answer, at: $0) } ?? .unknown)
    }
    // It has changed nothing.
    if call.failure != nil { return [] }
    switch call.words[0] {
    case "cread":
      // A change in place passes a stopped reader, which may find parts of both contents.
      let wasPassed =
        outcome.wasStopped[call.process] && plan.roles.contains { $0.contains("cplace") }
      guard call.to != nil, !wasPassed else { return [] }
      let key = call.answer[1] == "moved" ? "g" : "f"
      return [operation(.read, .value(UInt64(call.answer[0])), key: key)]
    case "cwrite", "cplace", "cshare", "cinner":
      guard call.found.count == 3 else { return [] }
      // It follows what was moved while it waited.
      let key = call.words[0] == "cinner" ? "i" : call.found[2] == "moved" ? "g" : "f"
      return [operation(.update(from: UInt64(call.found[0]), to: call.number), .done, key: key)]
    case "cmove":
      guard let content = call.found.first.map({ UInt64($0) }) else { return [] }
      if content == nil { return [operation(.read, .value(nil), key: "f")] }
      return [
        operation(.update(from: content, to: nil), .done, key: "f"),
        operation(.write(content), .done, key: "g"),
      ]
    case "cdelete":
      guard let name = call.found.first else { return [] }
      return [operation(.write(nil), .done, key: name == "moved" ? "g" : "f")]
    case "read":
      guard call.to != nil else { return [] }
      return [operation(.read, .value(UInt64(call.answer[0])))]
    case "replace", "durable", "large": return [operation(.write(call.number), .done)]
    case "remove": return [operation(.write(nil), .done)]
    case "update", "settle":
      guard call.found.count == 2 else { return [] }
      return [operation(.update(from: UInt64(call.found[0]), to: call.number), .done)]
    case "both", "bothd":
      guard call.found.count == 3 else { return [] }
      return ["a", "b"].enumerated().map { index, key in
        operation(.update(from: UInt64(call.found[index]), to: call.number), .done, key: key)
      }
    case "pair", "copy":
      guard call.to != nil else { return [] }
      return ["a", "b"].enumerated().map { index, key in
        operation(.read, .value(UInt64(call.answer[index])), key: key)
      }
    default: return []
    }
  }

  /// Values that only transactions change are equal in each of them, and at the end.
  private func pairs(_ calls: [Call]) -> String? {
    let changers = ["update", "replace", "durable", "large", "remove", "settle"]
    guard !calls.contains(where: { changers.contains($0.words[0]) }) else { return nil }
    for call in calls where ["both", "bothd", "pair", "copy"].contains(call.words[0]) {
      let values = call.words[0].hasPrefix("both") ? call.found : call.answer
      if values.count >= 2, values[0] != values[1] {
        return "torn: \(call.words[0]) of process \(call.process) found \(values[0]), \(values[1])"
      }
    }
    let final = outcome.notes[Participant.last].filter {
      $0[0] == "final" && ["a", "b"].contains($0[1])
    }.map { $0[2] }
    return Set(final).count > 1 ? "torn: in the end \(final)" : nil
  }

  // MARK: Queues, logs, roles, calls

  /// The process, the number that orders all reports, and the content.
  private typealias Report = (process: Int, stamp: UInt64, text: String)

  private func reports(_ kind: String) -> [Report] {
    outcome.notes.enumerated().flatMap { process, lines in
      lines.filter { $0[0] == kind }.map {
        (process, UInt64($0[1]) ?? 0, $0.count > 2 ? String($0[2]) : "")
      }
    }.sorted { $0.stamp < $1.stamp }
  }

  /// Whether an entry was received after it had been acknowledged. A process that was stopped between its
  /// last look and its work may begin what another has done, but cannot acknowledge it.
  private func isRepeated(_ done: Report, in received: [Report]) -> Bool {
    let acknowledged = reports("acknowledged")
    return received.contains { again in
      again.text == done.text && again.stamp > done.stamp
        && (!outcome.wasStopped[again.process]
          || acknowledged.contains {
            $0.process == again.process && $0.stamp > again.stamp
              && $0.text == again.text
          })
    }
  }

  private var last: [[Substring]] { outcome.notes[Participant.last] }

  /// What was sent is processed, or is still there; what was acknowledged never comes again.
  private func deliveries(_ calls: [Call]) -> String? {
    let sends = calls.filter { ["send", "burst"].contains($0.words[0]) }
    guard !sends.isEmpty, !last.isEmpty else { return nil }
    let (got, done) = (reports("got"), reports("acknowledged"))
    let refused = reports("refused")
    let known = Set(sends.flatMap(Self.entries))
    for entry in got.map(\.text) + rest where !known.contains(entry) {
      return "\(entry) was never sent"
    }
    if let entry = done.first(where: { isRepeated($0, in: got) || rest.contains($0.text) }) {
      return "\(entry.text) was acknowledged, and delivered again"
    }
    for send in sends where send.to != nil && send.failure == nil {
      for text in Self.entries(of: send) {
        let isProcessed = got.contains {
          $0.text == text
            && ((done + refused).map(\.text).contains(text) || outcome.statuses[$0.process] == -1)
        }
        if !isProcessed, !rest.contains(text) { return "\(text) was sent, and is lost" }
        if rest.count(where: { $0 == text }) > 1 { return "\(text) is there twice" }
      }
    }
    return disorder(rest, "the rest")
      ?? plan.roles.indices.lazy.compactMap { process in
        // What another worker had when it was stopped or killed comes after later entries, and so does
        // what was stored together with others.
        let isAfterOther = plan.roles.indices.contains {
          $0 != process && plan.roles[$0].contains { $0.hasPrefix("work") }
            && (outcome.wasStopped[$0] || outcome.statuses[$0] == -1)
        }
        guard !isAfterOther else { return nil }
        let own = got.filter {
          $0.process == process && Int($0.text).map { $0 % 100 < 50 } == true
        }
        return disorder(own.map(\.text), "process \(process)")
      }.first
  }

  private static func entries(of send: Call) -> [String] {
    send.words[0] == "burst"
      ? [0, 51, 52, 53].map { String(send.number + $0) } : [String(send.number)]
  }

  private var rest: [String] { last.filter { $0[0] == "rest" }.map { String($0[1]) } }

  /// One that has the queue alone, and was replaced by one that runs, acknowledges nothing more.
  private func consumers() -> String? {
    let (joins, ends) = (reports("joined"), reports("closed"))
    guard !plan.roles.joined().contains(where: { $0.hasPrefix("work") }) else { return nil }
    for done in reports("acknowledged") {
      let own = joins.last { $0.process == done.process && $0.stamp < done.stamp }
      let other = joins.first { other in
        other.process != done.process && other.stamp > own?.stamp ?? .max
          && other.stamp < done.stamp && !outcome.wasStopped[other.process]
          && outcome.statuses[other.process] != -1
          && !ends.contains { $0.process == other.process && $0.stamp < done.stamp }
      }
      if let other { return "process \(done.process) consumes beside \(other.process)" }
    }
    return nil
  }

  /// Of entries with one key only one waits, unless a process was killed before it had looked.
  private func keys(_ calls: [Call]) -> String? {
    let sends = calls.filter { $0.words[0] == "keyed" && $0.to != nil && $0.failure == nil }
    guard !sends.isEmpty, !last.isEmpty else { return nil }
    if rest.isEmpty, reports("got").isEmpty { return "no entry of the key is left" }
    return rest.count > 1 && !outcome.statuses.contains(-1) ? "of the key wait \(rest)" : nil
  }

  /// A coordinated read that begins after an accessor has told of its change returns that change.
  private func readersBehind(_ calls: [Call]) -> String? {
    for write in calls where write.words[0] == "cwrite" && write.failure == nil {
      guard let told = write.told, let old = write.found.first, old != "nothing",
        !outcome.wasStopped[write.process], outcome.statuses[write.process] == 0
      else { continue }
      let late = calls.first {
        $0.words[0] == "cread" && $0.from > told && $0.answer.first == old
      }
      if let late { return "process \(late.process) read \(old), which was replaced before" }
    }
    return nil
  }

  /// The entries of each sender come in their order.
  private func disorder(_ entries: [String], _ who: String) -> String? {
    let bySender = Dictionary(grouping: entries.compactMap { UInt64($0) }) { $0 / 100 }
    let wrong = bySender.values.first { $0 != $0.sorted() }
    return wrong.map { "\(who) received \($0), in another order than sent" }
  }

  /// A log is one sequence, which each reader sees from the beginning.
  private func messages(_ calls: [Call]) -> String? {
    guard let line = last.first(where: { $0[0] == "log" }) else { return nil }
    let log = line.dropFirst().map(String.init)
    let appends = calls.filter { $0.words[0] == "append" }
    let known = Set(appends.map { String($0.number) })
    if Set(log).count != log.count || !known.isSuperset(of: log) { return "the log has \(log)" }
    for append in appends where append.to != nil && append.failure == nil {
      guard let place = log.firstIndex(of: String(append.number)) else {
        return "\(append.number) was appended, and is not in the log \(log)"
      }
      let earlier = appends.filter { ($0.to ?? .max) < append.from }.map { String($0.number) }
      for other in earlier where (log.firstIndex(of: other) ?? 0) > place {
        return "\(other) was appended before \(append.number), but the log is \(log)"
      }
    }
    for reader in calls where reader.words[0] == "messages" && reader.to != nil {
      if !log.starts(with: reader.answer) { return "a reader saw \(reader.answer) of \(log)" }
      let before = appends.filter { ($0.to ?? .max) < reader.from }.map { String($0.number) }
      for number in before where !reader.answer.contains(number) {
        return "a reader missed \(number)"
      }
    }
    guard plan.roles.joined().contains("subscribe") else { return nil }
    let (got, done) = (reports("got"), reports("acknowledged"))
    if let entry = done.first(where: { isRepeated($0, in: got) }) {
      return "message \(entry.text) was acknowledged, and delivered again"
    }
    var read = done.map(\.text)
    // A process that was stopped in between says late what has taken effect before.
    if done.contains(where: { outcome.wasStopped[$0.process] }) { read = log.filter(read.contains) }
    // What a killed process has received, it may have acknowledged without saying so.
    let unsaid = got.filter { outcome.statuses[$0.process] == -1 }.map(\.text)
    let certain = log.filter { read.contains($0) || !unsaid.contains($0) }
    return certain.starts(with: read) ? nil : "acknowledged \(read) of \(log)"
  }

  /// Only one process has the role, unless it was stopped; then it learns that it has lost it.
  private func exclusions() -> String? {
    let (ins, outs) = (reports("in"), reports("out"))
    let confirmed = reports("confirmed")
    for (index, first) in ins.enumerated() {
      let end = outs.first { $0.process == first.process && $0.stamp > first.stamp }?.stamp
      for second in ins[(index + 1)...] where second.process != first.process {
        guard second.stamp < end ?? (outcome.statuses[first.process] == -1 ? 0 : .max) else {
          continue
        }
        let isLate = confirmed.contains { $0.process == first.process && $0.stamp > second.stamp }
        if isLate { return "process \(first.process) confirmed a role that \(second.process) has" }
        let mayOvertake = plan.roles[second.process].contains("exclusive")
        if !outcome.wasStopped[first.process] || !mayOvertake {
          return "processes \(first.process) and \(second.process) have one role"
        }
      }
    }
    return nil
  }

  /// An observer does not miss a change that was made a second before it gave up.
  private func observations(_ calls: [Call]) -> String? {
    for call in calls where call.words[0] == "observe" && call.to != nil && call.answer.last == "1"
    {
      let isMissed = calls.contains {
        ["replace", "update", "large", "durable"].contains($0.words[0]) && $0.failure == nil
          && $0.to.map { $0 > call.from } ?? false && $0.ended < call.ended - 1_000_000_000
      }
      if isMissed, !outcome.wasStopped[call.process] { return "an observer missed a change" }
    }
    return nil
  }

  private func answers(_ calls: [Call]) -> String? {
    for call in calls where call.words[0] == "call" && call.to != nil {
      // The end of the process that is called ends the call, unless its time was over by then.
      if call.answer.first == "timedOut", outcome.killed < call.began + 2_000_000_000 {
        return "a call outlived the process that was called"
      }
      let isRight = ["gone", "timedOut", "died", String(call.number + 1_000)].contains(
        call.answer.first)
      if !isRight { return "a call of \(call.number) was answered with \(call.answer)" }
    }
    return nil
  }
}
