import FoundationEssentials
import Wormhole
import WormholePeers
import WormholePropertyLists
import WormholeSystem
import WormholeWorkshop

/// Two queues, to which each worker sends under its slot's name.
struct QueueDeliveries: Deliveries {
  let words = (send: "send", cancel: "cancel", consume: "consume")
  let places = ["torture/0", "torture/1"]
  let sendingRounds = 60
  private let container: SharedContainer
  private let senders: [String: PlainSender]

  init(_ container: SharedContainer, slot: Int) throws {
    self.container = container
    senders = try Dictionary(
      uniqueKeysWithValues: places.map { ($0, try Self.sender(container, $0, slot)) })
  }

  static func sender(
    _ container: SharedContainer, _ queue: String, _ slot: Int
  ) throws -> PlainSender { try container.queue(queue).sender("slot-\(slot)") }

  func send(
    _ number: UInt64, to targets: [String], _ random: inout SeededGenerator
  ) throws -> SentEntry {
    guard let sender = senders[targets[0]] else { preconditionFailure("each queue has a sender") }
    let durability: Durability = random.chance(3) ? .durable : .standard
    let id = try sender.enqueue(PropertyListValue(number), durability: durability)
    return SentEntry(id: "\(id)") { try sender.cancel(id) }
  }

  func consume(
    _ place: String, until deadline: ContinuousClock.Instant
  ) throws -> any DeliverySource { try container.queue(place).consume(until: deadline) }
}

extension PlainConsumer: DeliverySource {
  func take(until deadline: ContinuousClock.Instant) throws -> TakenEntry? {
    try next(until: deadline).map { entry in
      TakenEntry(
        slot: Int(entry.sender.dropFirst("slot-".count)) ?? -1,
        number: entry.payload.uint64Value ?? 0, isRedelivery: entry.isRedelivery,
        acknowledge: { try entry.acknowledge() }, fail: { try entry.fail("on purpose") })
    }
  }
}

/// A log: for each subscriber, a queue with the subscriber as its consumer.
struct LogDeliveries: Deliveries {
  let words = (send: "append", cancel: "", consume: "follow")
  let places = ["a", "b"]
  let sendingRounds = 60
  private let log: PlainLog
  private let slot: Int

  init(_ container: SharedContainer, slot: Int) throws {
    log = container.log("torture/log")
    // Removing messages has its own tests.
    try log.setBounds(.init(messages: 10_000_000, bytes: 1 << 34))
    self.slot = slot
  }

  func targets(_ random: inout SeededGenerator) -> [String] { places }

  func send(
    _ number: UInt64, to targets: [String], _ random: inout SeededGenerator
  ) throws -> SentEntry {
    let content = PropertyListValue.array([PropertyListValue(slot), PropertyListValue(number)])
    let durability: Durability = random.chance(3) ? .durable : .standard
    return SentEntry(id: "\(try log.append(content, durability: durability))")
  }

  func consume(
    _ place: String, until deadline: ContinuousClock.Instant
  ) throws -> any DeliverySource { try log.subscribe(place, until: deadline) }
}

extension LogReader<PropertyListValue>: DeliverySource {
  var epochs: Int { 1 }

  func take(until deadline: ContinuousClock.Instant) throws -> TakenEntry? {
    try next(until: deadline).map { message in
      let content = message.payload.arrayValue ?? []
      return TakenEntry(
        slot: content.first?.intValue ?? -1, number: content.last?.uint64Value ?? 0,
        isRedelivery: message.isRedelivery, isSettledByNext: true,
        acknowledge: { try self.acknowledge() })
    }
  }
}

/// Files to other workers, and those for a worker's own name.
struct FileDeliveries: Deliveries {
  let words = (send: "transfer", cancel: "cancel a transfer", consume: "receive")
  let sendingRounds = 30
  /// Copying continues after a deadline.
  let areTimed = false
  private let session: PeerSession
  private let directory: RunDirectory
  private let processes: Int

  init(_ session: PeerSession, _ directory: RunDirectory, processes: Int) {
    self.session = session
    self.directory = directory
    self.processes = processes
  }

  var places: [String] { [session.name] }

  func activate() throws {
    if !session.isActive { try session.activate(until: .now + .seconds(5)) }
  }

  func targets(_ random: inout SeededGenerator) -> [String] {
    [RequestClient.name(slot: Int.random(in: 0..<processes, using: &random))]
  }

  func send(
    _ number: UInt64, to targets: [String], _ random: inout SeededGenerator
  ) throws -> SentEntry {
    let path = directory.file(number)
    try FileDescriptor.open(path, [.writeOnly, .create]).writeAll(Self.content(number))
    let transfer = try session.transfer(
      fileAt: URL(filePath: path), to: targets[0], metadata: PropertyListValue(number))
    // After an error the outcome is open.
    return SentEntry(id: transfer.id) { try transfer.cancel() }
  }

  func consume(
    _ place: String, until deadline: ContinuousClock.Instant
  ) throws -> any DeliverySource { try session.receiveFiles(until: deadline) }

  /// Waits until all files are copied, before their receivers are drained.
  func finishCopies() throws {
    try session.activate()
    for transfer in try session.fileTransfers() {
      do {
        try transfer.waitUntilStored(until: .now + .seconds(30))
      } catch let error as WormholeError where error.code == .cancelled {
        // Given up by a process that has ended meanwhile. If it was not, the file counts as lost.
        continue
      }
    }
  }

  /// - Throws: `.noSuchFile`.
  static func isWhole(_ number: UInt64, at path: String) throws(Errno) -> Bool {
    let content = content(number)
    let bytes = try FileDescriptor.open(path, .readOnly).readToEnd(
      expectedBytes: content.count, maximumBytes: 4 << 20)
    return bytes == content
  }

  /// The content of a file follows from its number; some files are empty, and some have several pieces on
  /// etcd.
  private static func content(_ number: UInt64) -> [UInt8] {
    let sizes: [UInt64] = [0, 1, 4_096, 40_000, 200_000, 1_300_000]
    let size = Int(sizes[Int(mix(~number) % UInt64(sizes.count))])
    let words = [UInt64](repeating: mix(number), count: size / 8 + 1)
    return words.withUnsafeBytes { Array($0.prefix(size)) }
  }
}

extension PeerReceiver<PeerFile>: DeliverySource {
  var epochs: Int { 1 }

  func take(until deadline: ContinuousClock.Instant) throws -> TakenEntry? {
    guard let file = try next(until: deadline) else { return nil }
    let number = file.metadata?.uint64Value ?? 0
    return TakenEntry(
      slot: Int(file.sender.dropFirst("worker-".count)) ?? -1, number: number,
      isRedelivery: file.isRedelivery,
      damage: {
        // A file is available until this process was stopped and replaced; the acknowledgement will
        // report that.
        let isWhole = try ifPresent(FileDeliveries.isWhole(number, at: file.url.path)) ?? true
        return isWhole ? nil : "file \(number) came with bytes that are not its own"
      },
      acknowledge: { try file.acknowledge() })
  }
}

extension Deliveries {
  var areTimed: Bool { true }

  func activate() throws {}

  func targets(_ random: inout SeededGenerator) -> [String] { [random.pick(places)] }
}
