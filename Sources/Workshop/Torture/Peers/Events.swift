/// A line of a journal about queues and files: an entry and its fate. The number identifies the
/// sender, because it continues from the sender's life.
enum QueueEvent: Equatable {
  /// The worker is about to send; the slot is the sender's place, and its name.
  case sending(place: String, slot: Int, number: UInt64)
  /// The entry that was begun last is stored, under an id.
  case sent(number: UInt64, id: String)
  case cancelling(number: UInt64)
  case cancelled(number: UInt64, Bool)
  /// The worker became the consumer, at some time between two instants; each tenure has its own
  /// name.
  case consuming(place: String, tenure: String, from: UInt64, to: UInt64)
  /// The worker took an entry, at some time between two instants.
  case taken(
    place: String, tenure: String, slot: Int, number: UInt64, isRedelivery: Bool, from: UInt64,
    to: UInt64)
  case acknowledging(place: String, number: UInt64)
  case acknowledged(place: String, number: UInt64, at: UInt64)
  case failing(place: String, number: UInt64)

  var line: String {
    switch self {
    case .sending(let place, let slot, let number): "sending \(place) \(slot) \(number)\n"
    case .sent(let number, let id): "sent \(number) \(id)\n"
    case .cancelling(let number): "cancelling \(number)\n"
    case .cancelled(let number, let isSo): "cancelled \(number) \(isSo)\n"
    case .consuming(let place, let tenure, let from, let to):
      "consuming \(place) \(tenure) \(from) \(to)\n"
    case .taken(let place, let tenure, let slot, let number, let isRedelivery, let from, let to):
      "taken \(place) \(tenure) \(slot) \(number) \(isRedelivery) \(from) \(to)\n"
    case .acknowledging(let place, let number): "acknowledging \(place) \(number)\n"
    case .acknowledged(let place, let number, let time): "acknowledged \(place) \(number) \(time)\n"
    case .failing(let place, let number): "failing \(place) \(number)\n"
    }
  }

  init(_ words: inout JournalWords) throws {
    switch try words.next() as String {
    case "sending":
      self = try .sending(place: words.next(), slot: words.next(), number: words.next())
    case "sent": self = try .sent(number: words.next(), id: words.next())
    case "cancelling": self = try .cancelling(number: words.next())
    case "cancelled": self = try .cancelled(number: words.next(), words.next())
    case "consuming":
      self = try .consuming(
        place: words.next(), tenure: words.next(), from: words.next(), to: words.next())
    case "taken":
      self = try .taken(
        place: words.next(), tenure: words.next(), slot: words.next(), number: words.next(),
        isRedelivery: words.next(), from: words.next(), to: words.next())
    case "acknowledging": self = try .acknowledging(place: words.next(), number: words.next())
    case "acknowledged":
      self = try .acknowledged(place: words.next(), number: words.next(), at: words.next())
    case "failing": self = try .failing(place: words.next(), number: words.next())
    default: throw JournalWords.Unfinished()
    }
  }
}

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

  init(_ words: inout JournalWords) throws {
    switch try words.next() as String {
    case "asking": self = try .asking(number: words.next())
    case "ended":
      let (number, answer): (UInt64, String) = try (words.next(), words.next())
      self = try .ended(number: number, answer: UInt64(answer), how: words.next())
    default: throw JournalWords.Unfinished()
    }
  }
}
