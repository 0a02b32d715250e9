/// A line of a journal about requests.
enum RequestEvent: Equatable {
  case asking(number: UInt64)
  /// A call ended with an answer and its number, or with an error.
  case ended(number: UInt64, answer: UInt64?, how: String)

  var line: String {
    switch self {
    case .asking(let number): "asking \(number)\n"
    case .ended(let number, let answer, let how):
      "ended \(number) \(answer.map(String.init) ?? "-") \(how)\n"
    }
  }

  init?(words: [Substring]) {
    guard words.count > 1, let number = UInt64(words[1]) else { return nil }
    switch (words[0], words.count) {
    case ("asking", 2): self = .asking(number: number)
    case ("ended", 4):
      self = .ended(number: number, answer: UInt64(words[2]), how: String(words[3]))
    default: return nil
    }
  }
}
