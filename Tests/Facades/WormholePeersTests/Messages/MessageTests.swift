import FoundationEssentials
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import WormholePeers

@Suite("A guaranteed message", .blocking, .bothEngines)
struct MessageTests {
  let scene: MessageScene
  var phone: PeerSession { scene.phone }
  var watch: PeerSession { scene.watch }

  init() throws { scene = try MessageScene() }

  @Test("waits for a peer that was never there, and arrives in the order of sending")
  func order() throws {
    let before = Date()
    let transfers = try (0..<5).map {
      try phone.enqueue(
        PropertyListValue($0), to: "watch",
        options: .init(durability: $0 == 2 ? .durable : .standard))
    }
    #expect(transfers.map(\.sender) == .init(repeating: "phone", count: 5))
    #expect(try transfers[4].status() == .stored)
    let receiver = try watch.receiveMessages()
    let first = try #require(try receiver.next(until: .now))
    #expect(first.value == 0 && first.sender == "phone" && !first.isRedelivery)
    #expect(first.id == transfers[0].id)
    #expect(first.sent >= before && first.sent <= Date())
    #expect(try transfers[0].status() == .taken)
    try first.acknowledge()
    try first.acknowledge()
    #expect(try transfers[0].status() == .processed)
    #expect(try scene.drain(receiver) == (1..<5).map { "phone \($0)" })
    #expect(try receiver.next(until: .now).map(\.id) == nil)
    #expect(try receiver.isIdle())
  }

  @Test("is exactly the sent value for readers of the files", .onlyDirectories("it reads the file"))
  func plain() throws {
    let value: PropertyListValue = ["seat": 7, "name": "Ada"]
    try phone.enqueue(value, to: "watch")
    let batch = try FileDescriptor.open(scene.onlyFile(in: "pending"), .readOnly)
      .readToEnd(expectedBytes: 0, maximumBytes: 1 << 20)
    #expect(try PropertyListValue(bytes: batch)["entries"] == [["payload": value]])
  }

  @Test("reports its outcome to a waiting thread, a waiting task, and on a later request")
  func ends() async throws {
    let receiver = try await watch.receiveMessages()
    let kept = PeerMessageOptions(keepsReceipt: true)
    let first = try await phone.enqueue(1, to: "watch", options: kept)
    let second = try await phone.enqueue(2, to: "watch", options: kept)
    #expect(try await first.finalStatus(until: .now) == .stored)
    async let firstEnd = first.finalStatus(until: soon)
    async let secondEnd = Blocking.run { try second.finalStatus(until: soon) }
    try #require(try await receiver.next(until: .now)).acknowledge()
    try #require(try await receiver.next(until: .now)).fail("no paper")
    #expect(try await firstEnd == .processed)
    #expect(try await secondEnd == .failed(reason: "no paper"))
    let late = Task { try await phone.enqueue(3, to: "watch").finalStatus() }
    late.cancel()
    await #expect { try await late.value } throws: { ($0 as? WormholeError)?.code == .cancelled }
  }

  @Test("is found again with its outcome by a restarted sender, until it is cleared")
  func receipts() throws {
    let kept = PeerMessageOptions(keepsReceipt: true)
    let failing = try phone.enqueue(1, to: "watch", options: kept)
    try phone.enqueue(2, to: "other", options: kept)
    let unlisted = try phone.enqueue(3, to: "watch")
    try PeerSession("stranger", in: scene.container).enqueue(4, to: "watch", options: kept)
    let waiting = try phone.enqueue(5, to: "watch", options: kept)
    let receiver = try watch.receiveMessages()
    try #require(try receiver.next(until: .now)).fail("why")
    try #require(try receiver.next(until: .now)).acknowledge()

    let again = try PeerSession("phone", in: scene.container)
    let found = try again.messageTransfers(to: "watch")
    #expect(found.map(\.value) == [1, 5] && found.map(\.id) == [failing.id, waiting.id])
    #expect(try found.map { try $0.status() } == [.failed(reason: "why"), .stored])
    #expect(try again.messageTransfers().map(\.peer) == ["other", "watch", "watch"])
    #expect(try again.status(ofMessage: unlisted.id) == .processed)
    #expect(try again.messageTransfer(id: unlisted.id).map(\.id) == nil)
    #expect(try again.messageTransfer(id: waiting.id)?.value == 5)
    // Messages that have not ended stay, and are delivered.
    for transfer in found { try transfer.removeReceipt() }
    #expect(try again.messageTransfers(to: "watch").map(\.id) == [waiting.id])
    #expect(try scene.drain(receiver) == ["stranger 4", "phone 5"])
    for transfer in try again.messageTransfers(to: "watch") { try transfer.removeReceipt() }
    #expect(try again.messageTransfers(to: "watch").isEmpty)
    #expect(try again.messageTransfer(id: waiting.id).map(\.id) == nil)
  }

  @Test("has an id that can be kept as text, whatever the names of its peers")
  func ids() throws {
    for name in ["watch", "a/b", "%2F", "../..", "\u{301}/messages", "m m", "é", "e\u{301}"] {
      let peer = try PeerSession(name, in: scene.container)
      let sent = try peer.enqueue(.string(name), to: name)
      let found = try #require(try phone.messageTransfer(id: sent.id), "\(sent.id)")
      #expect(found.peer.utf8.elementsEqual(name.utf8) && found.id == sent.id)
      #expect(found.sender.utf8.elementsEqual(name.utf8))
      #expect(try found.cancel())
      #expect(try peer.receiveMessages().next(until: .now).map(\.id) == nil)
    }
    for text in ["", "/", "//", "x", "peer/watch/messages/x/0", "peer/watch/files/x/0"] {
      #expect(try phone.messageTransfer(id: text).map(\.id) == nil, "\(text)")
      #expect(try phone.status(ofMessage: text) == nil, "\(text)")
    }
  }

  @Test("never reaches a peer of another name, although the two are equal as strings")
  func equalNames() throws {
    try phone.enqueue(1, to: "\u{e9}")
    try phone.enqueue(2, to: "e\u{301}")
    let receiver = try PeerSession("e\u{301}", in: scene.container).receiveMessages()
    #expect(try scene.drain(receiver) == ["phone 2"])
  }

  @Test("is refused with a sentence if its peer is impossible, or no peer would accept it")
  func refused() throws {
    for name in ["", String(repeating: "x", count: 101)] {
      let error = #expect(throws: WormholeError.self) { try phone.enqueue(1, to: name) }
      #expect(error?.code == .unsupportedValue && error?.peer == name)
    }
    let large = PropertyListValue.data(Data(count: SharedContainer.maximumValueBytes))
    let error = #expect(throws: WormholeError.self) { try phone.enqueue(large, to: "watch") }
    #expect(error?.code == .tooLarge, "\(error.map { "\($0)" } ?? "")")
    #expect(error?.description.hasPrefix("cannot send a message to \"watch\": ") == true)
    #expect(throws: WormholeError.self) {
      try phone.enqueue(encoding: Int?.none, to: "watch")
    }
    #expect(try scene.drain().isEmpty)
  }

  @Test("is not delivered once it has expired, and its sender learns it")
  func expiry() throws {
    let late = try phone.enqueue(1, to: "watch", options: .init(expiry: .zero))
    try phone.enqueue(2, to: "watch", options: .init(expiry: .seconds(3_600)))
    #expect(try scene.drain() == ["phone 2"])
    #expect(try late.finalStatus(until: .now) == .expired)
  }

  @Test("can be cancelled as long as no receiver has it")
  func cancelling() async throws {
    let first = try await phone.enqueue(1, to: "watch")
    let second = try await phone.enqueue(2, to: "watch")
    #expect(try await first.cancel())
    #expect(try await first.cancel(), "once more changes nothing")
    #expect(try first.status() == .cancelled)
    let receiver = try await watch.receiveMessages()
    let message = try #require(try await receiver.next(until: .now))
    #expect(message.value == 2)
    #expect(try await !second.cancel())
    try message.acknowledge()
    #expect(try await !second.cancel())
  }

  @Test("replaces an older one with its key from the same sender, unless that is taken")
  func superseding() async throws {
    let keyed = PeerMessageOptions(key: "k")
    let other = try PeerSession("other", in: scene.container)
    let taken = try await phone.enqueue(0, to: "watch", options: keyed)
    let receiver = try await watch.receiveMessages()
    let first = try #require(try await receiver.next(until: .now))
    let old = try await phone.enqueue(1, to: "watch", options: keyed)
    try await phone.enqueue(2, to: "watch")
    try await other.enqueue(3, to: "watch", options: keyed)
    // A restarted sender knows nothing of the first but its key.
    let again = try PeerSession("phone", in: scene.container)
    try await again.enqueue(4, to: "watch", options: keyed)
    #expect(try await old.finalStatus(until: soon) == .superseded)
    try first.acknowledge()
    #expect(try scene.drain(receiver) == ["phone 2", "other 3", "phone 4"])
    #expect(try taken.status() == .processed)
  }

  @Test("is refused if too many wait, without dropping any, and accepted again when there is room")
  func full() throws {
    phone.outbox.limit(to: .init(entries: 3, bytes: 1 << 20))
    for number in 0..<3 { try phone.enqueue(PropertyListValue(number), to: "watch") }
    let error = #expect(throws: WormholeError.self) { try phone.enqueue(3, to: "watch") }
    #expect(error?.code == .queueFull && error?.peer == "watch" && error?.remedy != nil)
    #expect(try scene.drain() == ["phone 0", "phone 1", "phone 2"])
    try phone.enqueue(3, to: "watch")
    #expect(try scene.drain() == ["phone 3"])
  }

  @Test(
    "that is damaged is put aside, its sender learns it, and the rest flows",
    .onlyDirectories("it writes the file; see QueueOnEtcdTests"))
  func damaged() throws {
    try phone.enqueue(0, to: "watch")
    #expect(try scene.drain() == ["phone 0"])
    let victim = try phone.enqueue(1, to: "watch", options: .init(keepsReceipt: true))
    try FileDescriptor.open(scene.onlyFile(in: "pending"), [.writeOnly, .truncate])
      .writeAll(Array("bplist00 no".utf8))
    try phone.enqueue(2, to: "watch")
    #expect(try scene.drain() == ["phone 2"])
    guard case .failed(let reason) = try victim.finalStatus(until: .now) else {
      Issue.record("it ended as \(try victim.status())")
      return
    }
    #expect(reason.contains("could not be read"))
  }

  @Test("may be of any type that both sides agree on")
  func typed() async throws {
    struct Ticket: Codable, Equatable { var seat: Int, film: String, at: Date }
    let ticket = Ticket(seat: 7, film: "Metropolis", at: Date(timeIntervalSince1970: 1e9))
    try await phone.enqueue(encoding: ticket, to: "watch")
    try await phone.enqueue(encoding: 42, to: "watch")
    let receiver = try await watch.receiveMessages()
    let first = try #require(try await receiver.next(until: .now))
    #expect(try first.decode(Ticket.self) == ticket)
    let second = try #require(try await receiver.next(until: .now))
    #expect(try second.decode(Int.self) == 42)
    let error = #expect(throws: WormholeError.self) { try second.decode(Ticket.self) }
    #expect(error?.code == .unexpectedValue && error?.peer == "phone")
  }
}
