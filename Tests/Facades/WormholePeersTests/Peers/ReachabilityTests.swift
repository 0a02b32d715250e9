import Dispatch
import Synchronization
import Testing
import Wormhole
import WormholeInspection
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import WormholePeers

@Suite(.blocking, .bothEngines) struct ReachabilityTests {
  @Test("Without a process, a request fails at once, and names the last one")
  func unreachable() throws {
    let scene = try RequestScene()
    let never = try peerError {
      _ = try scene.session.request(1, to: "watch", until: .now + .seconds(600))
    }
    #expect(never.code == .unreachable && never.reason.contains("ever used"))
    #expect(try scene.session.reachability(of: "watch") == .neverSeen)
    #expect(try scene.session.peers().isEmpty, "asking for somebody makes no peer")
    let watch = try scene.peer()
    #expect(try scene.session.reachability(of: "watch").isReachable)
    #expect(try watch.ask("peer-close watch") == "done")
    let left = try peerError {
      _ = try scene.session.request(1, to: "watch", until: .now + .seconds(600))
    }
    #expect(left.code == .unreachable && left.reason.contains("has left"))
    #expect(left.reason.contains("\(watch.processID)"))
  }

  @Test("A session that is activated again while it closes stays active")
  func activatedWhileClosing() throws {
    let scene = try RequestScene()
    let watch = try PeerSession("watch", in: scene.session.container)
    try watch.activate()
    watch.end(PresenceRegistration.close) { calls in
      calls.close()
      #expect(throws: Never.self) { try watch.activate() }
    }
    #expect(watch.isActive)
    #expect(try scene.session.reachability(of: "watch").isReachable)
    watch.close()
    #expect(try !scene.session.reachability(of: "watch").isReachable)
  }

  @Test("One process is active under a name; another waits, and gets its name")
  func exclusive() throws {
    let scene = try RequestScene()
    let first = try scene.peer()
    let second = try Participant(scene.directory.path)
    let answer = try second.ask("peer-activate watch 0")
    #expect(answer.hasPrefix("error replaced") && answer.contains("\(first.processID)"))
    try second.tell("peer-activate watch 30")
    try first.end()
    #expect(try second.answer() == "done")
    #expect(try second.ask("peer-is-active watch") == "true")
  }

  @Test("An observer gets activation and death, each once")
  func observing() throws {
    let scene = try RequestScene()
    let heard = Heard()
    let observation = try scene.session.observeReachability(
      of: "watch", on: DispatchQueue(label: "test"), heard.add)
    try eventually("the beginning") { heard.all == ["never"] }
    for round in 1...2 {
      let watch = try scene.peer()
      try eventually("it has come") { heard.all.count == 2 * round }
      try watch.end()
      try eventually("it has died") { heard.all.count == 2 * round + 1 }
    }
    #expect(heard.all == ["never", "reachable", "gone", "reachable", "gone"])
    observation.cancel()
  }

  // A stop used to be reported only with the next event, and its end never.
  @Test("An observer learns that a process is stopped, continued and killed, without any event")
  func stopped() throws {
    let scene = try RequestScene()
    let watch = try scene.peer()
    let heard = Heard()
    let observation = try scene.session.observeReachability(
      of: "watch", on: DispatchQueue(label: "test"), heard.add)
    try eventually("the beginning") { heard.all == ["reachable"] }
    try watch.send(.stop)
    try eventually("it is stopped") { heard.all == ["reachable", "suspended"] }
    try watch.send(.continue)
    try eventually("it goes on") { heard.all == ["reachable", "suspended", "reachable"] }
    try watch.send(.stop)
    try eventually("it is stopped again") { heard.all.count == 4 }
    try watch.end()
    try eventually("it is dead") {
      heard.all == ["reachable", "suspended", "reachable", "suspended", "gone"]
    }
    observation.cancel()
  }

  @Test("The state from an answer is reported, even if it changes again before the next look")
  func answered() throws {
    let scene = try RequestScene()
    let watch = try scene.peer()
    let heard = Heard()
    let queue = DispatchQueue(label: "test")
    let observation = try scene.session.observeReachability(of: "watch", on: queue, heard.add)
    try eventually("the beginning") { heard.all == ["reachable"] }
    let gate = DispatchSemaphore(value: 0)
    do {
      // No look happens before both have happened.
      defer { gate.signal() }
      queue.async { gate.wait() }
      try watch.send(.stop)
      try watch.waitUntilStopped()
      let answer = try scene.session.reachability(of: "watch")
      #expect(answer != .neverSeen && !answer.isReachable)
      try watch.send(.continue)
      let presence = scene.container.own.presence("peer/watch")
      try eventually("it runs") { try presence.status().isRunning }
    }
    try eventually("both are reported") { heard.all == ["reachable", "suspended", "reachable"] }
    observation.cancel()
  }

  @Test("All peers, as they arrive, are stopped, continued and killed")
  func changes() async throws {
    let scene = try RequestScene()
    let stream = try scene.session.peerChanges()
    var changes = stream.makeAsyncIterator()
    #expect(await changes.next()?.isEmpty == true)
    let watch = try scene.peer()
    var peers: [Peer] = []
    while peers.first?.reachability.isReachable != true {
      peers = try #require(await changes.next())
    }
    #expect(peers.map(\.name) == ["watch"])
    try watch.send(.stop)
    while peers.first?.reachability.isReachable == true {
      peers = try #require(await changes.next())
    }
    try watch.send(.continue)
    while peers.first?.reachability.isReachable != true {
      peers = try #require(await changes.next())
    }
    try watch.end()
    while peers.first?.reachability.isReachable == true {
      peers = try #require(await changes.next())
    }
    #expect(peers.map(\.name) == ["watch"])
  }

  @Test("A hundred peers in ten processes: all reachable, and a broadcast reaches each")
  func hundred() async throws {
    let scene = try RequestScene()
    let count = TestEngine.current.times(10)
    let processes = try (0..<count).map { number in
      let participant = try Participant(scene.directory.path)
      try participant.tell("peer-crowd peer\(number) 10")
      return participant
    }
    for process in processes { #expect(try process.answer() == "done") }
    let peers = try scene.session.peers()
    #expect(peers.count == 10 * count && peers.allSatisfy(\.reachability.isReachable))
    let answers = try await scene.session.broadcast(7, until: .now + .seconds(60))
    #expect(answers.count == 10 * count)
    for (peer, answer) in answers { #expect(try answer.get() == 7, "\(peer)") }
    withExtendedLifetime(processes) {}
  }

  @Test(
    "Remains of dead processes are swept when the next becomes active, and by a sweep",
    .onlyDirectories("on etcd they end with the session"))
  func swept() throws {
    let scene = try RequestScene()
    let path = scene.directory.path + "/mailboxes"
    func mailboxes() throws -> Int {
      try FileDescriptor.open(path, [.readOnly, .directory]).entries().count
    }
    let first = try scene.peer("watch")
    try first.end()
    let second = try scene.peer("tablet")
    try eventually("the dead one's is swept") { try mailboxes() == 1 }
    try second.end()
    #expect(try mailboxes() == 1)
    #expect(try scene.container.report().leftovers.contains { $0.kind == .abandonedMailbox })
    #expect(try scene.container.sweep().failures.isEmpty)
    #expect(try mailboxes() == 0)
  }

  @Test(
    "After a foreign program removes the mailboxes, peers are reached again",
    .onlyDirectories("it removes the directory"))
  func removed() throws {
    let scene = try RequestScene()
    let watch = try scene.peer()
    #expect(try scene.session.request(1, to: "watch") == 1)
    let remove = try ChildProcess("rm", ["-rf", scene.directory.path + "/mailboxes"])
    _ = try remove.wait(until: soon)
    try eventually("it is reached again") {
      do {
        return try scene.session.request(2, to: "watch", until: .now + .seconds(1)) == 2
      } catch let error as WormholeError where error.code == .timedOut {
        // The answer arrived while this one's mailbox was still missing.
        return false
      }
    }
    withExtendedLifetime(watch) {}
  }

  @Test(
    "Whatever lies in a mailbox, later requests are answered",
    .onlyDirectories("it plants files"))
  func hostile() throws {
    let scene = try RequestScene()
    let watch = try scene.peer()
    let member = try #require(
      try scene.container.own.presence("peer/watch").members().first?.content?["mailbox"]?
        .stringValue)
    let mailbox = scene.directory.path + "/mailboxes/" + member + "/"
    let hostile: [(String, [UInt8])] = [
      ("not a list", Array("nonsense".utf8)), ("empty", []),
      ("no message", try PropertyListValue.array([1, 2]).binaryBytes()),
      ("no request", try (["kind": "request", "id": 1] as PropertyListValue).binaryBytes()),
      ("a stranger's", try request(replyTo: "../../etc").binaryBytes()),
      ("nobody's", try request(replyTo: "123-456").binaryBytes()),
    ]
    for (index, (_, bytes)) in hostile.enumerated() {
      let file = try FileDescriptor.open(
        scene.directory.path + "/planted", [.writeOnly, .create, .truncate])
      try file.writeAll(bytes)
      try rename(
        scene.directory.path + "/planted", at: Directory.current,
        to: mailbox + "000000000000000\(index)-abc-1-\(bytes.count).plist", at: Directory.current)
    }
    try makeFIFO(FileName(mailbox + "fifo"), at: Directory.current)
    try rename(
      mailbox + "fifo", at: Directory.current, to: mailbox + "0000000000000010-abc-1-1.plist",
      at: Directory.current)
    #expect(try scene.session.request(5, to: "watch") == 5)
    try eventually("what is no property list is put aside") {
      try scene.container.report().quarantine.count == 2
    }
    withExtendedLifetime(watch) {}
  }

  private func request(replyTo: String) -> PropertyListValue {
    var request: PropertyListValue = [
      "kind": "request", "id": 7, "replyTo": .string(replyTo),
      "value": ["from": "x", "expectsReply": true, "value": 1],
    ]
    Expiry(after: .seconds(600)).write(into: &request)
    return request
  }
}

extension PresenceStatus {
  fileprivate var isRunning: Bool { if case .running = self { true } else { false } }
}

/// The changes that an observer received, in one word each.
private final class Heard: Sendable {
  private let words = Mutex<[String]>([])

  var all: [String] { words.withLock { $0 } }

  @Sendable func add(_ reachability: PeerReachability) {
    let word =
      switch reachability {
      case .reachable: "reachable"
      case .suspended: "suspended"
      case .launchable: "launchable"
      case .gone: "gone"
      case .neverSeen: "never"
      }
    words.withLock { $0.append(word) }
  }
}
