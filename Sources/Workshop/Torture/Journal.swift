import FoundationEssentials

/// A worker's report besides its history: one entry per line.
enum JournalEntry: Codable, Equatable {
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

  /// The entry as a line of JSON.
  var line: String { get throws { try jsonText(self) + "\n" } }

  /// Returns the complete entries of a journal.
  static func parse(_ text: String) -> [JournalEntry] {
    let finished = text[..<(text.lastIndex(of: "\n") ?? text.startIndex)]
    // Each line is one write, but a full disk may leave a part of one, which is no entry.
    return finished.split(separator: "\n").compactMap { try? decoded(JournalEntry.self, from: $0) }
  }
}

/// Returns a value as JSON on one line, because the processes of a run tell each other one line at a
/// time.
func jsonText(_ value: some Encodable) throws -> String {
  String(decoding: try JSONEncoder().encode(value), as: UTF8.self)
}

func decoded<Value: Decodable>(_ type: Value.Type, from json: some StringProtocol) throws -> Value {
  try JSONDecoder().decode(type, from: Data(json.utf8))
}
