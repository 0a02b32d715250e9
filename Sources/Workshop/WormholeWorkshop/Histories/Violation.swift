/// Operations on one register that no order explains.
package struct Violation: Sendable, CustomStringConvertible {
  package let key: String
  /// The shortest stretch that contradicts itself whatever the register held before, in the order
  /// of calls.
  package let operations: [HistoryOperation]
  /// The end of the stretch, at which the contradiction first becomes visible.
  package let end: UInt64
  /// The operations that wrote the values found but not written in the stretch: the last eight, in
  /// the order of calls.
  package let origins: ArraySlice<HistoryOperation>

  init(key: String, window: [Step], among indices: [Int], of operations: [HistoryOperation]) {
    self.key = key
    var inside = Set(window.map(\.index))
    for step in window where step.isRequired && operations[step.index].outcome == .unknown {
      if let witness = Self.witness(of: step, among: indices, of: operations) {
        inside.insert(witness)
      }
    }
    self.operations = inside.map { operations[$0] }.sorted(by: Self.isEarlier)

    end = window.compactMap(\.response).max() ?? 0

    var foreign = Set(window.compactMap(\.observed))
    for case let value? in window.map(\.produced) { foreign.remove(value) }
    let last = self.operations.last?.invocation ?? 0
    let origins = indices.filter { index in
      guard !inside.contains(index), operations[index].invocation <= last,
        let value = Step(operations[index], index: index)?.produced
      else { return false }
      return foreign.contains(value)
    }
    self.origins = origins.map { operations[$0] }.sorted(by: Self.isEarlier).suffix(8)
  }

  /// Returns the first operation that showed that an operation of unknown outcome took effect.
  private static func witness(
    of step: Step, among indices: [Int], of operations: [HistoryOperation]
  )
    -> Int?
  {
    indices.filter { index in
      operations[index].response != nil
        && Step(operations[index], index: index)?.observed == step.produced
    }.min { (operations[$0].response ?? .max) < (operations[$1].response ?? .max) }
  }

  private static func isEarlier(_ left: HistoryOperation, _ right: HistoryOperation) -> Bool {
    (left.invocation, left.process) < (right.invocation, right.process)
  }

  /// One line per operation, its time as a bar; for long stretches the last forty operations.
  package var description: String {
    let shown = operations.suffix(40)
    let first = shown.first?.invocation ?? 0
    var text = "key “\(key)”: no order of these operations explains what they returned\n"
    text += "  process    called µs  returned µs\n"
    if !origins.isEmpty {
      text += origins.map { row($0, since: first) + "  (elsewhere)\n" }.joined()
    }
    if shown.count < operations.count {
      text += "  … \(operations.count - shown.count) earlier operations …\n"
    }
    for operation in shown {
      text += row(operation, since: first)
      text += "  |" + bar(operation, from: first, to: max(first, end)) + "|\n"
    }
    return text
  }

  private func row(_ operation: HistoryOperation, since start: UInt64) -> String {
    func microseconds(_ time: UInt64) -> String {
      fixed(Double(Int64(bitPattern: time &- start)) / 1_000, 3)
    }
    let cells = [
      String(operation.process).padded(to: 7, atRight: true),
      microseconds(operation.invocation).padded(to: 12, atRight: true),
      (operation.response.map(microseconds) ?? "?").padded(to: 12, atRight: true),
    ]
    return "  " + cells.joined(separator: " ") + "  " + operation.sentence.padded(to: 34)
  }

  /// Returns forty columns of time; `>` stands for a later return or none.
  private func bar(_ operation: HistoryOperation, from start: UInt64, to end: UInt64) -> String {
    let width = 40
    func column(_ time: UInt64) -> Int {
      let share = Double(min(max(time, start), end) - start) / Double(max(end - start, 1))
      return Int(share * Double(width - 1))
    }
    let left = column(operation.invocation)
    let right = operation.response.map(column) ?? width - 1
    let isCut = (operation.response ?? .max) > end
    return String(repeating: " ", count: left)
      + String(repeating: "=", count: right - left) + (isCut ? ">" : "=")
      + String(repeating: " ", count: width - 1 - right)
  }
}

extension HistoryOperation {
  /// The call and its result, in words.
  package var sentence: String {
    let asked =
      switch call {
      case .read: "read"
      case .write(nil): "remove"
      case .write(let value?): "write \(value)"
      case .compareAndSwap(let expected, let new): "swap \(Self.word(expected)) for \(new)"
      case .update(let from, let to): "update \(Self.word(from)) to \(Self.word(to))"
      }
    return switch outcome {
    case .unknown: asked + " → unknown"
    case .completed(.value(let value), _): asked + " → \(Self.word(value))"
    case .completed(.swapped(let swapped), _): asked + (swapped ? " → swapped" : " → not swapped")
    case .completed(.done, _): asked
    }
  }

  private static func word(_ value: HistoryValue?) -> String { value.map(String.init) ?? "-" }
}
