/// What a register holds: a number that the recording program chose; `nil` stands for "nothing".
package typealias Value = UInt64

/// One operation on one register, as the process that called it saw it.
///
/// Times are nanoseconds of one clock that all recording processes share (CLOCK_BOOTTIME). A thread that
/// calls on its own counts as a process of its own.
package struct Operation: Hashable, Sendable {
  /// What was asked.
  package enum Call: Hashable, Sendable {
    case read
    case write(Value)
    /// Replaces `expected` by `new`, in one step, if the register holds `expected`.
    case compareAndSwap(expected: Value?, new: Value)
    /// Read `from` and replaced it by `to`, in one step. Where the outcome is unknown, this is the last
    /// attempt, which may have been the one that took effect.
    case update(from: Value?, to: Value?)
    /// Adds one, in one step, nothing counting as zero; for callers that cannot record attempts.
    case increment
    case remove
  }

  /// What came back.
  package enum Answer: Hashable, Sendable {
    /// What `read` found, or what `increment` found before it added one.
    case value(Value?)
    /// Whether `compareAndSwap` found what it expected.
    case swapped(Bool)
    /// `write`, `update` and `remove` have nothing to tell beyond having happened.
    case done
  }

  package enum Outcome: Hashable, Sendable {
    case completed(Answer, at: UInt64)
    /// The process was killed, or got an error that does not say: the operation may take effect at any
    /// time after its invocation, or never.
    case unknown
  }

  package let process: Int
  package let key: String
  package let call: Call
  package let invocation: UInt64
  package let outcome: Outcome

  /// Makes an operation; an answer that its call cannot give is a mistake of the program.
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

  /// When the answer came; `nil` where none did.
  package var response: UInt64? {
    if case .completed(_, at: let time) = outcome { time } else { nil }
  }
}

extension Operation.Call {
  package func canReturn(_ answer: Operation.Answer) -> Bool {
    switch (self, answer) {
    case (.read, .value), (.increment, .value), (.compareAndSwap, .swapped): true
    case (.write, .done), (.update, .done), (.remove, .done): true
    default: false
    }
  }
}
