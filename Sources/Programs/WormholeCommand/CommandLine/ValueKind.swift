/// The form of an argument, checked while the command line is parsed.
enum ValueKind: Sendable, Equatable {
  /// Any text, even an empty one.
  case text
  /// Any text but the empty one.
  case identifier
  /// Any text but the empty one; completion offers the names that exist.
  case live(LiveNames)
  /// A whole number of one or more.
  case count
  /// A number of seconds, zero or more, fractions allowed.
  case seconds
  /// A whole number that fits into 64 bits.
  case unsigned
  case choice([String])
  /// Some of these, separated by commas.
  case choices([String])
  /// `NAME=value`.
  case assignment
  case directory
  case file

  /// About thirty years; a larger number is a typo, and would overflow a `Duration`.
  static let maximumSeconds = 1e9

  /// The word for a value in the help, unless the option has a better one.
  var name: String {
    switch self {
    case .seconds: "seconds"
    case .count, .unsigned: "n"
    case .directory: "directory"
    case .file: "file"
    default: "value"
    }
  }

  /// Why `text` does not fit; nil if it does.
  func problem(with text: String) -> String? {
    switch self {
    case .text: nil
    case .live(.key): nil
    case .identifier, .live, .directory, .file: text.isEmpty ? "it must not be empty" : nil
    case .count: Self.count(text) == nil ? "expected a whole number of 1 or more" : nil
    case .seconds:
      Self.seconds(text) == nil ? "expected a number of seconds from 0 to 1000000000" : nil
    case .unsigned:
      Self.unsigned(text) == nil ? "expected a whole number from 0 to \(UInt64.max)" : nil
    case .choice(let values): Self.problem(with: text, among: values)
    case .choices(let values):
      Self.list(text).compactMap { Self.problem(with: $0, among: values) }.first
    case .assignment:
      text.hasPrefix("=") || !text.contains("=") ? "expected NAME=value" : nil
    }
  }

  private static func problem(with text: String, among values: [String]) -> String? {
    guard !values.contains(text) else { return nil }
    return "\(Suggestion.sentence(for: text, among: values))please provide one of "
      + values.map { "'\($0)'" }.joined(separator: ", ")
  }

  /// The parts between commas.
  static func list(_ text: String) -> [String] {
    text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
  }

  /// The allowed values, as the help shows them.
  var choices: [String] {
    switch self {
    case .choice(let values), .choices(let values): values
    default: []
    }
  }

  static func count(_ text: String) -> Int? {
    guard text.utf8.allSatisfy(\.isDigit), let count = Int(text), count >= 1 else { return nil }
    return count
  }

  static func unsigned(_ text: String) -> UInt64? {
    text.utf8.allSatisfy(\.isDigit) ? UInt64(text) : nil
  }

  /// `Double` alone would also take "inf", "nan" and hexadecimal.
  static func seconds(_ text: String) -> Duration? {
    guard text.utf8.allSatisfy({ $0.isDigit || $0 == UInt8(ascii: ".") }),
      let seconds = Double(text), seconds <= maximumSeconds
    else { return nil }
    return .seconds(seconds)
  }

  /// Whether an argument that begins with a dash is a number, so not an option.
  static func isNegativeNumber(_ text: String) -> Bool {
    let rest = text.utf8.dropFirst()
    guard text.utf8.first == UInt8(ascii: "-"), let first = rest.first else { return false }
    return (first.isDigit || first == UInt8(ascii: ".")) && Double(text) != nil
  }
}

extension UInt8 {
  var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }
}

/// "Did you mean": finds the existing word that a mistyped one resembles.
enum Suggestion {
  /// The nearest candidate that is near enough, the first of equals.
  ///
  /// The limit is a third of the longer word, and at least one slip: short words resemble each other by
  /// chance.
  static func nearest(to word: String, among candidates: [String]) -> String? {
    var best: (word: String, distance: Int)?
    for candidate in candidates {
      let distance = distance(Array(word.utf8), Array(candidate.utf8))
      let limit = max(1, max(word.utf8.count, candidate.utf8.count) / 3)
      if distance <= limit, distance < best?.distance ?? .max { best = (candidate, distance) }
    }
    return best?.word
  }

  /// `did you mean 'x'? `, or an empty text.
  static func sentence(for word: String, among candidates: [String]) -> String {
    nearest(to: word, among: candidates).map { "did you mean '\($0)'? " } ?? ""
  }

  /// The words for one thing, here and in other programs, redis-cli, nats and etcdctl among them.
  private static let synonyms: [[String]] = [
    ["read", "get", "cat"], ["send", "set", "pub", "publish", "put"],
    ["listen", "sub", "subscribe"], ["clear", "rm", "del", "delete", "remove"],
    ["list", "ls", "keys"], ["put", "push", "add", "enqueue"], ["take", "get", "pop", "dequeue"],
    ["--version", "version"],
  ]

  /// The candidate that means the same as another program's word.
  static func synonym(of word: String, among candidates: [String]) -> String? {
    for group in synonyms where group.contains(word) {
      if let same = group.first(where: candidates.contains) { return same }
    }
    return nil
  }

  /// The edits that turn `a` into `b`: insertion, deletion, replacement, and the exchange of two
  /// neighbours, the commonest slip of all (optimal string alignment).
  static func distance(_ a: [UInt8], _ b: [UInt8]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...b.count)
    for i in a.indices {
      var row = [i + 1]
      for j in b.indices {
        let replaced = last[j] + (a[i] == b[j] ? 0 : 1)
        var least = min(replaced, last[j + 1] + 1, row[j] + 1)
        if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] {
          least = min(least, beforeLast[j - 1] + 1)
        }
        row.append(least)
      }
      (beforeLast, last) = (last, row)
    }
    return last[b.count]
  }
}
