import FoundationEssentials
import Testing
import WormholeInspection
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeEtcd

/// Files whose content goes through a directory that all machines share.
@Suite("A file beside etcd", .blocking, .needsEtcd)
struct DirectoryPiecesTests {
  private let directory: TemporaryDirectory
  private let location: EtcdLocation
  private static let content =
    (0..<1_300_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 9) }

  init() throws {
    directory = try TemporaryDirectory()
    try makeDirectory(directory.path + "/shared")
    let endpoint = try EtcdNode.shared.get().endpoint.dropFirst("http://".count)
    var location = try EtcdLocation(
      "etcd://\(endpoint)/test\(directory.path)?files=\(directory.path)/shared&ttl=60")
    #expect(location.fileLimit == 4 << 30)
    location.fileLimit = 4 << 20
    self.location = location
    try FileDescriptor.open(directory.path + "/source", [.writeOnly, .create]).writeAll(
      Self.content)
  }

  /// The queue as a process of a machine sees it.
  private func queue(_ machine: String, files: Bool = true) throws -> PlainQueue {
    var location = location
    if !files { location.files = nil }
    return try SharedContainer(etcd: location, companion: directory.path + "/" + machine).queue("q")
  }

  private func stage(_ id: String, _ queue: PlainQueue) throws {
    let stage = try queue.sender("a").stage(id, bytes: Int64(Self.content.count))
    let source = try FileDescriptor.open(directory.path + "/source", .readOnly)
    try stage.copy(source, source.status(), durability: .standard, check: {}, copied: { _ in })
  }

  private func send(_ id: String, _ queue: PlainQueue) throws {
    try stage(id, queue)
    try queue.sender("a").enqueue([QueueAttachment.key: .string(id)])
  }

  @Test(
    "waits for a machine on which the directory is mounted, and whose limit it does not exceed",
    arguments: [false, true])
  func waits(isMounted: Bool) throws {
    let here = try queue("here")
    try send("x", here)
    var elsewhere = location
    if isMounted {
      elsewhere.fileLimit = 1 << 20
    } else {
      try makeDirectory(directory.path + "/empty")
      elsewhere.files = directory.path + "/empty"
    }
    let there = try SharedContainer(etcd: elsewhere, companion: directory.path + "/there").queue(
      "q")
    do {
      let consumer = try there.consume()
      defer { consumer.close() }
      let error = #expect(throws: WormholeError.self) {
        _ = try consumer.next(until: soon)?.attachment?.open()
      }
      #expect(error?.code == .notSupported && error?.remedy?.hasSuffix("the file waits") == true)
    }
    let consumer = try queue("right").consume()
    let attachment = try #require(try consumer.next(until: soon)?.attachment)
    #expect(
      try attachment.open()?.readToEnd(expectedBytes: 0, maximumBytes: 2 << 20) == Self.content)
  }

  @Test("whose pieces are gone counts as damaged, and an empty one arrives")
  func gone() throws {
    let here = try queue("here")
    try send("x", here)
    let place = directory.path + "/shared"
    let open = try FileDescriptor.open(place, [.readOnly, .directory])
    for name in try open.entries().map(\.name.text) {
      let queue = try FileDescriptor.open(place + "/" + name, [.readOnly, .directory])
      for content in try queue.entries().map(\.name) {
        try TreeRemoval().remove(content, at: queue.rawValue)
      }
    }
    let stage = try here.sender("a").stage("y", bytes: 0)
    try FileDescriptor.open(directory.path + "/empty", [.writeOnly, .create]).writeAll([])
    let source = try FileDescriptor.open(directory.path + "/empty", .readOnly)
    try stage.copy(source, source.status(), durability: .standard, check: {}, copied: { _ in })
    try here.sender("a").enqueue([QueueAttachment.key: .string("y")])
    let consumer = try queue("there").consume()
    for _ in 0..<2 {
      let entry = try #require(try consumer.next(until: soon))
      #expect(try entry.attachment?.open()?.status().size == 0)
      try entry.acknowledge()
    }
  }

  @Test("arrives, though etcd has none of its content, and leaves nothing in the directory")
  func arrives() throws {
    let (here, there) = (try queue("here"), try queue("there"))
    try send("x", here)
    let keys = try #require(here.store as? EtcdQueue)
    let all = try keys.client.read(keys.everything, until: soon).items
    #expect(all.allSatisfy { $0.value.count < 1_000 }, "names, sizes and checksums")
    #expect(directory.listing.contains("/x/00000002-"), "\(directory.listing)")
    let consumer = try there.consume()
    defer { consumer.close() }
    let entry = try #require(try consumer.next(until: soon))
    #expect(
      try entry.attachment?.open()?.readToEnd(expectedBytes: 0, maximumBytes: 2 << 20)
        == Self.content)
    try entry.acknowledge()
    #expect(!directory.listing.contains("/x/0000"), "\(directory.listing)")
  }

  @Test("that was changed in the directory is not delivered as the file")
  func changed() throws {
    let (here, there) = (try queue("here"), try queue("there"))
    try send("x", here)
    let piece = try #require(
      directory.listing.split(whereSeparator: \.isWhitespace).first { $0.contains("x/00000001-") })
    try FileDescriptor.open(directory.path + "/" + piece, [.writeOnly, .truncate])
      .writeAll([1, 2, 3])
    let consumer = try there.consume()
    defer { consumer.close() }
    let entry = try #require(try consumer.next(until: soon))
    #expect(try entry.attachment?.condition() == .present(bytes: 0))
    try entry.acknowledge()
  }

  @Test("is continued by the next sender, and swept if none continues it")
  func continued() throws {
    let here = try queue("here")
    try stage("left", here)
    #expect(directory.listing.contains("/left/0000"))
    // No entry names it; its manifest is removed, as after its time.
    let keys = try #require(here.store as? EtcdQueue)
    for item in try keys.client.read(keys.range(.waitingFiles), until: soon).items {
      _ = try keys.files.repeating(.init(if: item.unchanged, then: [.delete(.key(item.key))]))
    }
    try keys.sweep()
    #expect(!directory.listing.contains("/left/"), "\(directory.listing)")
  }

  @Test("says what a machine lacks whose location does not name the directory")
  func unnamed() throws {
    try send("x", queue("here"))
    let consumer = try queue("there", files: false).consume()
    defer { consumer.close() }
    let error = #expect(throws: WormholeError.self) { try consumer.next(until: soon) }
    #expect(error?.code == .notSupported && error?.remedy?.contains("files=") == true)
    try FileManager.default.removeItem(atPath: directory.path + "/shared")
    let missing = #expect(throws: WormholeError.self) { try send("y", queue("here")) }
    let said = String(describing: missing)
    #expect(said.contains("/shared"), "\(said)")
  }

  @Test("is not left out of a copy, which refuses it")
  func copied() throws {
    let here = try queue("here")
    try send("x", here)
    let error = #expect(throws: WormholeError.self) {
      _ = try ContainerCopy(of: here.container).run(to: directory.path + "/copy", until: soon)
    }
    #expect(error?.code == .notSupported)
  }
}
