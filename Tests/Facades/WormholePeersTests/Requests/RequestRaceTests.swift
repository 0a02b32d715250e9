import Dispatch
import Synchronization
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import WormholePeers

/// The results when two ends of a call come at the same time: one of them counts, once.
@Suite(.blocking, .bothEngines) struct RequestRaceTests {
  @Test("Replies, timeouts and cancelling race: each call ends exactly once, with its own reply")
  func everything() throws {
    let scene = try RequestScene()
    let other = try PeerSession("watch", in: scene.container)
    let seed = TestSeed.next("WORMHOLE_REQUEST_SEED")
    let random = Mutex(seed.generator)
    @Sendable func next(_ range: Range<Int>) -> Int {
      random.withLock { Int.random(in: range, using: &$0) }
    }
    let queue = DispatchQueue(label: "handler", attributes: .concurrent)
    other.handleRequests(on: queue) { request in
      queue.asyncAfter(deadline: .now() + .microseconds(next(0..<4_000))) {
        // Some are released.
        if next(0..<10) > 0 { noting { try request.reply(request.value) } }
      }
    }
    try other.activate()
    let ends = CallEnds()
    let count = TestEngine.current.times(3_000)
    for number in 0..<count {
      let call = scene.session.request(
        PropertyListValue(number), to: "watch", until: .now + .microseconds(next(200..<40_000))
      ) { ends.add(number, $0) }
      guard next(0..<4) == 0 else { continue }
      queue.asyncAfter(deadline: .now() + .microseconds(next(0..<4_000))) { call.cancel() }
    }
    try ends.wait(for: count)
    // A second end would come soon after.
    try eventually("nobody asks any more") { scene.session.calls.count == 0 }
    let all = ends.all
    #expect(all.map(\.number).sorted() == Array(0..<count), "\(seed)")
    for (number, end) in all {
      switch end {
      case .success(let value): #expect(value.intValue == number, "\(seed)")
      case .failure(let error):
        #expect([.timedOut, .cancelled, .notAnswered].contains(error.code), "\(seed) \(error)")
      }
    }
  }

  @Test("The death of a peer ends all its calls at once, as unreachable")
  func death() throws {
    let scene = try RequestScene()
    let watch = try scene.peer("watch", "hold")
    let ends = CallEnds()
    let count = TestEngine.current.times(300)
    for number in 0..<count {
      scene.session.request(PropertyListValue(number), to: "watch", until: .now + .seconds(600)) {
        ends.add(number, $0)
      }
    }
    _ = try scene.held(watch, count: count)
    try watch.end()
    try ends.wait(for: count)
    #expect(ends.codes.allSatisfy { $0 == .unreachable })
    let error = try peerError {
      _ = try scene.session.request(1, to: "watch", until: .now + .seconds(600))
    }
    #expect(error.code == .unreachable && error.reason.contains("\(watch.processID)"))
  }

  @Test("Killed in the middle of answering: each call ends once, as answered or unreachable")
  func deathWhileAnswering() throws {
    let scene = try RequestScene()
    let seed = TestSeed.next("WORMHOLE_REQUEST_SEED")
    var random = seed.generator
    for round in 0..<TestEngine.current.times(3) {
      let watch = try scene.peer()
      let ends = CallEnds()
      let count = TestEngine.current.times(600)
      let kills = Int.random(in: 0..<TestEngine.current.times(500), using: &random)
      for number in 0..<count {
        scene.session.request(PropertyListValue(number), to: "watch", until: .now + .seconds(600)) {
          ends.add(number, $0)
        }
      }
      try ends.wait(for: kills)
      try watch.end()
      try ends.wait(for: count)
      #expect(ends.all.map(\.number).sorted() == Array(0..<count), "\(seed) \(round)")
      for (number, end) in ends.all {
        switch end {
        case .success(let value): #expect(value.intValue == number)
        case .failure(let error): #expect(error.code == .unreachable, "\(seed) \(error)")
        }
      }
    }
  }

  @Test("The same name again: unanswered requests are unreachable, later ones are answered")
  func sameNameAgain() throws {
    let scene = try RequestScene()
    let first = try scene.peer("watch", "hold")
    let ends = CallEnds()
    scene.session.request(1, to: "watch", until: .now + .seconds(600)) { ends.add(1, $0) }
    _ = try scene.held(first, count: 1)
    try first.end()
    let second = try scene.peer()
    try ends.wait(for: 1)
    #expect(ends.codes == [.unreachable])
    #expect(try scene.session.request(2, to: "watch") == 2)
    withExtendedLifetime(second) {}
  }

  @Test("A stopped peer is awaited until the timeout, whose error names the stopped process")
  func suspended() throws {
    let scene = try RequestScene()
    let watch = try scene.peer()
    #expect(try scene.session.request(1, to: "watch") == 1)
    try watch.send(.stop)
    try watch.waitUntilStopped()
    guard case .suspended(let member) = try scene.session.reachability(of: "watch") else {
      Issue.record("it is stopped")
      return
    }
    #expect(member.processID == watch.processID)
    let error = try peerError {
      _ = try scene.session.request(2, to: "watch", until: .now + .milliseconds(50))
    }
    #expect(error.code == .timedOut && error.reason.contains("is stopped"))
    #expect(error.holder?.processID == watch.processID)
    let ends = CallEnds()
    scene.session.request(3, to: "watch", until: .now + .seconds(600)) { ends.add(3, $0) }
    try watch.send(.continue)
    try ends.wait(for: 1)
    #expect(try ends.all[0].end.get() == 3)
  }

  @Test(
    "A stopped peer is replaced: its calls are unreachable, it is notified, and its work is cancelled"
  )
  func replaced() throws {
    let scene = try RequestScene()
    let first = try scene.peer("watch", "hold")
    let ends = CallEnds()
    scene.session.request(1, to: "watch", until: .now + .seconds(600)) { ends.add(1, $0) }
    _ = try scene.held(first, count: 1)
    try first.send(.stop)
    try first.waitUntilStopped()
    let second = try scene.peer()
    try ends.wait(for: 1)
    #expect(ends.codes == [.unreachable])
    #expect(try scene.session.request(2, to: "watch") == 2)
    try first.send(.continue)
    try eventually("the first knows that it was replaced") {
      try first.ask("peer-is-active watch") == "false"
    }
    try eventually("its request is cancelled") {
      try first.ask("peer-held watch") == "1:cancelled"
    }
    #expect(try first.ask("peer-activate watch 0").hasPrefix("error replaced"))
    #expect(try scene.session.request(3, to: "watch") == 3)
    withExtendedLifetime(second) {}
  }

  @Test("If a requester dies, is cancelled or gives up, the handler is notified")
  func cancelled() throws {
    let scene = try RequestScene()
    let watch = try scene.peer("watch", "hold")
    let dies = try Participant(scene.directory.path)
    #expect(try dies.ask("peer-begin tablet watch 1 600") == "done")
    _ = try scene.held(watch, count: 1)
    let ends = CallEnds()
    let call = scene.session.request(2, to: "watch", until: .now + .seconds(600)) {
      ends.add(2, $0)
    }
    _ = try scene.held(watch, count: 2)
    let late = CallEnds()
    scene.session.request(3, to: "watch", until: .now + .seconds(1)) { late.add(3, $0) }
    _ = try scene.held(watch, count: 3)
    try late.wait(for: 1)
    #expect(late.codes == [.timedOut])
    call.cancel()
    try ends.wait(for: 1)
    #expect(ends.codes == [.cancelled])
    try dies.end()
    try eventually("all are cancelled") {
      try scene.held(watch, count: 3) == ["1:cancelled", "2:cancelled", "3:cancelled"]
    }
    #expect(try watch.ask("peer-release watch") == "0")
  }

  @Test("Cancelling a task cancels the task of the handler")
  func cancelledTask() async throws {
    let scene = try RequestScene()
    let other = try PeerSession("watch", in: scene.container)
    let (begun, ended) = (WakeLatch(), WakeLatch())
    other.handleRequests { _ in
      begun.raise()
      do {
        try await Task.sleep(for: .seconds(600))
      } catch {
        ended.raise()
        throw error
      }
      return 0
    }
    try await other.activate()
    let session = scene.session
    let asking = Task { try await session.request(1, to: "watch", until: .now + .seconds(600)) }
    await begun.suspend(until: nil)
    asking.cancel()
    await ended.suspend(until: nil)
    let error = await #expect(throws: WormholeError.self) { try await asking.value }
    #expect(error?.code == .cancelled)
  }

  @Test("A session that is closed ends its calls, and may be activated again")
  func closed() throws {
    let scene = try RequestScene()
    let watch = try scene.peer("watch", "hold")
    let ends = CallEnds()
    scene.session.request(1, to: "watch", until: .now + .seconds(600)) { ends.add(1, $0) }
    _ = try scene.held(watch, count: 1)
    scene.session.close()
    try ends.wait(for: 1)
    #expect(ends.codes == [.cancelled])
    try eventually("the handler is reported") { try watch.ask("peer-held watch") == "1:cancelled" }
    scene.session.handleRequests(on: DispatchQueue(label: "test")) { request in
      noting { try request.reply(request.value) }
    }
    for _ in 0..<2 {
      try scene.session.activate()
      #expect(scene.session.isActive)
      #expect(try watch.ask("peer-request watch phone 5") == "5")
      scene.session.close()
      #expect(try watch.ask("peer-request watch phone 5").hasPrefix("error unreachable"))
    }
    #expect(throws: WormholeError.self) { try scene.session.confirmActive() }
  }

  @Test("A session that is activated while it is being closed has a mailbox if it is active")
  func closedWhileActivating() throws {
    let scene = try RequestScene()
    let session = scene.session
    session.handleRequests { $0.value }
    try session.activate()
    session.end(PresenceRegistration.close) { calls in
      // Before the mailbox is closed, and with it.
      noting { try session.activate() }
      calls.close()
    }
    #expect(!session.isActive)
    let other = try PeerSession("watch", in: scene.container)
    #expect(try !other.reachability(of: "phone").isReachable)
    try session.activate()
    #expect(try other.request(5, to: "phone", until: soon) == 5)
    session.close()
  }

  @Test("A released session ends, and leaves nothing in the container")
  func forgotten() throws {
    let scene = try RequestScene()
    let watch = try scene.peer("watch", "hold")
    let ends = CallEnds()
    let weak = try forget(scene, ends, watch)
    try ends.wait(for: 1)
    #expect(ends.codes == [.cancelled])
    #expect(weak() == nil)
    guard case .gone = try scene.session.reachability(of: "tablet") else {
      Issue.record("it is still there")
      return
    }
    // On etcd they end with its process's session at the latest.
    guard TestEngine.current == .directory else { return }
    let mailboxes = try FileDescriptor.open(
      scene.directory.path + "/mailboxes", [.readOnly, .directory])
    #expect(try mailboxes.entries().count == 1, "only the other process's")
  }

  private func forget(
    _ scene: RequestScene, _ ends: CallEnds, _ watch: Participant
  ) throws -> () -> PeerSession? {
    let session = try PeerSession("tablet", in: scene.container)
    session.handleRequests { $0.value }
    try session.activate()
    session.request(1, to: "watch", until: .now + .seconds(600)) { ends.add(1, $0) }
    _ = try scene.held(watch, count: 1)
    return { [weak session] in session }
  }
}
