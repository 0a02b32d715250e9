import Synchronization
import Wormhole
import WormholeSystem
import WormholeWorkshop

/// A means by which numbered entries are delivered: queues, a log, or files between peers.
protocol Deliveries: Sendable {
  /// What a journal counts: "send", "cancel", "consume".
  var words: (send: String, cancel: String, consume: String) { get }
  /// The places from which this process may consume.
  var places: [String] { get }
  /// How many rounds of a hundred send.
  var sendingRounds: Int { get }

  /// Gets ready for a round.
  func activate() throws
  /// Returns the places to which the next entry goes: one, or all subscribers of a log.
  func targets(_ random: inout SeededGenerator) -> [String]
  func send(
    _ number: UInt64, to targets: [String], _ random: inout SeededGenerator
  ) throws -> SentEntry
  func consume(
    _ place: String, until deadline: ContinuousClock.Instant
  ) throws -> any DeliverySource
  /// Whether calls end with their deadlines.
  var areTimed: Bool { get }
}

struct SentEntry {
  let id: String
  /// Nil if nothing can be cancelled.
  var cancel: (@Sendable () throws -> Bool)?
}

/// A consumer of entries.
protocol DeliverySource {
  /// How often it has joined: one that was replaced may join again.
  var epochs: Int { get }
  /// Takes the next entry.
  func take(until deadline: ContinuousClock.Instant) throws -> TakenEntry?
  func close()
}

struct TakenEntry {
  /// The place of its sender.
  let slot: Int
  let number: UInt64
  let isRedelivery: Bool
  /// Returns what is wrong with it; nil if it is complete.
  var damage: () throws -> String? = { nil }
  /// Whether asking for the next one acknowledges it.
  var isSettledByNext = false
  let acknowledge: () throws -> Void
  /// Nil if no entry can fail.
  var fail: (() throws -> Void)?
}

/// A client that sends, cancels some entries, and consumes whenever it can get the role.
final class DeliveryClient: Sendable {
  private let deliveries: any Deliveries
  private let recorder: Recorder
  private let slot: Int
  /// The entries that can still be cancelled.
  private let recent = Mutex<[(place: String, number: UInt64, sent: SentEntry)]>([])

  init(_ deliveries: any Deliveries, _ recorder: Recorder, slot: Int) {
    self.deliveries = deliveries
    self.recorder = recorder
    self.slot = slot
  }

  func round(_ random: inout SeededGenerator) throws {
    try deliveries.activate()
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<deliveries.sendingRounds:
      let targets = deliveries.targets(&random)
      for _ in 0..<Int.random(in: 1...5, using: &random) { try send(to: targets, &random) }
    case 88... where recent.withLock({ !$0.isEmpty }): try cancel()
    default: try consume(random.pick(deliveries.places), &random)
    }
  }

  private func note(_ place: String, _ number: UInt64, _ event: Delivery.Event) throws {
    try recorder.note(.delivery(Delivery(place: place, number: number, event: event)))
  }

  private func timed<Result>(
    _ what: String, patience: Duration = CallLimit.standardWait, _ body: () throws -> Result
  ) throws -> Result {
    deliveries.areTimed ? try recorder.timed(what, patience: patience, body) : try body()
  }

  /// Makes a call, and notes an event if it certainly had no effect.
  private func noting<Result>(
    _ event: Delivery.Event, _ place: String, _ number: UInt64,
    after codes: [WormholeError.Code] = [.clusterUnreachable], _ body: () throws -> Result
  ) throws -> Result {
    do {
      return try body()
    } catch let error as WormholeError where codes.contains(error.code) {
      try note(place, number, event)
      throw error
    }
  }

  private func send(to targets: [String], _ random: inout SeededGenerator) throws {
    let number = recorder.newNumber()
    for place in targets { try note(place, number, .sending(slot: slot)) }
    let sent = try noting(.unsent, targets[0], number) {
      try timed("a store") { try deliveries.send(number, to: targets, &random) }
    }
    // From here on delivery is promised, even if this process is killed.
    for place in targets { try note(place, number, .sent(id: sent.id)) }
    try recorder.note(.did(deliveries.words.send))
    guard sent.cancel != nil else { return }
    recent.withLock { recent in
      recent.append((targets[0], number, sent))
      if recent.count > 8 { recent.removeFirst() }
    }
  }

  /// Cancels an entry before it is stored, meanwhile, or when it may have been delivered.
  private func cancel() throws {
    guard let (place, number, sent) = recent.withLock({ $0.popLast() }), let cancel = sent.cancel
    else { return }
    try note(place, number, .cancelling)
    let isCancelled = try noting(.cancelled(false), place, number) {
      try timed("a cancellation", cancel)
    }
    try note(place, number, .cancelled(isCancelled))
    try recorder.note(.did(deliveries.words.cancel))
  }

  private func consume(_ place: String, _ random: inout SeededGenerator) throws {
    let consumer = try Consumer(self, place, random.milliseconds(0...250))
    defer { consumer.source.close() }
    for _ in 0..<Int.random(in: 1...60, using: &random) {
      // Without an entry by which it could notice that it was replaced.
      if random.chance(2) { try Program.send(.stop, to: Program.processID) }
      guard let entry = try consumer.take(random.milliseconds(0...5)) else { return }
      if random.chance(2) { pauseThread(random.milliseconds(0...20)) }
      // While it handles an entry: perhaps long enough to be replaced.
      if random.chance(1) { try Program.send(.stop, to: Program.processID) }
      try settle(entry, place, &random)
    }
  }

  private func settle(
    _ entry: TakenEntry, _ place: String, _ random: inout SeededGenerator
  ) throws {
    let choice = Int.random(in: 0..<100, using: &random)
    // Left to the next consumer.
    if choice < 4, !entry.isSettledByNext { return }
    if choice < 8, let fail = entry.fail {
      try note(place, entry.number, .failing)
      try end(entry, place, "a failure", fail)
    } else if choice < 50, entry.isSettledByNext {
      try note(place, entry.number, .acknowledging)
    } else {
      try acknowledge(entry, place)
    }
    try recorder.note(.did(deliveries.words.consume))
  }

  private func acknowledge(_ entry: TakenEntry, _ place: String) throws {
    try note(place, entry.number, .acknowledging)
    try end(entry, place, "an acknowledgement", entry.acknowledge)
    try note(place, entry.number, .acknowledged(at: bootTimeNanoseconds()))
  }

  /// Ends an entry; some errors mean that it was not ended.
  private func end(
    _ entry: TakenEntry, _ place: String, _ what: String, _ body: () throws -> Void
  ) throws {
    try noting(.unsettled, place, entry.number, after: [.clusterUnreachable, .leaseLost]) {
      try timed(what, body)
    }
  }

  /// Consumes all remaining entries, after all workers have ended.
  func drain() throws {
    for place in deliveries.places {
      let consumer = try Consumer(self, place, CallLimit.standardWait)
      defer { consumer.source.close() }
      while let entry = try consumer.take(.zero) { try acknowledge(entry, place) }
    }
  }

  /// A consumer whose epochs are noted.
  private final class Consumer {
    let source: any DeliverySource
    private let client: DeliveryClient
    private let place: String
    private var epoch = ""
    private var epochs = 0

    init(_ client: DeliveryClient, _ place: String, _ patience: Duration) throws {
      self.client = client
      self.place = place
      let beginning = bootTimeNanoseconds()
      source = try client.timed("becoming the consumer", patience: patience) {
        try client.deliveries.consume(place, until: .now + patience)
      }
      try noteEpoch(since: beginning)
    }

    /// Notes that it is the consumer, once for each time that it joined.
    private func noteEpoch(since beginning: UInt64) throws {
      guard source.epochs > epochs else { return }
      (epoch, epochs) = (client.recorder.newEpoch(), source.epochs)
      try client.note(
        place, 0, .consuming(epoch: epoch, from: beginning, to: bootTimeNanoseconds()))
    }

    func take(_ patience: Duration) throws -> TakenEntry? {
      let beginning = bootTimeNanoseconds()
      let found = try client.timed("the next entry", patience: patience) {
        try source.take(until: .now + patience)
      }
      try noteEpoch(since: beginning)
      guard let entry = found else { return nil }
      try client.note(
        place, entry.number,
        .taken(
          epoch: epoch, slot: entry.slot, isRedelivery: entry.isRedelivery, from: beginning,
          to: bootTimeNanoseconds()))
      if let damage = try entry.damage() { try client.recorder.note(.broke(.whole, damage)) }
      return entry
    }
  }
}
