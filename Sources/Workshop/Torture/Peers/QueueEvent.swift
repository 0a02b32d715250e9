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

  var line: String { words.joined(separator: " ") + "\n" }

  private var words: [String] {
    switch self {
    case .sending(let place, let slot, let number): ["sending", place, "\(slot)", "\(number)"]
    case .sent(let number, let id): ["sent", "\(number)", id]
    case .cancelling(let number): ["cancelling", "\(number)"]
    case .cancelled(let number, let isSo): ["cancelled", "\(number)", "\(isSo)"]
    case .consuming(let place, let tenure, let from, let to):
      ["consuming", place, tenure, "\(from)", "\(to)"]
    case .taken(let place, let tenure, let slot, let number, let isRedelivery, let from, let to):
      [
        "taken", place, tenure, "\(slot)", "\(number)", "\(isRedelivery)", "\(from)", "\(to)",
      ]
    case .acknowledging(let place, let number): ["acknowledging", place, "\(number)"]
    case .acknowledged(let place, let number, let time):
      ["acknowledged", place, "\(number)", "\(time)"]
    case .failing(let place, let number): ["failing", place, "\(number)"]
    }
  }

  /// Nil for a line that a killed process did not finish.
  init?(words: [Substring]) {
    func number(_ index: Int) -> UInt64? { index < words.count ? UInt64(words[index]) : nil }
    func text(_ index: Int) -> String { index < words.count ? String(words[index]) : "" }
    let place = text(1)
    switch text(0) {
    case "sending":
      guard let slot = number(2), let number = number(3) else { return nil }
      self = .sending(place: place, slot: Int(slot), number: number)
    case "sent":
      guard let number = number(1), words.count == 3 else { return nil }
      self = .sent(number: number, id: text(2))
    case "cancelling":
      guard let number = number(1) else { return nil }
      self = .cancelling(number: number)
    case "cancelled":
      guard let number = number(1), let isSo = Bool(text(2)) else { return nil }
      self = .cancelled(number: number, isSo)
    case "consuming":
      guard let from = number(3), let to = number(4) else { return nil }
      self = .consuming(place: place, tenure: text(2), from: from, to: to)
    case "taken":
      guard let slot = number(3), let number = number(4), let isRedelivery = Bool(text(5)),
        let from = UInt64(text(6)), let to = UInt64(text(7))
      else { return nil }
      self = .taken(
        place: place, tenure: text(2), slot: Int(slot), number: number,
        isRedelivery: isRedelivery, from: from, to: to)
    case "acknowledging":
      guard let number = number(2) else { return nil }
      self = .acknowledging(place: place, number: number)
    case "acknowledged":
      guard let number = number(2), let time = UInt64(text(3)) else { return nil }
      self = .acknowledged(place: place, number: number, at: time)
    case "failing":
      guard let number = number(2) else { return nil }
      self = .failing(place: place, number: number)
    default: return nil
    }
  }
}
