import AppGroup
import PropertyLists
import Synchronization
import SystemCalls

/// A strand that sends to queues, cancels some entries, and consumes whenever it can get the role.
final class QueueStrand: Sendable {
  static let queues = ["torture/0", "torture/1"]

  private struct State {
    var next: UInt64
    var senders: [String: AppGroup.Queue.Sender] = [:]
    /// The entries that can still be cancelled.
    var recent: [(queue: String, number: UInt64, id: QueueEntryID)] = []
    var tenures = 0
  }

  private let container: SharedContainer
  private let recorder: Recorder
  private let arguments: WorkerArguments
  private let state: Mutex<State>

  init(_ container: SharedContainer, _ recorder: Recorder, _ arguments: WorkerArguments) {
    self.container = container
    self.recorder = recorder
    self.arguments = arguments
    state = Mutex(State(next: Workload.firstNumber(life: arguments.life)))
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

  private func note(_ event: QueueEvent) throws(Errno) { try recorder.note(.queue(event)) }

  private func send(to queue: String, _ durability: Durability) throws {
    let (sender, number) = try state.withLock { state in
      state.next += 1
      let sender =
        try state.senders[queue] ?? container.queue(queue).sender("slot-\(arguments.slot)")
      state.senders[queue] = sender
      return (sender, state.next)
    }
    try note(.sending(place: queue, slot: arguments.slot, number: number))
    let id = try sender.enqueue(PropertyListValue(number), durability: durability)
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
    let isCancelled = try sender.cancel(entry.id)
    try note(.cancelled(number: entry.number, isCancelled))
    try recorder.note(.did("cancel"))
  }

  private func consume(_ queue: String, _ random: inout SeededGenerator) throws {
    let beginning = bootTimeNanoseconds()
    let consumer = try container.queue(queue).consume(until: .now + random.milliseconds(0...250))
    defer { consumer.close() }
    let count = state.withLock { state in
      state.tenures += 1
      return state.tenures
    }
    let tenure = "\(arguments.life)-\(count)"
    try note(
      .consuming(place: queue, tenure: tenure, from: beginning, to: bootTimeNanoseconds()))
    for _ in 0..<Int.random(in: 1...60, using: &random) {
      guard let entry = try take(consumer, queue, tenure, .now + random.milliseconds(0...5)) else {
        break
      }
      if random.chance(2) { pauseThread(random.milliseconds(0...20)) }
      // In the middle of handling an entry: perhaps long enough to be replaced.
      if random.chance(1) { try Program.send(.stop, to: Program.processID) }
      try settle(entry, queue, &random)
    }
  }

  private func take(
    _ consumer: AppGroup.Queue.Consumer, _ queue: String, _ tenure: String,
    _ deadline: ContinuousClock.Instant
  ) throws -> QueueEntry? {
    let beginning = bootTimeNanoseconds()
    guard let entry = try consumer.next(until: deadline) else { return nil }
    try note(Self.taken(entry, queue, tenure, from: beginning))
    return entry
  }

  static func taken(
    _ entry: QueueEntry, _ queue: String, _ tenure: String, from beginning: UInt64
  ) -> QueueEvent {
    .taken(
      place: queue, tenure: tenure, slot: Int(entry.sender.dropFirst(5)) ?? -1,
      number: entry.payload.uint64Value ?? 0, isRedelivery: entry.isRedelivery, from: beginning,
      to: bootTimeNanoseconds())
  }

  private func settle(
    _ entry: QueueEntry, _ queue: String, _ random: inout SeededGenerator
  ) throws {
    let number = entry.payload.uint64Value ?? 0
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<4: return  // Left to the next consumer.
    case 4..<8:
      try note(.failing(place: queue, number: number))
      try entry.fail("on purpose")
    default:
      try note(.acknowledging(place: queue, number: number))
      try entry.acknowledge()
      try note(.acknowledged(place: queue, number: number, at: bootTimeNanoseconds()))
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
      while true {
        let beginning = bootTimeNanoseconds()
        guard let entry = try consumer.next(until: .now) else { break }
        let number = entry.payload.uint64Value ?? 0
        events.append(taken(entry, queue, tenure, from: beginning))
        events.append(.acknowledging(place: queue, number: number))
        try entry.acknowledge()
        events.append(.acknowledged(place: queue, number: number, at: bootTimeNanoseconds()))
      }
    }
    return events
  }
}
