import FoundationEssentials
import Testing
import WormholeTestSupport
import WormholeWorkshop

@testable import WormholeTorture

/// Tries every order of at most six operations, by the definition alone.
private func hasOrder(of history: [HistoryOperation], value: HistoryValue? = nil) -> Bool {
  let required = history.compactMap(\.response)
  if required.isEmpty { return true }
  for (index, operation) in history.enumerated() {
    var rest = history
    rest.remove(at: index)
    // An operation that returned before this one was called comes before it.
    if rest.compactMap(\.response).contains(where: { $0 < operation.invocation }) { continue }
    guard let after = result(of: operation, on: value) else { continue }
    if hasOrder(of: rest, value: after) { return true }
  }
  return false
}

/// Returns the register's content after the operation, or `nil` if the answer is impossible.
private func result(of operation: HistoryOperation, on value: HistoryValue?) -> HistoryValue?? {
  let isUnknown = operation.outcome == .unknown
  switch operation.call {
  case .read:
    if isUnknown { return .some(value) }
    return operation.outcome == .completed(.value(value), at: operation.response ?? 0)
      ? .some(value) : nil
  case .write(let new): return .some(new)
  case .update(let from, let to): return from == value ? .some(to) : nil
  case .compareAndSwap(let expected, let new):
    let swaps = expected == value
    if isUnknown { return .some(swaps ? new : value) }
    let fits = operation.outcome == .completed(.swapped(swaps), at: operation.response ?? 0)
    return fits ? .some(swaps ? new : value) : nil
  }
}

/// Returns up to six operations on few values, executed in a true order, some of them then
/// falsified.
private func randomHistory(using random: inout SeededGenerator) -> [HistoryOperation] {
  let count = Int.random(in: 1...6, using: &random)
  let span = UInt64.random(in: 1...12, using: &random)
  var value: HistoryValue?
  var history: [HistoryOperation] = []
  for round in 0..<count {
    let instant = UInt64(round) * 4 + 20
    let called = instant - UInt64.random(in: 0...span, using: &random)
    let returned = instant + UInt64.random(in: 0...span, using: &random)
    let isUnknown = Int.random(in: 0..<5, using: &random) == 0
    let lies = Int.random(in: 0..<7, using: &random) == 0
    let other: HistoryValue? =
      Bool.random(using: &random) ? nil : .random(in: 1...3, using: &random)
    let found = lies ? other : value
    let new = HistoryValue.random(in: 1...3, using: &random)
    var call = HistoryOperation.Call.read
    var answer = HistoryOperation.Answer.done
    var after = value
    switch Int.random(in: 0..<8, using: &random) {
    case 0, 1: answer = .value(found)
    case 2, 3: (call, after) = (.write(new), new)
    case 4:
      let expected = Bool.random(using: &random) ? value : other
      (call, answer) = (
        .compareAndSwap(expected: expected, new: new), .swapped((expected == value) != lies)
      )
      if expected == value { after = new }
    case 5: (call, after) = (.update(from: found, to: new), new)
    case 6:
      // An update that adds one.
      (call, after) = (.update(from: found, to: (found ?? 0) + 1), (value ?? 0) + 1)
    default: (call, after) = (.write(nil), nil)
    }
    if !isUnknown || Bool.random(using: &random) { value = after }
    history.append(
      HistoryOperation(
        process: round, key: "k", call: call, invocation: called,
        outcome: isUnknown ? .unknown : .completed(answer, at: returned)))
  }
  return history.shuffled(using: &random)
}

@Suite("Random histories", .blocking)
struct RandomHistoryTests {
  @Test("get the verdict that trying every order gives; HISTORY_SEED repeats a run")
  func agreesWithBruteForce() {
    let given = ProcessInfo.processInfo.environment["HISTORY_SEED"].flatMap { UInt64($0) }
    let seed = given ?? UInt64.random(in: 0...UInt64.max)
    print("HISTORY_SEED=\(seed)")
    var random = SeededGenerator(seed: seed)
    var rejected = 0
    let runs = 5_000
    for run in 0..<runs {
      let history = randomHistory(using: &random)
      let expected = hasOrder(of: history)
      let verdict = checkLinearizability(of: history)
      if !expected { rejected += 1 }
      if expected != verdict.isLinearizable || expected == (verdict.violation != nil) {
        let lines = history.map { "\($0)" }.joined(separator: "\n")
        Issue.record(
          "HISTORY_SEED=\(seed), history \(run): trying every order says \(expected)\n\(lines)")
        return
      }
      guard let violation = verdict.violation else { continue }
      // The contradiction is visible at the end of the window, and not before.
      let end = violation.end
      if hasOrder(of: known(of: history, at: end)) || !hasOrder(of: known(of: history, at: end - 1))
      {
        Issue.record("HISTORY_SEED=\(seed), history \(run): not visible at \(end)\n\(violation)")
        return
      }
    }
    // A generator that hardly ever lies, or always does, would test little.
    #expect((runs / 10...runs * 9 / 10).contains(rejected), "rejected \(rejected) of \(runs)")
  }

  @Test("of 5,000 operations of 8 processes are accepted, and rejected after one false answer")
  func long() throws {
    var random = SeededGenerator(seed: 8)
    let history = longHistory(operations: 5_000, processes: 8, using: &random)
    #expect(checkLinearizability(of: history).isLinearizable)

    let middle = try #require(history.indices.dropFirst(2_500).first { history[$0].call == .read })
    var falsified = history
    falsified[middle] = read(
      1, by: history[middle].process, history[middle].invocation,
      try #require(history[middle].response))
    let violation = try #require(checkLinearizability(of: falsified).violation)
    #expect(violation.operations.contains(falsified[middle]))
    #expect(violation.operations.count < 40)
  }

  /// Returns the view of eight processes on one working register; every written value is new.
  private func longHistory(
    operations: Int, processes: Int, using random: inout SeededGenerator
  ) -> [HistoryOperation] {
    var free = Array(repeating: UInt64(0), count: processes)
    var value: HistoryValue?
    var history: [HistoryOperation] = []
    for round in 1...operations {
      let instant = UInt64(round) * 100
      let process = free.indices.filter { free[$0] < instant }.randomElement(using: &random) ?? 0
      let called = max(
        free[process] + 1, instant - min(instant, .random(in: 0...400, using: &random)))
      let returned = max(called, instant) + .random(in: 0...60, using: &random)
      free[process] = returned
      guard called <= instant else { continue }
      let new = HistoryValue(round)
      let isKilled = round % 50 == 0
      let outcome = { (answer: HistoryOperation.Answer) -> HistoryOperation.Outcome in
        isKilled ? .unknown : .completed(answer, at: returned)
      }
      let operation: (HistoryOperation.Call, HistoryOperation.Outcome)
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<5: operation = (.read, outcome(.value(value)))
      case 5..<8:
        operation = (.write(new), outcome(.done))
        value = new
      case 8:
        operation = (.compareAndSwap(expected: value, new: new), outcome(.swapped(true)))
        value = new
      default:
        operation = (.update(from: value, to: new), outcome(.done))
        value = new
      }
      history.append(
        HistoryOperation(
          process: process, key: "k", call: operation.0, invocation: called, outcome: operation.1))
    }
    return history
  }
}

/// Returns the knowledge at a time: an operation that had not returned by then may or may not have
/// acted.
private func known(of history: [HistoryOperation], at end: UInt64) -> [HistoryOperation] {
  history.compactMap { operation in
    if operation.invocation > end { return nil }
    guard case .completed(let answer, at: let response) = operation.outcome, response > end
    else { return operation }
    if answer == .swapped(false) { return nil }
    return HistoryOperation(
      process: operation.process, key: operation.key, call: operation.call,
      invocation: operation.invocation, outcome: .unknown)
  }
}
