import Dispatch
import FoundationEssentials
import Synchronization
import Testing
import Wormhole
import WormholePeers
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@Suite(.blocking, .bothEngines) struct RequestTests {
  @Test("Another process answers a thread")
  func answers() throws {
    let scene = try RequestScene()
    let watch = try scene.peer()
    #expect(try scene.session.request(7, to: "watch") == 7)
    withExtendedLifetime(watch) {}
  }

  @Test("Another process answers a task")
  func answersTask() async throws {
    let scene = try RequestScene()
    let watch = try scene.peer()
    let session = scene.session
    let value: PropertyListValue = ["a": [1, "é", true], "b": .data(Data([0, 255]))]
    #expect(try await session.request(value, to: "watch") == value)
    withExtendedLifetime(watch) {}
  }

  @Test("A handler's error reaches the sender, with its reason")
  func failure() throws {
    let scene = try RequestScene()
    let watch = try scene.peer("watch", "fail")
    let error = try peerError { _ = try scene.session.request(1, to: "watch") }
    #expect(error.code == .failed && error.reason == "on purpose" && error.peer == "watch")
    withExtendedLifetime(watch) {}
  }

  @Test("A handler that releases the request without a reply is an error for its sender")
  func forgotten() throws {
    let scene = try RequestScene()
    let watch = try scene.peer("watch", "forget")
    #expect(try peerError { _ = try scene.session.request(1, to: "watch") }.code == .notAnswered)
    withExtendedLifetime(watch) {}
  }

  @Test("A peer that refuses all requests reports it, even for those that wait for a handler")
  func refused() throws {
    let scene = try RequestScene()
    let watch = try scene.peer("watch", nil)
    let ends = CallEnds()
    scene.session.request(1, to: "watch") { ends.add(1, $0) }
    #expect(try watch.ask("peer-handle watch refuse") == "done")
    try ends.wait(for: 1)
    #expect(ends.codes == [.notHandled])
    #expect(try peerError { _ = try scene.session.request(2, to: "watch") }.code == .notHandled)
  }

  @Test("Requests wait for a handler, and keep their order")
  func waiting() throws {
    let scene = try RequestScene()
    let watch = try scene.peer("watch", nil)
    let ends = CallEnds()
    for number in 0..<20 {
      scene.session.request(PropertyListValue(number), to: "watch") { ends.add(number, $0) }
    }
    #expect(try watch.ask("peer-handle watch hold") == "done")
    let held = try scene.held(watch, count: 20)
    #expect(held == (0..<20).map { "\($0):waiting" })
    #expect(try watch.ask("peer-release watch") == "20")
    try ends.wait(for: 20)
    #expect(ends.codes.allSatisfy { $0 == nil })
  }

  // One of them at a time delivers what comes; messages go as files now and then.
  @Test("Threads that are blocked at once get their own answers, whatever the way of messages")
  func blockedThreads() throws {
    let scene = try RequestScene()
    let watch = try scene.peer()
    let (threads, each) = (4, TestEngine.current.times(100))
    let group = DispatchGroup()
    for thread in 0..<threads {
      Blocking.queue().async(group: group) {
        do {
          for number in 0..<each {
            let asked = PropertyListValue(thread * each + number)
            let end = ContinuousClock.now + testPatience
            #expect(try scene.session.request(asked, to: "watch", until: end) == asked)
          }
        } catch {
          Issue.record(error)
        }
      }
    }
    var observation: MailboxObservation?
    while group.wait(timeout: .now() + .milliseconds(1)) == .timedOut {
      guard TestEngine.current == .directory else { continue }
      observation = observation == nil ? MailboxObservation(of: scene.container.root) : nil
    }
    withExtendedLifetime((watch, observation)) {}
  }

  @Test("Each of thousands of calls ends with its own answer, in order")
  func many() throws {
    let scene = try RequestScene()
    let watch = try scene.peer()
    let ends = CallEnds()
    let count = TestEngine.current.times(3_000)
    for number in 0..<count {
      scene.session.request(PropertyListValue(number), to: "watch", until: .now + testPatience) {
        ends.add(number, $0)
      }
    }
    try ends.wait(for: count)
    #expect(ends.all.map(\.number) == Array(0..<count))
    for (number, end) in ends.all { #expect(try end.get().intValue == number) }
    withExtendedLifetime(watch) {}
  }

  @Test("A completion is called on the queue that it is given")
  func completesOnQueue() throws {
    let scene = try RequestScene()
    let watch = try scene.peer()
    let (queue, ends) = (DispatchQueue(label: "completions"), CallEnds())
    for peer in ["watch", "nobody"] {
      scene.session.request(1, to: peer, on: queue) { end in
        dispatchPrecondition(condition: .onQueue(queue))
        ends.add(1, end)
      }
    }
    try ends.wait(for: 2)
    withExtendedLifetime(watch) {}
  }

  // One used to be asked in the place of the other, and only one was listed.
  @Test("Two peers whose names are equal as strings, and not byte for byte, stay two")
  func equalNames() throws {
    let scene = try RequestScene()
    let names = ["\u{E9}", "e\u{301}"]
    let peers = try names.map { name in
      let peer = try PeerSession(name, in: scene.container)
      let count = PropertyListValue(name.unicodeScalars.count)
      peer.handleRequests { _ in count }
      try peer.activate()
      return peer
    }
    for name in names {
      #expect(try scene.session.request(0, to: name).intValue == name.unicodeScalars.count)
    }
    #expect(try scene.session.peers().map { $0.name.unicodeScalars.count } == [2, 1])
    withExtendedLifetime(peers) {}
  }

  @Test("A send ends when a handler has the request, or with its refusal")
  func sending() throws {
    let scene = try RequestScene()
    let watch = try scene.peer("watch", "hold")
    try scene.session.send(5, to: "watch")
    #expect(try scene.held(watch, count: 1).first?.hasPrefix("5:") == true)
    #expect(try watch.ask("peer-handle watch refuse") == "done")
    #expect(try peerError { try scene.session.send(6, to: "watch") }.code == .notHandled)
  }

  @Test("Both ends may be in one process, and a session may send requests to itself")
  func oneProcess() async throws {
    let scene = try RequestScene()
    let other = try PeerSession("watch", in: scene.container)
    other.handleRequests { ["from": .string($0.sender), "value": $0.value] }
    try await other.activate()
    let session = scene.session
    #expect(try await session.request(3, to: "watch")["from"] == "phone")
    #expect(try await other.request(4, to: "watch")["value"] == 4)
  }

  @Test("Typed requests: different types on either side are distinguished")
  func typed() async throws {
    struct Question: Codable, Sendable { var text: String }
    struct Answer: Codable, Sendable, Equatable { var length: Int }
    let scene = try RequestScene()
    let other = try PeerSession("watch", in: scene.container)
    other.handleRequests(of: Question.self) { question, _ in
      Answer(length: question.text.utf8.count)
    }
    try await other.activate()
    let session = scene.session
    let answer = try await session.request(
      Question(text: "abc"), to: "watch", expecting: Answer.self)
    #expect(answer == Answer(length: 3))
    let wrongAnswer = await #expect(throws: WormholeError.self) {
      _ = try await session.request(Question(text: "abc"), to: "watch", expecting: String.self)
    }
    #expect(wrongAnswer?.code == .unexpectedValue)
    let wrongQuestion = await #expect(throws: WormholeError.self) {
      _ = try await session.request(5, to: "watch", expecting: Answer.self)
    }
    #expect(wrongQuestion?.code == .unexpectedValue)
    let wrongSend = await #expect(throws: WormholeError.self) {
      try await session.send(5, to: "watch")
    }
    #expect(wrongSend?.code == .unexpectedValue)
  }

  @Test("A value that no peer would accept is refused, even as an answer")
  func unsupported() throws {
    let scene = try RequestScene()
    let other = try PeerSession("watch", in: scene.container)
    try other.activate()
    var deep: PropertyListValue = 1
    for _ in 0..<600 { deep = [deep] }
    #expect(try peerError { _ = try scene.session.request(deep, to: "watch") }.code == .tooLarge)
    let answer = deep
    let thrown = Mutex<WormholeError.Code?>(nil)
    other.handleRequests(on: DispatchQueue(label: "test")) { request in
      do {
        try request.reply(answer)
      } catch {
        thrown.withLock { $0 = (error as? WormholeError)?.code }
      }
    }
    let error = try peerError { _ = try scene.session.request(1, to: "watch") }
    #expect(error.code == .failed && error.reason.contains("could not be delivered"))
    // The sender is notified first.
    try eventually("the handler is reported, too") { thrown.withLock { $0 } == .tooLarge }
  }

  @Test(
    "A name that cannot be a peer's is refused", arguments: ["", String(repeating: "/", count: 34)])
  func names(_ name: String) throws {
    let scene = try RequestScene()
    let error = try peerError { _ = try PeerSession(name, in: scene.container) }
    #expect(error.code == .unsupportedValue)
    #expect(try peerError { _ = try scene.session.request(1, to: name) }.code == .unsupportedValue)
  }

  @Test("Names with slashes, percent signs and combining marks are separate peers")
  func strangeNames() throws {
    let scene = try RequestScene()
    let names = ["a/messages", "a%2Fmessages", "\u{301}", "../x", "a/b/c"]
    let sessions = try names.map { name in
      let session = try PeerSession(name, in: scene.container)
      // The cooperative pool may be full of waiting tests.
      session.handleRequests(on: DispatchQueue(label: "test")) { request in
        noting { try request.reply(.string(name)) }
      }
      try session.activate()
      return session
    }
    for name in names { #expect(try scene.session.request(1, to: name).stringValue == name) }
    #expect(Set(try scene.session.peers().map(\.name)) == Set(names))
    // A caller that has listed the names passes them; none is looked for then.
    let own = scene.container.own
    var faults = NameFaults()
    let listed = try Peer.all(
      in: scene.container, &faults, presences: own.presenceNames(), queues: own.queueNames())
    #expect(Set(listed.map(\.name)) == Set(names))
    #expect(
      try Peer.all(in: scene.container, &faults, presences: [], queues: []).isEmpty)
    #expect(faults.all.isEmpty)
    withExtendedLifetime(sessions) {}
  }
}
