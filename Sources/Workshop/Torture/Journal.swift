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
      "checked \(bell) \(from) \(to) \(heard ? "yes" : "no")\n"
    case .queue(let event): "queue \(event.line)"
    case .file(let event): "file \(event.line)"
    case .request(let event): "request \(event.line)"
    case .rested: "rested\n"
    }
  }

  /// Nil for a line that a killed process did not finish.
  init?(line: Substring) {
    let words = line.split(separator: " ", maxSplits: 1)
    let rest = words.count > 1 ? words[1] : ""
    let fields = rest.split(separator: " ")
    switch words.first {
    case "did": self = .did(String(rest))
    case "retried": self = .retried
    case "lost": self = .lost
    case "timed-out": self = .timedOut
    case "late": self = .late(String(rest))
    case "torn": self = .torn(String(rest))
    case "failed": self = .failed(String(rest))
    case "posting":
      guard fields.count == 2, let time = UInt64(fields[1]) else { return nil }
      self = .posting(bell: String(fields[0]), at: time)
    case "posted":
      guard let time = UInt64(rest) else { return nil }
      self = .posted(at: time)
    case "checked":
      guard fields.count == 4, let from = UInt64(fields[1]), let to = UInt64(fields[2]) else {
        return nil
      }
      self = .checked(bell: String(fields[0]), from: from, to: to, heard: fields[3] == "yes")
    case "queue", "file":
      guard let event = QueueEvent(words: fields) else { return nil }
      self = words.first == "queue" ? .queue(event) : .file(event)
    case "request":
      guard let event = RequestEvent(words: fields) else { return nil }
      self = .request(event)
    case "rested": self = .rested
    default: return nil
    }
  }

  /// Returns the complete entries of a journal.
  static func parse(_ text: String) -> [JournalEntry] {
    let finished = text[..<(text.lastIndex(of: "\n") ?? text.startIndex)]
    return finished.split(separator: "\n").compactMap(JournalEntry.init(line:))
  }
}

extension String {
  fileprivate var onOneLine: String { split(separator: "\n").joined(separator: " ") }
}
