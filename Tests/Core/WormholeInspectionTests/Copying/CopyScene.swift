import FoundationEssentials
import Synchronization
import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeEtcd

/// A container with something of each kind that outlives processes, and a description of one.
struct CopyScene {
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// A container of the kind under test, empty.
  func container(_ engine: TestEngine, _ name: String) throws -> SharedContainer {
    let path = directory.path + "/" + name
    try makeDirectory(path, mode: 0o700)
    return try engine.container(at: path)
  }

  /// A place of the kind where there is nothing.
  func place(
    _ engine: TestEngine, _ name: String, lifetime: Duration = .seconds(5)
  ) throws -> String {
    let path = directory.path + "/" + name
    return try engine.location(of: path, lifetime: lifetime)?.description ?? path
  }

  func open(_ place: String) throws -> SharedContainer {
    guard Engines.isMeant(by: place) else { return try SharedContainer(location: place) }
    return try SharedContainer(etcd: EtcdLocation(place), companion: directory.path + "/companion")
  }

  static let long = String(repeating: "name/", count: 60)
  static let file = (0..<1_200_000).map { UInt8(truncatingIfNeeded: $0 &* 11 &+ $0 >> 7) }

  // MARK: Filling

  func fill(_ container: SharedContainer) throws {
    try container.value("plain").replace(with: ["a": 1, "b": [true, 2.5]])
    try container.value(Self.long).replace(with: "long")
    try container.value("removed").replace(with: 1)
    try container.value("removed").remove()
    try container.value("expires").replace(with: 7, expiresAfter: .seconds(600))
    try container.own.value("x/y").replace(with: "own")
    try container.notification("n").setState(.max)
    try container.notification("n").post()
    let registration = try container.presence("here").enter(content: "content")
    registration.close()
    try fill(container.queue("q"))
    try fill(PlainQueue(container: container, name: "own", kind: .ownQueue))
    try attach(container.queue("files"))
    let log = container.log("l/o")
    try log.setBounds(.init(messages: 5, bytes: 1 << 20))
    for number in 0..<8 { try log.append(PropertyListValue(number)) }
    let subscriber = try log.subscribe("reader", from: .beginning)
    _ = try subscriber.next(until: soon)
    try subscriber.acknowledge()
    subscriber.close()
  }

  private func fill(_ queue: PlainQueue) throws {
    let (a, b) = (try queue.sender("a"), try queue.sender("b c/d"))
    // Taken twice by consumers that ended, the second one after it had settled some.
    for _ in 0..<2 { try a.enqueue("taken", keepsReceipt: true) }
    try b.enqueue("kept", keepsReceipt: true)
    let cancelled = try b.enqueue("cancelled", keepsReceipt: true)
    let forgotten = try b.enqueue("forgotten", keepsReceipt: true)
    _ = try b.cancel(cancelled)
    try queue.sender("c").enqueue("processed", keepsReceipt: true)
    let together = try sendTogether(["one", "two"], queue)
    let consumer = try queue.consume()
    var taken: [PlainEntry] = []
    while let entry = try consumer.next(until: .now) {
      switch entry.payload {
      case "kept": try entry.fail("on purpose", isKept: true)
      case "taken":
        taken.append(entry)
        if taken.count == 2 { try entry.mark("half") }
      default: try entry.acknowledge()
      }
    }
    consumer.close()
    try b.forget(forgotten)
    try queue.sender("c").forget(together[0])
    for number in 0..<3 { try a.enqueue(PropertyListValue(number)) }
    try b.enqueue("old", key: "k")
    try b.enqueue("new", key: "k")
    try b.enqueue("third")
    try a.enqueue("late", delay: .seconds(3_600))
    try a.enqueue("whenever", expires: .seconds(600))
  }

  /// Sends entries as one batch, with receipts.
  private func sendTogether(
    _ payloads: [PropertyListValue], _ queue: PlainQueue
  ) throws -> [QueueEntryID] {
    let outcomes = Mutex<[Result<QueueEntryID, any Error>]>([])
    let submissions = payloads.map { payload in
      Submission(Batch.Entry(payload: payload, keepsReceipt: true), durability: .standard) {
        outcome in
        outcomes.withLock { $0.append(outcome) }
      }
    }
    try queue.sender("c").submissions.write(submissions)
    return try outcomes.withLock { $0 }.map { try $0.get() }
  }

  /// A file that waits, one that was taken, one that was claimed, and one kept with a failure.
  private func attach(_ queue: PlainQueue) throws {
    let path = directory.path + "/source-" + Nonce.next()
    try FileDescriptor.open(path, [.writeOnly, .create]).writeAll(Self.file)
    let sender = try queue.sender("a")
    for id in ["failed", "claimed", "taken", "waiting"] {
      let stage = try sender.stage(id, bytes: Int64(Self.file.count))
      let source = try FileDescriptor.open(path, .readOnly)
      _ = try stage.copy(
        source, source.status(), durability: .standard, check: {}, copied: { _ in })
      try sender.enqueue([QueueAttachment.key: .string(id)])
      if id == "waiting" { continue }
      let consumer = try queue.consume()
      // Those that were taken before come again.
      while let entry = try consumer.next(until: .now) {
        guard entry.payload.attachmentID == id else { continue }
        if id == "failed" { try entry.fail("no room", isKept: true) }
        if id == "claimed" {
          _ = try entry.attachment?.move(to: directory.path + "/claimed-" + Nonce.next())
        }
      }
      consumer.close()
    }
  }

  // MARK: Describing

  /// Everything that another process finds in a container, in words. It takes what waits.
  func description(of container: SharedContainer) throws -> [String] {
    var lines: [String] = []
    for name in try container.valueIdentifiers().sorted() {
      lines.append("value \(name): \(try words(container.value(name).snapshot()))")
    }
    for name in try container.own.valueIdentifiers().sorted() {
      lines.append("own value \(name): \(try words(container.own.value(name).snapshot()))")
    }
    lines.append("state \(try container.notification("n").state())")
    if case .gone(let last?, let ended) = try container.presence("here").status() {
      lines.append("last \(last.processID) \(last.program) \(last.content ?? "") \(ended != nil)")
    }
    lines += try words(container.queue("q"))
    lines += try words(PlainQueue(container: container, name: "own", kind: .ownQueue))
    lines += try files(container.queue("files"))
    lines += try words(container.log("l/o"))
    return lines.filter { !$0.hasSuffix(": nothing") }
  }

  private func words(_ snapshot: PlainSnapshot) throws -> String {
    guard let value = try snapshot.propertyList() else { return "nothing" }
    let publisher = try #require(snapshot.publisher)
    return "\(value) by \(publisher) until \(snapshot.expiration.map { "\($0)" } ?? "ever")"
  }

  /// Its messages, and that it goes on after the last one.
  private func words(_ log: PlainLog) throws -> [String] {
    let (reader, subscriber) = (try log.read(), try log.subscribe("reader"))
    defer {
      reader.close()
      subscriber.close()
    }
    var lines: [String] = []
    while let message = try reader.next(until: .now) {
      #expect(abs(message.date.timeIntervalSinceNow) < 600)
      lines.append("message \(message.number) \(message.payload)")
    }
    lines.append("first unread \(try subscriber.next(until: .now)?.number ?? 0)")
    lines.append("bounds \(try log.bounds())")
    return lines + ["next \(try log.append("next"))"]
  }

  private func words(_ queue: PlainQueue) throws -> [String] {
    var lines: [String] = []
    for name in ["a", "b c/d", "c"] {
      let sender = try queue.sender(name)
      for receipt in try sender.receipts() {
        lines.append("receipt \(receipt.id) \(receipt.payload) \(receipt.status)")
      }
      lines += try sender.outstanding().map { "outstanding \($0.id) \($0.status)" }
    }
    lines += try queue.failures().map {
      "failure \($0.id) \($0.payload) \($0.reason) \(Int($0.date.timeIntervalSince1970))"
    }
    let consumer = try queue.consume()
    defer { consumer.close() }
    while let entry = try consumer.next(until: .now) {
      let mark = try entry.marked() ?? "none"
      lines.append(
        "entry \(entry.sender) \(entry.payload) \(entry.attempt) \(mark)")
      try entry.acknowledge()
    }
    lines += try queue.sender("a").outstanding().map { "late \($0.id)" }
    // A newer one supersedes what waits, and comes after all that its sender has sent.
    let first = try queue.sender("a").enqueue("one", key: "k")
    let second = try queue.sender("a").enqueue("two", key: "k")
    lines.append(
      "\(try queue.sender("a").status(of: first)) \(first.batch.order < second.batch.order)")
    return lines
  }

  private func files(_ queue: PlainQueue) throws -> [String] {
    var lines: [String] = []
    for failure in try queue.failures() {
      lines.append("failure \(failure.id) \(failure.reason)")
      _ = try queue.retry(failure.id)
    }
    let consumer = try queue.consume()
    defer { consumer.close() }
    while let entry = try consumer.next(until: .now) {
      let found = try words(entry.attachment)
      lines.append("entry \(entry.payload.attachmentID ?? "") \(entry.attempt) \(found)")
      try entry.acknowledge()
    }
    return lines
  }

  private func words(_ attachment: QueueAttachment?) throws -> String {
    let path = directory.path + "/got-" + Nonce.next()
    do {
      guard try attachment?.move(to: path) == true else { return "no file" }
    } catch let error as Errno where error == .noSuchFile {
      return "claimed"
    }
    let bytes = try FileDescriptor.open(path, .readOnly)
      .readToEnd(expectedBytes: 0, maximumBytes: 1 << 22)
    return bytes == Self.file ? "the file" : "another file of \(bytes.count)"
  }
}
