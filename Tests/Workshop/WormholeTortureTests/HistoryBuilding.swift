import WormholeWorkshop

/// Operations as a test lists them: the value, the process, the call and the return.
func write(_ value: HistoryValue, by process: Int, _ from: UInt64, _ to: UInt64) -> HistoryOperation
{
  completed(.write(value), .done, by: process, from, to)
}

func read(_ value: HistoryValue?, by process: Int, _ from: UInt64, _ to: UInt64) -> HistoryOperation
{
  completed(.read, .value(value), by: process, from, to)
}

func swap(
  _ expected: HistoryValue?, for new: HistoryValue, _ swapped: Bool, by process: Int,
  _ from: UInt64,
  _ to: UInt64
) -> HistoryOperation {
  completed(
    .compareAndSwap(expected: expected, new: new), .swapped(swapped), by: process, from, to)
}

func update(
  _ from: HistoryValue?, to: HistoryValue?, by process: Int, _ called: UInt64, _ returned: UInt64
)
  -> HistoryOperation
{
  completed(.update(from: from, to: to), .done, by: process, called, returned)
}

func remove(by process: Int, _ from: UInt64, _ to: UInt64) -> HistoryOperation {
  completed(.write(nil), .done, by: process, from, to)
}

func completed(
  _ call: HistoryOperation.Call, _ answer: HistoryOperation.Answer, by process: Int,
  _ from: UInt64, _ to: UInt64, key: String = "k"
) -> HistoryOperation {
  HistoryOperation(
    process: process, key: key, call: call, invocation: from,
    outcome: .completed(answer, at: to))
}

func unknown(_ call: HistoryOperation.Call, by process: Int, _ from: UInt64)
  -> HistoryOperation
{
  HistoryOperation(process: process, key: "k", call: call, invocation: from, outcome: .unknown)
}

extension Verdict {
  var isLinearizable: Bool { if case .linearizable = self { true } else { false } }
  var violation: Violation? { if case .violation(let violation) = self { violation } else { nil } }
}
