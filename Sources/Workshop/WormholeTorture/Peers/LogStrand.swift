import Synchronization
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeWorkshop

/// A strand that appends to a log, and reads it whenever it can get the place of a subscriber.
///
/// It notes the same as a queue's strand: to each subscriber the log is a queue whose consumer it
/// is.
final class LogStrand: Sendable {
  static let log = "torture/log"
  static let subscribers = ["a", "b"]

  private let log: Log
  private let recorder: Recorder
  private let arguments: WorkerArguments

  init(
    _ container: SharedContainer, _ recorder: Recorder, arguments: WorkerArguments
  ) throws {
    log = container.log(Self.log)
    // Removing messages has tests of its own.
    try log.setBounds(.init(messages: 10_000_000, bytes: 1 << 34))
    self.recorder = recorder
    self.arguments = arguments
  }

  func turn(_ random: inout SeededGenerator) throws {
    if random.chance(60) {
      for _ in 0..<Int.random(in: 1...5, using: &random) {
        try append(random.chance(3) ? .durable : .standard)
      }
    } else {
      try read(
        Self.subscribers[Int.random(in: 0..<Self.subscribers.count, using: &random)], &random)
    }
  }

  private func append(_ durability: Durability) throws {
    let number = recorder.newNumber()
    try recorder.note(
      .log(reader: nil, .sending(place: Self.log, slot: arguments.slot, number: number)))
    let content = PropertyListValue.array([
      PropertyListValue(arguments.slot), PropertyListValue(number),
    ])
    let id = try log.append(content, durability: durability)
    try recorder.note(.log(reader: nil, .sent(number: number, id: "\(id)")))
    try recorder.note(.did("append"))
  }

  private func read(_ subscriber: String, _ random: inout SeededGenerator) throws {
    let beginning = bootTimeNanoseconds()
    let reader = try log.subscribe(subscriber, until: .now + random.milliseconds(0...250))
    defer { reader.close() }
    let tenure = recorder.newTenure()
    let note = { (event: QueueEvent) in
      try self.recorder.note(.log(reader: subscriber, event))
    }
    try note(
      .consuming(place: Self.log, tenure: tenure, from: beginning, to: bootTimeNanoseconds()))
    // Before it holds a message: perhaps long enough to be replaced.
    if random.chance(4) { try Program.send(.stop, to: Program.processID) }
    for _ in 0..<Int.random(in: 1...60, using: &random) {
      let deadline = ContinuousClock.now + random.milliseconds(0...5)
      guard let number = try Self.take(reader, tenure: tenure, until: deadline, note) else {
        return
      }
      // While it handles a message: perhaps long enough to be replaced.
      if random.chance(1) { try Program.send(.stop, to: Program.processID) }
      try note(.acknowledging(place: Self.log, number: number))
      // Otherwise asking for the next message does it.
      if random.chance(50) {
        try reader.acknowledge()
        try note(.acknowledged(place: Self.log, number: number, at: bootTimeNanoseconds()))
      }
      try recorder.note(.did("follow"))
    }
  }

  private static func take(
    _ reader: Log.Reader, tenure: String, until deadline: ContinuousClock.Instant,
    _ note: (QueueEvent) throws -> Void
  ) throws -> UInt64? {
    let beginning = bootTimeNanoseconds()
    guard let message = try reader.next(until: deadline) else { return nil }
    let content = message.payload.arrayValue ?? []
    let number = content.last?.uint64Value ?? 0
    try note(
      .taken(
        place: log, tenure: tenure, slot: content.first?.intValue ?? -1, number: number,
        isRedelivery: message.isRedelivery, from: beginning, to: bootTimeNanoseconds()))
    return number
  }

  /// Reads the remaining messages for a subscriber, after all workers have ended.
  static func drain(
    _ subscriber: String, _ container: SharedContainer, life: Int
  ) throws -> [QueueEvent] {
    var events: [QueueEvent] = []
    let before = bootTimeNanoseconds()
    let reader = try container.log(log).subscribe(subscriber)
    defer { reader.close() }
    let tenure = "\(life)-\(subscriber)"
    events.append(.consuming(place: log, tenure: tenure, from: before, to: bootTimeNanoseconds()))
    while let number = try take(reader, tenure: tenure, until: .now, { events.append($0) }) {
      events.append(.acknowledging(place: log, number: number))
      try reader.acknowledge()
      events.append(.acknowledged(place: log, number: number, at: bootTimeNanoseconds()))
    }
    return events
  }
}
