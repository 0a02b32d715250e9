import Dispatch
import Synchronization
import Testing
import Wormhole
import WormholePropertyLists
import WormholeTestSupport

@testable import WormholePeers

@Suite("Requests that a handler leaves", .blocking, .bothEngines)
struct RequestOfferTests {
  private let scene: RequestScene
  private let watch: PeerSession
  private let queue = DispatchQueue(label: "handler")
  private let ends = CallEnds()

  init() throws {
    scene = try RequestScene()
    watch = try PeerSession("watch", in: scene.container)
    try watch.activate()
  }

  /// Sends messages and a question to a handler that leaves them.
  private func leaveAll() throws {
    let left = Atomic(0)
    queue.sync {
      watch.offerRequests(on: queue) { _ in
        left.add(1, ordering: .relaxed)
        return false
      }
    }
    for number in 0..<4 {
      scene.session.request(
        PropertyListValue(number), to: "watch", expectsReply: number == 3, until: soon
      ) { ends.add(number, $0) }
    }
    try eventually("they are left") { left.load(ordering: .relaxed) == 4 }
    #expect(ends.all.isEmpty)
  }

  @Test("wait without a receipt for the next handler, which gets them first, in their order")
  func nextHandler() throws {
    try leaveAll()
    let taken = Mutex<[PropertyListValue]>([])
    queue.sync {
      watch.offerRequests(on: queue) { request in
        taken.withLock { $0.append(request.value) }
        if request.expectsReply { noting { try request.reply(request.value) } }
        return true
      }
      #expect(taken.withLock { $0 } == [0, 1, 2, 3])
    }
    try ends.wait(for: 4)
    #expect(ends.codes == [nil, nil, nil, nil])
    try scene.session.send(4, to: "watch", until: soon)
    #expect(taken.withLock { $0 } == [0, 1, 2, 3, 4])
  }

  @Test("end with the session, for both sides: no later handler gets them")
  func closed() throws {
    try leaveAll()
    watch.close()
    try ends.wait(for: 4)
    #expect(ends.codes.allSatisfy { $0 == .unreachable })
    let taken = Mutex<[PropertyListValue]>([])
    queue.sync {
      watch.offerRequests(on: queue) { request in
        taken.withLock { $0.append(request.value) }
        return true
      }
    }
    try watch.activate()
    try scene.session.send(4, to: "watch", until: soon)
    #expect(taken.withLock { $0 } == [4])
  }
}
