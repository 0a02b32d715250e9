import FoundationEssentials
import Synchronization
import Testing
import WormholeInspection
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeEtcd

/// What files promise only on etcd; the rest is in the suite that runs on both engines.
@Suite("A file on etcd", .blocking, .needsEtcd)
struct EtcdAttachmentTests {
  private let directory: TemporaryDirectory
  private let location: EtcdLocation
  private static let content =
    (0..<1_300_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 9) }
  private let content = Self.content

  init() throws {
    directory = try TemporaryDirectory()
    var location = EtcdLocation(
      endpoints: [try EtcdNode.shared.get().endpoint], prefix: "test" + directory.path)
    location.fileLimit = 2 << 20
    location.lifetime = .seconds(60)
    self.location = location
  }

  /// The queue as a process of a machine sees it: each has a directory of its own.
  private func queue(_ machine: String) throws -> PlainQueue {
    try SharedContainer(etcd: location, companion: directory.path + "/" + machine).queue("q")
  }

  private func keys(_ queue: PlainQueue) throws -> EtcdQueue {
    try #require(queue.store as? EtcdQueue)
  }

  private func source() throws -> FileDescriptor {
    let path = directory.path + "/source"
    try FileDescriptor.open(path, [.writeOnly, .create]).writeAll(content)
    return try FileDescriptor.open(path, .readOnly)
  }

  private func send(_ id: String, _ queue: PlainQueue) throws {
    let sender = try queue.sender("a")
    let stage = try sender.stage(id, bytes: Int64(content.count))
    let source = try self.source()
    try stage.copy(
      source, source.status(), durability: .standard, check: {}, copied: { _ in })
    try sender.enqueue([QueueAttachment.key: .string(id)])
  }

  private func pieces(_ queue: PlainQueue) throws -> [KeyValue] {
    let keys = try keys(queue)
    return try keys.client.read(keys.range(.pieces), until: soon).items
  }

  @Test("arrives on another machine in pieces, and leaves nothing on either, nor between them")
  func arrives() throws {
    let (here, there) = (try queue("here"), try queue("there"))
    try send("x", here)
    #expect(try pieces(here).map(\.value.count) == [512 << 10, 512 << 10, 1_300_000 - (1 << 20)])
    // An entry is taken by an owner; the pieces of its file are no entries.
    let before = try #require(try here.container.report().names.queues.first)
    #expect(before.waiting == 1 && before.taken == 0)
    let consumer = try there.consume()
    let entry = try #require(try consumer.next(until: soon))
    let after = try #require(try here.container.report().names.queues.first)
    #expect(after.waiting == 0 && after.taken == 1)
    let attachment = try #require(entry.attachment)
    #expect(attachment.path.hasPrefix(directory.path + "/there/"))
    #expect(
      try attachment.open()?.readToEnd(expectedBytes: 0, maximumBytes: 2 << 20) == content)
    #expect(try here.waitingAttachments(prefix: "").isEmpty, "it is the consumer's")
    try entry.acknowledge()
    #expect(try pieces(here).isEmpty)
    #expect(!directory.listing.contains("/attachment-x"), "\(directory.listing)")
    consumer.close()
    #expect(!directory.listing.contains("etcd-"), "\(directory.listing)")
  }

  @Test("that was moved away counts as processed for a consumer of another machine, too")
  func movedAway() throws {
    let (here, there) = (try queue("here"), try queue("there"))
    try send("x", here)
    let first = try here.consume()
    let taken = try #require(try first.next(until: soon)?.attachment)
    #expect(try taken.move(to: directory.path + "/mine"))
    first.close()
    let second = try there.consume()
    let entry = try #require(try second.next(until: soon))
    #expect(try entry.isRedelivery && entry.attachment?.condition() == .movedAway)
    try entry.acknowledge()
    #expect(try pieces(here).isEmpty)
  }

  @Test("is not claimed by a consumer that was replaced, even if it has not learned of that yet")
  func replaced() throws {
    let queue = try queue("here")
    try send("x", queue)
    let consumer = try queue.consume()
    let attachment = try #require(try consumer.next(until: soon)?.attachment)
    let keys = try keys(queue)
    // What the next one that has the queue alone does first; nobody closed this one.
    _ = try keys.container.until(soon).repeating(
      .init(if: [.exists(keys.container.formatKey)], then: [.delete(keys.range(.consumers))]))
    let error = #expect(throws: WormholeError.self) {
      try attachment.move(to: directory.path + "/stolen")
    }
    #expect(error?.code == .leaseLost && !directory.listing.contains("stolen"))
  }

  @Test("that was not claimed goes to the next consumer, whatever is left of it here")
  func redelivered() throws {
    let (here, there) = (try queue("here"), try queue("there"))
    try send("x", here)
    let first = try here.consume()
    _ = try #require(try first.next(until: soon))
    first.close()
    let second = try there.consume()
    let entry = try #require(try second.next(until: soon))
    #expect(try entry.attachment?.condition() == .present(bytes: 1_300_000))
    try entry.fail("on purpose", isKept: true)
    // It can be sent again, with its file.
    let failure = try #require(try here.failures().first)
    #expect(try here.retry(failure.id) != nil)
    let again = try #require(try second.next(until: soon))
    #expect(try again.attachment?.condition() == .present(bytes: 1_300_000))
    try again.fail("on purpose", isKept: true)
    #expect(try pieces(here).count == 3)
    for failure in try here.failures() { #expect(try here.forgetFailure(failure.id)) }
    #expect(try pieces(here).isEmpty)
  }

  /// What somebody else may do to the keys.
  enum Damage: CaseIterable {
    case changed, missing, longer, foreignManifest, hugeManifest
  }

  @Test(
    "is not delivered as what it is not, whatever was done to its keys", arguments: Damage.allCases)
  func damaged(_ damage: Damage) throws {
    let queue = try queue("here")
    try send("x", queue)
    let keys = try keys(queue)
    let second = try pieces(queue)[1].key
    var operation = EtcdTransaction.Operation.delete(.key(second))
    switch damage {
    case .changed: operation = .put(key: second, value: [UInt8](repeating: 1, count: 512 << 10))
    case .missing: break
    case .longer: operation = .put(key: second, value: [UInt8](repeating: 1, count: 1 << 20))
    case .foreignManifest: operation = .put(key: keys.key(.waitingFiles, "x"), value: [1, 2, 3])
    case .hugeManifest:
      let manifest: PropertyListValue = [
        "content": "x", "size": .integer(.max), "checksum": "1", "pieces": .data(Data([1])),
      ]
      operation = .put(key: keys.key(.waitingFiles, "x"), value: try manifest.binaryBytes())
    }
    _ = try keys.container.until(soon).repeating(
      .init(if: [.exists(keys.container.formatKey)], then: [operation]))
    let consumer = try queue.consume()
    let entry = try #require(try consumer.next(until: soon))
    let condition = try entry.attachment?.condition()
    let isUnknown = damage == .foreignManifest || damage == .hugeManifest
    #expect(condition == (isUnknown ? .missing : .present(bytes: 0)))
    try entry.fail("it is damaged")
    if !isUnknown { #expect(try pieces(queue).isEmpty) }
  }

  /// Sends the first two of three pieces, and returns the stage.
  private func begin(_ id: String, _ queue: PlainQueue) throws -> any AttachmentStage {
    let stage = try queue.sender("a").stage(id, bytes: Int64(content.count))
    let source = try self.source()
    #expect(throws: NeverHappened.self) {
      var checks = 0
      try stage.copy(
        source, source.status(), durability: .standard,
        check: {
          checks += 1
          if checks == 3 { throw NeverHappened(what: "the end") }
        }, copied: { _ in })
    }
    return stage
  }

  private func complete(_ stage: any AttachmentStage) throws {
    let source = try self.source()
    try stage.copy(
      source, source.status(), durability: .standard, check: {}, copied: { _ in })
  }

  private func received(_ queue: PlainQueue) throws -> [UInt8]? {
    let consumer = try queue.consume()
    defer { consumer.close() }
    let entry = try #require(try consumer.next(until: soon))
    defer { #expect(throws: Never.self) { try entry.acknowledge() } }
    return try entry.attachment?.open()?.readToEnd(expectedBytes: 0, maximumBytes: 2 << 20)
  }

  @Test("of a sender that ended in the middle is swept, and of one that lives is not")
  func deadSender() throws {
    let queue = try queue("here")
    try send("whole", queue)
    do {
      let stage = try begin("dead", queue)
      _ = try queue.container.sweep()
      #expect(try pieces(queue).count == 5)
      withExtendedLifetime(stage) {}
    }
    // Nothing else of this process has a session that ends with it.
    try eventually("its pieces are swept") {
      _ = try queue.container.sweep()
      return try pieces(queue).count == 3
    }
    #expect(try queue.waitingAttachments(prefix: "") == [.init(id: "whole", isWhole: true)])
  }

  @Test("that its sender removes and begins again is whole, and the sender before has lost it")
  func begunAgain() throws {
    let queue = try queue("here")
    let late = try begin("first", queue)
    try queue.removeAttachment("first")
    #expect(try pieces(queue).isEmpty)
    let sender = try queue.sender("a")
    try complete(try sender.stage("next", bytes: 1_300_000))
    let error = #expect(throws: WormholeError.self) { try complete(late) }
    #expect(error?.code == .leaseLost)
    #expect(try pieces(queue).count == 3, "and what it has put late is gone")
    #expect(try queue.waitingAttachments(prefix: "") == [.init(id: "next", isWhole: true)])
    try sender.enqueue([QueueAttachment.key: "next"])
    #expect(try received(queue) == content)
    #expect(try pieces(queue).isEmpty)
  }

  @Test("is sent no further once its sender's process has lost its session")
  func lostSession() throws {
    let queue = try queue("here")
    let stage = try queue.sender("a").stage("x", bytes: Int64(content.count))
    try keys(queue).container.until(soon).session().end()
    let source = try self.source()
    let error = #expect(throws: WormholeError.self) {
      try stage.copy(source, source.status(), durability: .standard, check: {}, copied: { _ in })
    }
    #expect(try error?.code == .leaseLost && pieces(queue).isEmpty)
  }

  @Test("arrives whole, though every third answer to its sender is lost")
  func lostAnswers() throws {
    let proxy = try LossyProxy(to: try #require(location.endpoints.first), losingOneIn: 3)
    var faulty = location
    faulty.endpoints = [proxy.endpoint]
    let path = directory.path + "/there"
    try send("x", SharedContainer(etcd: faulty, companion: path).queue("q"))
    #expect(proxy.lost >= 2)
    let consumer = try queue("here").consume()
    let attachment = try #require(try consumer.next(until: soon)?.attachment)
    #expect(
      try attachment.open()?.readToEnd(expectedBytes: 0, maximumBytes: 2 << 20) == content)
  }

  @Test("that is larger than the limit is refused with the limit, before anything is sent")
  func tooLarge() throws {
    let queue = try queue("here")
    let error = #expect(throws: WormholeError.self) {
      try queue.sender("a").stage("x", bytes: (2 << 20) + 1)
    }
    #expect(error?.code == .tooLarge && error?.reason.contains("2097152") == true)
    #expect(error?.remedy?.contains("file-limit") == true)
    #expect(try queue.waitingAttachments(prefix: "").isEmpty)
    #expect(try EtcdLocation("etcd://h/p?file-limit=3").fileLimit == 3 << 20)
    #expect(throws: WormholeError.self) { try EtcdLocation("etcd://h/p?file-limit=0") }
    #expect(try EtcdLocation("etcd://h/p?files=/a%20b").files == "/a b")
    #expect(throws: WormholeError.self) { try EtcdLocation("etcd://h/p?files=/a%+5b") }
  }
}
