/// An entry of a journal about queues and files: what was sent, and its fate. The number identifies the
/// sender, because it continues from the sender's life.
enum QueueEvent: Codable, Equatable {
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
}

/// An entry of a journal about requests.
enum RequestEvent: Codable, Equatable {
  case asking(number: UInt64)
  /// A call ended with an answer and its number, or with an error.
  case ended(number: UInt64, answer: UInt64?, how: String)
}
