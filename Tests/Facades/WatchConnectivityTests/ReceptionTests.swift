import Synchronization
import Testing
import Wormhole
import WormholePeers
import WormholeTestSupport

@testable import WatchConnectivity

@Suite("The reception of transfers", .blocking)
struct ReceptionTests {
  @Test("goes on once it can be opened again, however often that fails before")
  func errors() async throws {
    let directory = try TemporaryDirectory()
    let container = try directory.container()
    let session = WCSession(nil)
    let place = try SessionPlace(
      role: .watch, container: container, watchName: "watch", replyTimeout: .seconds(60))
    let link = try await SessionLink(session, place)
    let peer = try PeerSession("other", in: container)
    _ = try await PeerSession("sender", in: container).enqueue(7, to: "other")

    let openings = Atomic(0)
    let delivered = Mutex<[PropertyListValue]>([])
    let reception = try await Reception<PeerMessage>(
      session,
      { _ in
        let (number, _) = openings.add(1, ordering: .relaxed)
        guard ![1, 2].contains(number) else {
          throw PeerError(.inputOutput, "receive", reason: "the disk does not answer")
        }
        return try await peer.receiveMessages()
      },
      deliver: { _, message in
        let isFirst = delivered.withLock { values in
          values.append(message.value)
          return values.count == 1
        }
        return isFirst ? .leftForDelegate : .ended(failure: nil)
      })
    reception.start(link)
    try await eventuallyAsync("the first delivery is left") { delivered.withLock(\.count) == 1 }
    session.queue.async { reception.restart() }
    try await eventuallyAsync("it is delivered again", within: .seconds(60)) {
      delivered.withLock(\.count) == 2
    }
    #expect(delivered.withLock { $0 } == [7, 7])
    #expect(openings.load(ordering: .relaxed) == 4)
    reception.end()
    link.end()
  }
}
