import Histories

/// Operations as a test lists them: the value, the process, the call and the return.
func write(_ value: Value, by process: Int, _ from: UInt64, _ to: UInt64) -> Histories.Operation {
  completed(.write(value), .done, by: process, from, to)
}

func read(_ value: Value?, by process: Int, _ from: UInt64, _ to: UInt64) -> Histories.Operation {
  completed(.read, .value(value), by: process, from, to)
}

func swap(
  _ expected: Value?, for new: Value, _ swapped: Bool, by process: Int, _ from: UInt64,
  _ to: UInt64
) -> Histories.Operation {
  completed(
    .compareAndSwap(expected: expected, new: new), .swapped(swapped), by: process, from, to)
}

func update(_ from: Value?, to: Value?, by process: Int, _ called: UInt64, _ returned: UInt64)
  -> Histories.Operation
{
  completed(.update(from: from, to: to), .done, by: process, called, returned)
}

func remove(by process: Int, _ from: UInt64, _ to: UInt64) -> Histories.Operation {
  completed(.remove, .done, by: process, from, to)
}

func increment(finding found: Value?, by process: Int, _ from: UInt64, _ to: UInt64)
  -> Histories.Operation
{
  completed(.increment, .value(found), by: process, from, to)
}

func completed(
  _ call: Histories.Operation.Call, _ answer: Histories.Operation.Answer, by process: Int,
  _ from: UInt64, _ to: UInt64, key: String = "k"
) -> Histories.Operation {
  Histories.Operation(
    process: process, key: key, call: call, invocation: from,
    outcome: .completed(answer, at: to))
}

func unknown(_ call: Histories.Operation.Call, by process: Int, _ from: UInt64)
  -> Histories.Operation
{
  Histories.Operation(process: process, key: "k", call: call, invocation: from, outcome: .unknown)
}

extension Verdict {
  var isLinearizable: Bool { if case .linearizable = self { true } else { false } }
  var violation: Violation? { if case .violation(let violation) = self { violation } else { nil } }
}
