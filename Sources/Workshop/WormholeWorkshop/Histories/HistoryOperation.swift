/// The content of a register: a number that the recording program chose; `nil` stands for
/// "nothing".
package typealias HistoryValue = UInt64

/// One operation on one register, as its calling process saw it.
///
/// Times are nanoseconds of one clock that all recording processes share (CLOCK_BOOTTIME). A thread
/// that makes its own calls counts as a process.
package struct HistoryOperation: Hashable, Codable, Sendable {
  package enum Call: Hashable, Codable, Sendable {
    case read
    /// `nil` removes the content.
    case write(HistoryValue?)
    /// Replaces `expected` with `new`, in one step, if the register holds `expected`.
    case compareAndSwap(expected: HistoryValue?, new: HistoryValue)
    /// Reads `from` and replaces it with `to`, in one step. If the outcome is unknown, this is the
    /// last attempt, which may have taken effect.
    case update(from: HistoryValue?, to: HistoryValue?)
  }

  package enum Answer: Hashable, Codable, Sendable {
    /// The value that `read` found.
    case value(HistoryValue?)
    /// Whether `compareAndSwap` found the expected value.
    case swapped(Bool)
    /// `write` and `update` return nothing else.
    case done
  }

  package enum Outcome: Hashable, Codable, Sendable {
    case completed(Answer, at: UInt64)
    /// The process was killed, or got an error that leaves the outcome open: the operation may take
    /// effect at any time after its invocation, or never.
    case unknown
  }

  package let process: Int
  package let key: String
  package let call: Call
  package let invocation: UInt64
  package let outcome: Outcome

  /// Creates an operation; traps if the answer does not fit the call.
  package init(process: Int, key: String, call: Call, invocation: UInt64, outcome: Outcome) {
    if case .completed(let answer, at: let response) = outcome {
      precondition(call.canReturn(answer), "\(call) cannot return \(answer)")
      precondition(invocation <= response, "an operation cannot return before it is called")
    }
    self.process = process
    self.key = key
    self.call = call
    self.invocation = invocation
    self.outcome = outcome
  }

  /// The time of the answer, or `nil` if there was none.
  package var response: UInt64? {
    if case .completed(_, at: let time) = outcome { time } else { nil }
  }
}

extension HistoryOperation.Call {
  fileprivate func canReturn(_ answer: HistoryOperation.Answer) -> Bool {
    switch (self, answer) {
    case (.read, .value), (.compareAndSwap, .swapped), (.write, .done), (.update, .done): true
    default: false
    }
  }
}
