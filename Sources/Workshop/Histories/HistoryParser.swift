/// The reason why a recorded history cannot be read.
package struct HistoryFormatError: Error, Hashable, CustomStringConvertible {
  /// The line number, counted from one.
  package let line: Int
  /// A sentence.
  package let reason: String

  package var description: String {
    "cannot read the history: line \(line): \(reason); was the file written by one process?"
  }
}

/// Reads the history that one process recorded with `HistoryLine`.
///
/// - Returns: The operations that may have had an effect or returned information, in the recorded
///   order.
/// - Throws: `HistoryFormatError` for any line that does not follow the format. A torn last line
///   follows it.
package func parseHistory(_ text: String) throws(HistoryFormatError) -> [Operation] {
  var operations: [Operation] = []
  let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
  for (index, words) in lines.enumerated() where !words.isEmpty {
    let isTorn = index == lines.count - 1
    var parser = LineParser(line: index + 1, isTorn: isTorn, text: words)
    if let operation = try parser.operation() { operations.append(operation) }
  }
  return operations
}

private struct LineParser {
  private let line: Int
  private let isTorn: Bool
  private var words: ArraySlice<Substring>

  init(line: Int, isTorn: Bool, text: Substring) {
    self.line = line
    self.isTorn = isTorn
    let all = text.split(separator: " ")
    // The text after the last `;` of a torn line may itself be cut ("ok 12" of "ok 129"), so it is
    // ignored.
    words = isTorn ? all[..<((all.lastIndex(of: ";") ?? -1) + 1)] : all[...]
  }

  mutating func operation() throws(HistoryFormatError) -> Operation? {
    if isTorn && words.isEmpty { return nil }
    let process = Int(clamping: try number("the process"))
    let keyWord = try next("the key")
    guard let key = HistoryLine.unescape(keyWord) else {
      throw error("“\(keyWord)” is not an escaped key")
    }
    let invocation = try number("the time of the call")
    var call = try self.call()
    try expectSemicolon()
    while words.first == "try" {
      words.removeFirst()
      call = .update(from: try value("the value found"), to: try value("the value written"))
      try expectSemicolon()
    }
    guard let outcome = try outcome(of: call, calledAt: invocation), let call else { return nil }
    return Operation(
      process: process, key: key, call: call, invocation: invocation, outcome: outcome)
  }

  /// `nil` for an update: its attempts determine the call.
  private mutating func call() throws(HistoryFormatError) -> Operation.Call? {
    let word = try next("the operation")
    switch word {
    case "read": return .read
    case "write": return .write(try number("the value written"))
    case "cas":
      let expected = try value("the value expected")
      return .compareAndSwap(expected: expected, new: try number("the new value"))
    case "update": return nil
    case "increment": return .increment
    case "remove": return .remove
    default: throw error("no operation is called “\(word)”")
    }
  }

  /// `nil` for an operation that certainly had no effect.
  private mutating func outcome(of call: Operation.Call?, calledAt invocation: UInt64)
    throws(HistoryFormatError) -> Operation.Outcome?
  {
    if isTorn && words.isEmpty { return .unknown }
    let word = try next("the ending")
    switch word {
    case "void": return nil
    case "lost": return .unknown
    case "ok": break
    default: throw error("no operation ends in “\(word)”")
    }
    let response = try number("the time of the answer")
    guard invocation <= response else { throw error("the answer is earlier than the call") }
    guard let call else { throw error("a completed update has no attempt") }
    let answer = try answer()
    guard call.canReturn(answer), words.isEmpty else {
      let word = words.first.map(String.init) ?? "\(answer)"
      throw error("“\(word)” is not an answer to this operation")
    }
    return .completed(answer, at: response)
  }

  private mutating func answer() throws(HistoryFormatError) -> Operation.Answer {
    switch words.first {
    case nil: return .done
    case "yes", "no": return .swapped(words.removeFirst() == "yes")
    default: return .value(try value("the answer"))
    }
  }

  private mutating func next(_ what: String) throws(HistoryFormatError) -> Substring {
    guard let word = words.popFirst() else { throw error("\(what) is missing") }
    return word
  }

  private mutating func number(_ what: String) throws(HistoryFormatError) -> UInt64 {
    let word = try next(what)
    guard let number = UInt64(word) else { throw error("“\(word)” is not a number") }
    return number
  }

  private mutating func value(_ what: String) throws(HistoryFormatError) -> Value? {
    if words.first == "-" {
      words.removeFirst()
      return nil
    }
    return try number(what)
  }

  private mutating func expectSemicolon() throws(HistoryFormatError) {
    let word = try next("the semicolon")
    guard word == ";" else { throw error("the semicolon before “\(word)” is missing") }
  }

  private func error(_ reason: String) -> HistoryFormatError {
    HistoryFormatError(line: line, reason: reason)
  }
}
