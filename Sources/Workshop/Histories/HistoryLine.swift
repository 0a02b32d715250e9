/// The text in which a process records its operations: one line per operation, in a file of its
/// own.
///
///     7 counter 81200 update ; try 4 5 ; try 6 7 ; ok 93100
///     └ process └ invocation │ │                   └ ending
///       └ key (%-escaped)    │ └ attempts (update only): found, wrote
///                            └ everything before this was written before the operation began
///
/// Calling sequence: append `invocation` *before* the call, `attempt` within the closure of every
/// try of an update, and `completed`, `withoutEffect` or `unknown` afterwards, each with one write.
/// So a process that is killed at any instruction leaves at most one torn line, and the rest of
/// that line tells what may have happened: a line cut before the first `;` is an operation that
/// never began; cut later, its effect is unknown; an update without an attempt had no effect. A
/// missing value is `-`.
package enum HistoryLine {
  /// Returns the part to write before the operation begins.
  package static func invocation(process: Int, key: String, call: Operation.Call, at time: UInt64)
    -> String
  {
    "\(process) \(escape(key)) \(time) \(words(of: call)) ; "
  }

  /// Returns the part with the value that an update found and the one it is about to write. It
  /// implies that the earlier attempts failed.
  package static func attempt(from: Value?, to: Value?) -> String {
    "try \(word(from)) \(word(to)) ; "
  }

  /// Returns the end of an operation that answered.
  package static func completed(_ answer: Operation.Answer, at time: UInt64) -> String {
    switch answer {
    case .value(let value): "ok \(time) \(word(value))\n"
    case .swapped(let swapped): "ok \(time) \(swapped ? "yes" : "no")\n"
    case .done: "ok \(time)\n"
    }
  }

  /// The end of an operation that failed and certainly changed nothing; the parser drops the
  /// operation.
  package static let withoutEffect = "void\n"

  /// The end of an operation that failed in a process that lives on, and that may have had its
  /// effect.
  package static let unknown = "lost\n"

  /// Returns the whole line, for callers that record afterwards.
  package static func line(for operation: Operation) -> String {
    var line = invocation(
      process: operation.process, key: operation.key, call: operation.call,
      at: operation.invocation)
    if case .update(let from, let to) = operation.call { line += attempt(from: from, to: to) }
    switch operation.outcome {
    case .completed(let answer, at: let time): line += completed(answer, at: time)
    case .unknown: line += unknown
    }
    return line
  }

  private static func words(of call: Operation.Call) -> String {
    switch call {
    case .read: "read"
    case .write(let value): "write \(value)"
    case .compareAndSwap(let expected, let new): "cas \(word(expected)) \(new)"
    case .update: "update"
    case .increment: "increment"
    case .remove: "remove"
    }
  }

  static func word(_ value: Value?) -> String {
    if let value { String(value) } else { "-" }
  }

  /// Keeps ASCII letters, digits, `.`, `_` and `-`; other bytes become %XX; the empty key is a lone
  /// `%`.
  static func escape(_ key: String) -> String {
    var escaped = ""
    for byte in key.utf8 {
      let character = Character(UnicodeScalar(byte))
      if byte < 128, character.isLetter || character.isNumber || "._-".contains(character) {
        escaped.append(character)
      } else {
        let digits = String(byte, radix: 16)
        escaped += digits.count == 1 ? "%0\(digits)" : "%\(digits)"
      }
    }
    return escaped.isEmpty ? "%" : escaped
  }

  static func unescape(_ word: Substring) -> String? {
    if word == "%" { return "" }
    var bytes: [UInt8] = []
    var rest = word.utf8
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard let high = rest.popFirst(), let low = rest.popFirst(),
        let value = UInt8(String(decoding: [high, low], as: UTF8.self), radix: 16)
      else { return nil }
      bytes.append(value)
    }
    return String(validating: bytes, as: UTF8.self)
  }
}
