import Dispatch
import Synchronization
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import WormholePeers

@Suite("An activity", .blocking, .bothEngines)
struct ActivityTests {
  private let directory: TemporaryDirectory
  private let container: SharedContainer
  private let watch: PeerSession
  private let phone: PeerSession
  private let queue = DispatchQueue(label: "activities")
  private let film = PeerActivity(type: "film", title: "Metropolis", content: ["id": 7])

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
    watch = try PeerSession("watch", in: container)
    phone = try PeerSession("phone", in: container)
  }

  /// What a handler was given.
  private final class Taken: Sendable {
    private let state = Mutex<[PeerOffer]>([])
    var all: [PeerOffer] { state.withLock { $0 } }
    func add(_ offer: PeerOffer) { state.withLock { $0.append(offer) } }
  }

  private func handling(_ peer: PeerSession, _ taken: Taken) throws -> ObservationToken {
    try peer.handleActivities(on: queue) { taken.add($0) }
  }

  @Test("is offered to the other peers, one of each peer, until it ends")
  func offering() throws {
    #expect(try phone.offers().isEmpty)
    let offer = try watch.offer(film)
    #expect(try phone.offers() == [offer] && watch.offers().isEmpty)
    let seen = try #require(try phone.offers().first)
    #expect(seen.peer == "watch" && seen.type == "film" && seen.title == "Metropolis")
    #expect(seen.content == ["id": 7] && seen.expires == nil)
    let other = try watch.offer(PeerActivity(type: "film", title: "M"))
    #expect(try phone.offers() == [other])
    let table = try PeerSession("table", in: container)
    let third = try table.offer(film)
    #expect(try phone.offers() == [third, other])
    watch.endOffer()
    watch.endOffer()
    #expect(try phone.offers() == [third])
    table.close()
    #expect(try phone.offers().isEmpty)
  }

  @Test("is reported to observers when it comes, changes, ends, and when its process dies")
  func observing() throws {
    let received = Mutex<[[String]]>([])
    let observation = try phone.observeOffers(on: queue) { offers in
      received.withLock { $0.append(offers.map(\.title)) }
    }
    func last(_ titles: [String]) throws {
      try eventually("\(titles) is reported") { received.withLock { $0.last == titles } }
    }
    try last([])
    try watch.offer(film)
    try last(["Metropolis"])
    try watch.offer(PeerActivity(type: "film", title: "M"))
    try last(["M"])
    watch.endOffer()
    try last([])
    try watch.offer(film)
    try last(["Metropolis"])
    watch.abandon()
    try last([])
    observation.cancel()
    let count = received.withLock { $0.count }
    try watch.offer(film)
    #expect(try phone.offers().count == 1)
    queue.sync {}
    #expect(received.withLock { $0.count } == count)
  }

  @Test("expires for everyone, though its process lives and nothing else happens")
  func expiring() throws {
    let received = Mutex<[Int]>([])
    let observation = try phone.observeOffers(on: queue) { offers in
      received.withLock { $0.append(offers.count) }
    }
    var short = film
    short.expiry = .milliseconds(700)
    let offer = try watch.offer(short)
    #expect(offer.expires != nil)
    try eventually("it is reported") { received.withLock { $0.last == 1 } }
    try eventually("it has expired") { try phone.offers().isEmpty }
    try eventually("that is reported") { received.withLock { $0.last == 0 } }
    try eventually("nothing of it is left") {
      try container.own.presence(PeerNames.activity("watch")).members().isEmpty
    }
    #expect { try phone.handOver(offer, to: "phone") } throws: {
      ($0 as? PeerError)?.code == .unreachable
    }
    // A stopped process does not end its offer: each observer has a timer of its own.
    let table = container.own.presence(PeerNames.activity("table"))
    var stopped: PresenceRegistration
    short.expiry = .milliseconds(100)
    repeat {
      short.expiry = short.expiry.map { $0 * 2 }
      stopped = try table.enter(content: PeerOffer(short, of: "table").propertyList)
      try eventually("it is reported, or expires") {
        try received.withLock { $0.last == 1 } || phone.offers().isEmpty
      }
    } while received.withLock { $0.last != 1 }
    try eventually("its expiry is reported") { received.withLock { $0.last == 0 } }
    #expect(try !table.members().isEmpty)
    stopped.close()
    // The timer of one that was replaced ends nothing.
    short.expiry = .milliseconds(100)
    try watch.offer(short)
    let next = try watch.offer(film)
    pauseUntilTimersRan()
    #expect(try phone.offers() == [next])
    observation.cancel()
  }

  /// A timer that is due later than the one under test has run.
  private func pauseUntilTimersRan() {
    let ran = DispatchSemaphore(value: 0)
    Blocking.timers.asyncAfter(deadline: .now() + .milliseconds(200)) { ran.signal() }
    ran.wait()
  }

  @Test(
    "is handed over once, to a handler of the peer that goes on with it", .timeLimit(.minutes(1)))
  func handingOver() async throws {
    try await phone.activate()
    let taken = Taken()
    let one = try handling(phone, taken)
    // Another process of that name.
    let two = try handling(PeerSession("phone", in: container), taken)
    for number in 1...20 {
      let offer = try watch.offer(
        PeerActivity(type: "film", title: "\(number)", content: ["id": .integer(Int64(number))]))
      // It returns because it was taken, not because its deadline has passed.
      try await phone.handOver(offer, to: "phone", until: .now + .seconds(3_600))
      try eventually("it is there") { taken.all.count == number }
      #expect(taken.all.last == offer && taken.all.last?.content["id"] == .integer(Int64(number)))
    }
    #expect(try phone.offers().count == 1)
    one.cancel()
    two.cancel()
  }

  @Test("waits for a handler, and is taken back at the deadline, or with the task")
  func waiting() async throws {
    try await phone.activate()
    let offer = try watch.offer(film)
    let value = container.own.value(PeerNames.continuing("phone"))
    await #expect {
      try await phone.handOver(offer, to: "phone", until: .now + .milliseconds(50))
    } throws: {
      ($0 as? PeerError)?.code == .timedOut
    }
    #expect(try await value.read() == nil)
    let task = Task { try await phone.handOver(offer, to: "phone") }
    try eventually("it is handed over") { try value.snapshot().isAbsent == false }
    task.cancel()
    await #expect { try await task.value } throws: { ($0 as? PeerError)?.code == .cancelled }
    #expect(try await value.read() == nil)
    async let handedOver: Void = phone.handOver(offer, to: "phone")
    try eventually("it is handed over") { try value.snapshot().isAbsent == false }
    let taken = Taken()
    let handler = try handling(phone, taken)
    try await handedOver
    try eventually("it is taken") { taken.all == [offer] }
    handler.cancel()
  }

  @Test("is not handed over to a peer that is not there, nor after its offer has ended")
  func refused() async throws {
    let offer = try watch.offer(film)
    let taken = Taken()
    await #expect { try await watch.handOver(offer, to: "phone") } throws: {
      ($0 as? PeerError)?.code == .unreachable
    }
    try await phone.activate()
    let handler = try handling(phone, taken)
    watch.endOffer()
    await #expect { try await watch.handOver(offer, to: "phone") } throws: { error in
      "\(error)".contains("does not offer it any more")
    }
    await #expect(throws: PeerError.self) { try await watch.handOver(offer, to: "") }
    queue.sync {}
    #expect(taken.all.isEmpty)
    handler.cancel()
  }

  @Test("that was handed over and has expired meanwhile is dropped, as is what is none")
  func hostile() async throws {
    let taken = Taken()
    let value = container.own.value(PeerNames.continuing("phone"))
    var short = film
    short.expiry = .zero
    for content in [PeerOffer(short, of: "watch").propertyList, "text", ["type": 1], [:]] {
      try await value.replace(with: content)
      let handler = try handling(phone, taken)
      try eventually("it is gone") { try value.snapshot().isAbsent }
      handler.cancel()
    }
    for content: PropertyListValue in ["text", ["peer": 1, "id": 2]] {
      let presence = container.own.presence(PeerNames.activity("table"))
      let member = try presence.enter(content: content)
      #expect(try phone.offers().isEmpty)
      member.close()
    }
    queue.sync {}
    #expect(taken.all.isEmpty)
  }
}
