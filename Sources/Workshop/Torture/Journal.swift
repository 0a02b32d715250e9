/// A worker's report besides its history: one entry per line, in words.
enum JournalEntry: Equatable {
  case did(String)
  /// An update began again because its lease had been taken over.
  case retried
  /// A change failed because its lease had been taken over.
  case lost
  case timedOut
  case late(String)
  case torn(String)
  case failed(String)
  case posting(bell: String, at: UInt64)
  case posted(at: UInt64)
  case checked(bell: String, from: UInt64, to: UInt64, heard: Bool)
  case queue(QueueEvent)
  case file(QueueEvent)
  case request(RequestEvent)
  /// Everything that this strand began has ended.
  case rested

  var line: String {
    switch self {
    case .did(let kind): "did \(kind)\n"
    case .retried: "retried\n"
    case .lost: "lost\n"
    case .timedOut: "timed-out\n"
    case .late(let sentence): "late \(sentence.onOneLine)\n"
    case .torn(let sentence): "torn \(sentence.onOneLine)\n"
    case .failed(let sentence): "failed \(sentence.onOneLine)\n"
    case .posting(let bell, let time): "posting \(bell) \(time)\n"
    case .posted(let time): "posted \(time)\n"
    case .checked(let bell, let from, let to, let heard):
      "checked \(bell) \(from) \(to) \(heard)\n"
    case .queue(let event): "queue \(event.line)"
    case .file(let event): "file \(event.line)"
    case .request(let event): "request \(event.line)"
    case .rested: "rested\n"
    }
  }

  init(line: Substring) throws {
    var words = JournalWords(rest: line.split(separator: " ")[...])
    switch try words.next() as String {
    case "did": self = .did(words.sentence)
    case "retried": self = .retried
    case "lost": self = .lost
    case "timed-out": self = .timedOut
    case "late": self = .late(words.sentence)
    case "torn": self = .torn(words.sentence)
    case "failed": self = .failed(words.sentence)
    case "posting": self = try .posting(bell: words.next(), at: words.next())
    case "posted": self = try .posted(at: words.next())
    case "checked":
      self = try .checked(
        bell: words.next(), from: words.next(), to: words.next(), heard: words.next())
    case "queue": self = .queue(try QueueEvent(&words))
    case "file": self = .file(try QueueEvent(&words))
    case "request": self = .request(try RequestEvent(&words))
    case "rested": self = .rested
    default: throw JournalWords.Unfinished()
    }
  }

  /// Returns the complete entries of a journal.
  static func parse(_ text: String) -> [JournalEntry] {
    let finished = text[..<(text.lastIndex(of: "\n") ?? text.startIndex)]
    // Each line is one write, but a full disk may leave a part of one.
    return finished.split(separator: "\n").compactMap { try? JournalEntry(line: $0) }
  }
}

/// The words of a journal's line, taken one after the other.
struct JournalWords {
  /// The line ends too early, or a word is not what its place requires.
  struct Unfinished: Error {}

  var rest: ArraySlice<Substring>

  /// The words that are left.
  var sentence: String { rest.joined(separator: " ") }

  mutating func next<Word: LosslessStringConvertible>() throws(Unfinished) -> Word {
    guard let word = rest.popFirst(), let value = Word(String(word)) else { throw Unfinished() }
    return value
  }
}

extension String {
  fileprivate var onOneLine: String { split(separator: "\n").joined(separator: " ") }
}
