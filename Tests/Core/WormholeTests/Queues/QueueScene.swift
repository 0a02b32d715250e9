import FoundationEssentials
import Synchronization
import Testing
import WormholeInspection
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeEtcd

/// A queue in its own directory.
struct QueueScene {
  let directory: TemporaryDirectory
  let queue: PlainQueue

  /// - Parameter lifetime: how long a process that says nothing is taken for alive on etcd.
  init(lifetime: Duration = .seconds(5)) throws {
    directory = try TemporaryDirectory()
    queue = try directory.container(lifetime: lifetime).queue("q")
  }

  /// The queue's keys, if it is on etcd.
  private var keys: EtcdQueue? { queue.store as? EtcdQueue }

  /// Sweeps the queue alone, as a sweep of the container does among others.
  func sweep() throws {
    guard let keys else { return try queue.open()?.sweep() ?? () }
    try keys.sweep()
  }

  var place: String { directory.path + "/queues/q" }

  func participant() throws -> Participant { try Participant(directory.path) }

  /// Sends numbers as one file, as if all had gathered while another was written.
  @discardableResult
  func sendTogether(
    _ numbers: [Int], from sender: String, keeping kept: Set<Int> = [], key: String? = nil
  ) throws -> [QueueEntryID] {
    let outcomes = Mutex<[Result<QueueEntryID, any Error>]>([])
    let submissions = numbers.map { number in
      let entry = Batch.Entry(
        payload: PropertyListValue(number), key: key, keepsReceipt: kept.contains(number))
      return Submission(entry, durability: .standard) {
        outcome in outcomes.withLock { $0.append(outcome) }
      }
    }
    try queue.sender(sender).submissions.write(submissions)
    let ids = try outcomes.withLock { $0 }.map { try $0.get() }
    #expect(ids.count == numbers.count && Set(ids.map(\.batch)).count == 1)
    return ids
  }

  struct Delivered: Hashable, CustomStringConvertible {
    let sender: String
    let number: Int
    let isRedelivery: Bool

    init(_ sender: String, _ number: Int, again: Bool = false) {
      self.sender = sender
      self.number = number
      isRedelivery = again
    }

    init(_ entry: PlainEntry) {
      self.init(entry.sender, entry.payload.intValue ?? -1, again: entry.isRedelivery)
    }

    init?(line: Substring) {
      let words = line.split(separator: " ")
      guard words.count >= 2, let number = Int(words[1]) else { return nil }
      self.init(String(words[0]), number, again: words.count > 2)
    }

    var description: String { "\(sender)\(number)\(isRedelivery ? "!" : "")" }
  }

  /// Takes and acknowledges all waiting entries.
  func drain() throws -> [Delivered] {
    let consumer = try queue.consume()
    defer { consumer.close() }
    return try drain(consumer)
  }

  func drain(_ consumer: PlainConsumer) throws -> [Delivered] {
    var all: [Delivered] = []
    while let entry = try consumer.next(until: .now) {
      all.append(Delivered(entry))
      try entry.acknowledge()
    }
    return all
  }

  /// The number of files, or keys, in a part of the queue.
  func count(_ part: Part) throws -> Int {
    guard let keys else { return try names(part.rawValue).count }
    func batches(_ part: QueueKeyPart) throws -> Set<EntryFile> {
      let items = try keys.client.read(keys.range(part), keysOnly: true, until: soon).items
      return Set(items.compactMap { keys.batch($0.key) })
    }
    switch part {
    case .waiting: return try batches(.entries).subtracting(batches(.owners)).count
    case .receipts: return try keys.client.read(keys.range(.receipts), until: soon).items.count
    case .failed: return try batches(.failures).count
    }
  }

  enum Part: String {
    case waiting = "pending"
    case receipts = "sent"
    case failed
  }

  /// Returns the names in a part of the queue.
  func names(_ part: String) throws(Errno) -> [String] {
    try TemporaryDirectory.names(of: place + "/" + part)
  }

  var isOnEtcd: Bool { keys != nil }

  /// Returns what there is of files that accompany entries, before they are taken, and on etcd also then.
  func attachmentLeftovers() throws -> [String] {
    guard let keys else { return try names("attachments") }
    return try [.waitingFiles, .pieces, .takenFiles].flatMap { part in
      try keys.client.read(keys.range(part), keysOnly: true, until: soon).items
        .map { String(decoding: $0.key, as: UTF8.self) }
    }
  }

  /// Returns the entries of the queue's directories besides its notes of outcomes.
  func leftovers() throws -> [String] {
    if let keys {
      let range = keys.range(from: .owners, through: .entries)
      return try keys.client.read(range, keysOnly: true, until: soon).items
        .map { String(decoding: $0.key, as: UTF8.self) }
    }
    var all = try names("staged") + names("pending")
    for consumer in try names("taken") { all += try names("taken/" + consumer) }
    return all
  }

  /// The file in which processes note what they have handled.
  var handledLog: String { directory.path + "/handled" }

  var handled: [Delivered] {
    get throws { try logged(handledLog).compactMap(Delivered.init(line:)) }
  }

  /// Has a process handle what waits, until it is killed before one of its calls or has done all.
  func kill(
    before step: Int, of verb: String
  ) throws -> (handled: [Delivered], wasKilled: Bool) {
    let wasKilled = try participant().dies(of: "die \(step) \(verb) q \(handledLog)")
    return (try handled, wasKilled)
  }

  func logged(_ log: String) throws -> [Substring] {
    try ItemText.read(log)?.split(separator: "\n") ?? []
  }
}

/// Checks that no entry is lost, and that every entry that comes twice, or before an earlier one of
/// its sender, is marked.
func checkDeliveries(
  _ all: [QueueScene.Delivered], of expected: [String: [Int]], _ comment: Comment
) {
  var seen: [String: [Int]] = [:]
  for delivered in all {
    if seen[delivered.sender, default: []].contains(delivered.number) {
      #expect(delivered.isRedelivery, "\(delivered) came twice: \(all); \(comment)")
    } else {
      seen[delivered.sender, default: []].append(delivered.number)
    }
  }
  #expect(seen == expected, "\(all); \(comment)")
}
