import Testing
import WormholeInspection
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole

@Suite("The attachment of a queue's entry", .blocking, .bothEngines)
struct QueueAttachmentTests {
  /// Sends an entry with an attachment of some bytes.
  @discardableResult
  private func send(
    _ id: String, _ scene: QueueScene, expires: Duration? = nil
  ) throws -> QueueEntryID {
    let sender = try scene.queue.sender("a")
    let stage = try sender.stage(id, bytes: 3)
    try copy(to: stage, scene)
    return try sender.enqueue([QueueAttachment.key: .string(id)], expires: expires)
  }

  private func copy(to stage: any AttachmentStage, _ scene: QueueScene) throws {
    let source = try self.source(scene)
    try stage.copy(
      source, source.status(), durability: .standard, check: {}, copied: { _ in })
  }

  private func source(_ scene: QueueScene) throws -> FileDescriptor {
    let path = scene.directory.path + "/source"
    try FileDescriptor.open(path, [.writeOnly, .create]).writeAll([1, 2, 3])
    return try FileDescriptor.open(path, .readOnly)
  }

  private func leftovers(_ scene: QueueScene) throws -> [String] {
    try scene.attachmentLeftovers() + scene.leftovers()
  }

  @Test("exists as long as the entry, and is removed at its end, however it ends")
  func ends() throws {
    let scene = try QueueScene()
    for id in ["acknowledged", "failed"] { try send(id, scene) }
    try send("expired", scene, expires: .zero)
    let consumer = try scene.queue.consume()
    for id in ["acknowledged", "failed"] {
      let entry = try #require(try consumer.next(until: .now))
      let attachment = try #require(entry.attachment)
      #expect(try attachment.id == id && attachment.condition() == .present(bytes: 3))
      #expect(try attachment.open()?.readToEnd(expectedBytes: 3, maximumBytes: 9) == [1, 2, 3])
      try id == "failed" ? entry.fail("on purpose") : entry.acknowledge()
      #expect(try attachment.condition() == .missing)
    }
    #expect(try consumer.next(until: .now) == nil)
    #expect(try leftovers(scene).isEmpty, "\(scene.directory.listing)")
  }

  @Test("belongs to the consumer that renamed its content away, even after its death")
  func movedAway() throws {
    let scene = try QueueScene()
    try send("x", scene)
    let first = try scene.queue.consume()
    let attachment = try #require(try first.next(until: .now)?.attachment)
    #expect(try attachment.move(to: scene.directory.path + "/mine"))
    #expect(try attachment.condition() == .movedAway)
    #expect(throws: Errno.noSuchFile) { try attachment.move(to: scene.directory.path + "/more") }
    first.close()
    let second = try scene.queue.consume()
    let entry = try #require(try second.next(until: .now))
    #expect(try entry.isRedelivery && entry.attachment?.condition() == .movedAway)
    try entry.acknowledge()
    #expect(try leftovers(scene).isEmpty, "\(scene.directory.listing)")
  }

  @Test("belongs to the successor of a consumer that was replaced")
  func replaced() throws {
    let scene = try QueueScene()
    try send("x", scene)
    let first = try scene.queue.consume()
    let late = try #require(try first.next(until: .now))
    first.close()
    let second = try scene.queue.consume()
    let entry = try #require(try second.next(until: .now))
    let attachment = try #require(late.attachment)
    for act: () throws -> Void in [
      { _ = try attachment.move(to: scene.directory.path + "/stolen") },
      { try attachment.removeContent() }, { _ = try attachment.condition() },
      { _ = try attachment.open() }, { try late.acknowledge() },
    ] {
      let error = #expect(throws: WormholeError.self) { try act() }
      #expect(error?.code == .leaseLost)
    }
    #expect(try entry.attachment?.condition() == .present(bytes: 3))
    try entry.acknowledge()
    #expect(try leftovers(scene).isEmpty, "\(scene.directory.listing)")
  }

  @Test(
    "of a sender that died while copying is swept; a complete or growing one is not",
    .onlyDirectories("there it is locked by its sender; on etcd it lasts as long as its session"),
    arguments: [false, true])
  func swept(bySweeping: Bool) throws {
    let scene = try QueueScene()
    let sender = try scene.queue.sender("a")
    do {
      let dead = try sender.stage("dead", bytes: 3)
      let source = try self.source(scene)
      #expect(throws: NeverHappened.self) {
        try dead.copy(
          source, source.status(), durability: .standard,
          check: { throw NeverHappened(what: "the end") }, copied: { _ in })
      }
      let whole = try sender.stage("whole", bytes: 3)
      try copy(to: whole, scene)
    }
    let alive = try sender.stage("alive", bytes: 3)
    let leftovers = ["\(scene.place)/attachments/dead"]
    // A child that another test is just starting shares the lock until it becomes its program.
    try eventually("the attachment of the dead sender is unlocked") {
      try scene.queue.container.report().leftovers.map(\.path) == leftovers
    }
    if bySweeping {
      #expect(try scene.queue.container.sweep().removed == leftovers)
    } else {
      try scene.queue.consume().close()
    }
    #expect(try Set(scene.names("attachments")) == ["alive", "whole"])
    #expect(
      try scene.queue.waitingAttachments(prefix: "w") == [.init(id: "whole", isWhole: true)])
    try copy(to: alive, scene)
    #expect(try scene.queue.renameAttachment("alive", to: "taken-over"))
    #expect(try !scene.queue.renameAttachment("alive", to: "again"))
  }

  @Test("that another process gave up cannot be completed any more")
  func overtaken() throws {
    let scene = try QueueScene()
    let sender = try scene.queue.sender("a")
    let late = try sender.stage("late", bytes: 3)
    try scene.queue.removeAttachment("late")
    let error = #expect(throws: WormholeError.self) { try copy(to: late, scene) }
    #expect(error?.code == .leaseLost)
    #expect(try leftovers(scene).isEmpty, "\(scene.directory.listing)")
  }

  @Test(
    "that no entry names any more is swept from a dead consumer's directory",
    .onlyDirectories("on etcd it has no directory that others look at"))
  func orphan() throws {
    let scene = try QueueScene()
    try send("x", scene)
    try send("y", scene)
    let first = try scene.queue.consume()
    _ = try #require(try first.next(until: .now))
    let consumer = try #require(try scene.names("taken").first)
    let orphan = "\(scene.place)/taken/\(consumer)/attachment-orphan"
    try makeDirectory(orphan)
    try FileDescriptor.open(orphan + "/content", [.writeOnly, .create]).writeAll([1])
    first.close()
    let second = try scene.queue.consume()
    let entry = try #require(try second.next(until: .now))
    #expect(try entry.attachment?.condition() == .present(bytes: 3))
    #expect(!scene.directory.listing.contains("orphan"))
  }

  @Test(
    "is refused as a link, a directory, or a name that leads elsewhere",
    .onlyDirectories("on etcd nobody else writes where its file is"))
  func hostile() throws {
    let scene = try QueueScene()
    let sender = try scene.queue.sender("a")
    for id in ["", "..", "a/b", ".hidden", String(repeating: "x", count: 129)] {
      let error = #expect(throws: WormholeError.self) { try sender.stage(id, bytes: 3) }
      #expect(error?.code == .unsupportedValue)
      try sender.enqueue([QueueAttachment.key: .string(id)])
    }
    try sender.enqueue([QueueAttachment.key: "missing"])
    for (id, make) in [
      (
        "link",
        {
          try makeSymbolicLink(FileName($0), at: Directory.current, target: FileName("/etc/passwd"))
        }
      ),
      ("directory", { try makeDirectory($0) }),
    ] as [(String, (String) throws -> Void)] {
      _ = try sender.stage(id, bytes: 3)
      try make("\(scene.place)/attachments/\(id)/content")
      try sender.enqueue([QueueAttachment.key: .string(id)])
    }
    let consumer = try scene.queue.consume()
    for _ in 0..<5 {
      let entry = try #require(try consumer.next(until: .now))
      #expect(entry.attachment == nil)
      try entry.acknowledge()
    }
    let missing = try #require(try consumer.next(until: .now))
    #expect(try missing.attachment?.condition() == .missing)
    try missing.acknowledge()
    for _ in 0..<2 {
      let entry = try #require(try consumer.next(until: .now))
      let error = #expect(throws: WormholeError.self) { try entry.attachment?.condition() }
      #expect(error?.code == .notAValue)
      try entry.fail("it is none")
    }
  }
}

@Suite("XXH64", .blocking)
struct XXH64Tests {
  private static let prime: UInt64 = 2_654_435_761

  // The buffer and the results of the reference implementation's own check (xxHash,
  // cli/xsum_sanity_check.c).
  private static let buffer: [UInt8] = {
    var generator = prime
    return (0..<222).map { _ in
      defer { generator = generator &* 11_400_714_785_074_694_797 }
      return UInt8(truncatingIfNeeded: generator >> 56)
    }
  }()

  @Test(
    "returns the published results",
    arguments: [
      (0, 0, 0xEF46_DB37_51D8_E999), (0, prime, 0xAC75_FDA2_929B_17EF),
      (1, 0, 0xE934_A84A_DB05_2768), (1, prime, 0x5014_6076_43A9_B4C3),
      (4, 0, 0x9136_A0DC_A574_57EE), (14, 0, 0x8282_DCC4_994E_35C8),
      (14, prime, 0xC3BD_6BF6_3DEB_6DF0), (222, 0, 0xB641_AE8C_B691_C174),
      (222, prime, 0x20CB_8AB7_AE10_C14A),
    ] as [(Int, UInt64, UInt64)])
  func published(count: Int, seed: UInt64, expected: UInt64) {
    for piece in [1, 7, 32, 33, 222] {
      var hash = XXH64(seed: seed)
      var rest = Self.buffer[..<count]
      while !rest.isEmpty {
        Array(rest.prefix(piece)).withUnsafeBytes { hash.update($0) }
        rest = rest.dropFirst(piece)
      }
      #expect(hash.value == expected, "in pieces of \(piece)")
    }
  }
}
