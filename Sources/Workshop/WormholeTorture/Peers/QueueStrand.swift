import Synchronization
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeWorkshop

/// A strand that sends to queues, cancels some entries, and consumes whenever it can get the role.
final class QueueStrand: Sendable {
  static let queues = ["torture/0", "torture/1"]

  private struct State {
    var senders: [String: Wormhole.Queue.Sender] = [:]
    /// The entries that can still be cancelled.
    var recent: [(queue: String, number: UInt64, id: QueueEntryID)] = []
  }

  private let container: SharedContainer
  private let recorder: Recorder
  private let arguments: WorkerArguments
  private let state = Mutex(State())

  init(_ container: SharedContainer, _ recorder: Recorder, arguments: WorkerArguments) {
    self.container = container
    self.recorder = recorder
    self.arguments = arguments
  }

  func turn(_ random: inout SeededGenerator) throws {
    let queue = Self.queues[Int.random(in: 0..<Self.queues.count, using: &random)]
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<60:
      for _ in 0..<Int.random(in: 1...5, using: &random) {
        try send(to: queue, random.chance(3) ? .durable : .standard)
      }
    case 60..<72: try cancel()
    default: try consume(queue, &random)
    }
  }

  private func note(_ event: QueueEvent) throws { try recorder.note(.queue(event)) }

  private func send(to queue: String, _ durability: Durability) throws {
    let number = recorder.newNumber()
    let sender = try state.withLock { state in
      let sender =
        try state.senders[queue] ?? container.queue(queue).sender("slot-\(arguments.slot)")
      state.senders[queue] = sender
      return sender
    }
    try note(.sending(place: queue, slot: arguments.slot, number: number))
    let id: QueueEntryID
    do {
      id = try recorder.timed("a store", patience: CallLimit.standardWait) {
        try sender.enqueue(PropertyListValue(number), durability: durability)
      }
    } catch let error as AppGroupError where error.code == .unreachable {
      try note(.unsent(number: number))
      throw error
    }
    try note(.sent(number: number, id: "\(id)"))
    try recorder.note(.did("send"))
    state.withLock { state in
      state.recent.append((queue, number, id))
      if state.recent.count > 8 { state.recent.removeFirst() }
    }
  }

  private func cancel() throws {
    let found = state.withLock { state in
      state.recent.popLast().map { ($0, state.senders[$0.queue]) }
    }
    guard let (entry, sender) = found, let sender else { return }
    try note(.cancelling(number: entry.number))
    let isCancelled: Bool
    do {
      isCancelled = try recorder.timed("a cancellation", patience: CallLimit.standardWait) {
        try sender.cancel(entry.id)
      }
    } catch let error as AppGroupError where error.code == .unreachable {
      // Nothing was done.
      try note(.cancelled(number: entry.number, false))
      throw error
    }
    try note(.cancelled(number: entry.number, isCancelled))
    try recorder.note(.did("cancel"))
  }

  private func consume(_ queue: String, _ random: inout SeededGenerator) throws {
    let beginning = bootTimeNanoseconds()
    let patience = random.milliseconds(0...250)
    let consumer = try recorder.timed("becoming the consumer", patience: patience) {
      try container.queue(queue).consume(until: .now + patience)
    }
    defer { consumer.close() }
    var tenure = recorder.newTenure()
    var tenures = consumer.tenures
    try note(.consuming(place: queue, tenure: tenure, from: beginning, to: bootTimeNanoseconds()))
    for _ in 0..<Int.random(in: 1...60, using: &random) {
      // Without an entry by which it could notice that it was replaced.
      if random.chance(2) { try Program.send(.stop, to: Program.processID) }
      let patience = random.milliseconds(0...5)
      let entry = try recorder.timed("the next entry", patience: patience) {
        try Self.take(consumer, queue, until: .now + patience, note: note) { beginning in
          guard consumer.tenures > tenures else { return tenure }
          // It was replaced, and has joined again.
          (tenure, tenures) = (recorder.newTenure(), consumer.tenures)
          try note(
            .consuming(place: queue, tenure: tenure, from: beginning, to: bootTimeNanoseconds()))
          return tenure
        }
      }
      guard let entry else { break }
      if random.chance(2) { pauseThread(random.milliseconds(0...20)) }
      // While it handles an entry: perhaps long enough to be replaced.
      if random.chance(1) { try Program.send(.stop, to: Program.processID) }
      try settle(entry, queue, random: &random)
    }
  }

  private static func take(
    _ consumer: Wormhole.Queue.Consumer, _ queue: String, until deadline: ContinuousClock.Instant,
    note: (QueueEvent) throws -> Void, tenure: (_ beginning: UInt64) throws -> String
  ) throws -> QueueEntry? {
    let beginning = bootTimeNanoseconds()
    let found = try consumer.next(until: deadline)
    let tenure = try tenure(beginning)
    guard let entry = found else { return nil }
    try note(
      .taken(
        place: queue, tenure: tenure, slot: Int(entry.sender.dropFirst(5)) ?? -1,
        number: entry.payload.uint64Value ?? 0, isRedelivery: entry.isRedelivery, from: beginning,
        to: bootTimeNanoseconds()))
    return entry
  }

  private static func acknowledge(
    _ entry: QueueEntry, queue: String, _ note: (QueueEvent) throws -> Void
  ) throws {
    let number = entry.payload.uint64Value ?? 0
    try note(.acknowledging(place: queue, number: number))
    try settling(number, queue: queue, note: note) { try entry.acknowledge() }
    try note(.acknowledged(place: queue, number: number, at: bootTimeNanoseconds()))
  }

  /// Ends an entry; some errors mean that it was not ended.
  private static func settling(
    _ number: UInt64, queue: String, note: (QueueEvent) throws -> Void,
    _ body: () throws -> Void
  ) throws {
    do {
      try body()
    } catch let error as AppGroupError where [.unreachable, .leaseLost].contains(error.code) {
      try note(.unsettled(place: queue, number: number))
      throw error
    }
  }

  private func settle(
    _ entry: QueueEntry, _ queue: String, random: inout SeededGenerator
  ) throws {
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<4: return  // Left to the next consumer.
    case 4..<8:
      let number = entry.payload.uint64Value ?? 0
      try note(.failing(place: queue, number: number))
      try Self.settling(number, queue: queue, note: note) {
        try recorder.timed("a failure", patience: CallLimit.standardWait) {
          try entry.fail("on purpose")
        }
      }
    default:
      try recorder.timed("an acknowledgement", patience: CallLimit.standardWait) {
        try Self.acknowledge(entry, queue: queue, note)
      }
    }
    try recorder.note(.did("consume"))
  }

  /// Consumes all remaining entries, after all workers have ended.
  static func drain(_ container: SharedContainer, life: Int) throws -> [QueueEvent] {
    var events: [QueueEvent] = []
    for queue in queues {
      let before = bootTimeNanoseconds()
      let consumer = try container.queue(queue).consume()
      defer { consumer.close() }
      let tenure = "\(life)-\(queue)"
      events.append(
        .consuming(place: queue, tenure: tenure, from: before, to: bootTimeNanoseconds()))
      while let entry = try take(
        consumer, queue, until: .now, note: { events.append($0) }, tenure: { _ in tenure })
      {
        try acknowledge(entry, queue: queue) { events.append($0) }
      }
    }
    return events
  }
}
