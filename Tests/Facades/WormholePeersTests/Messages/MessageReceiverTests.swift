import Dispatch
import Synchronization
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import WormholePeers

@Suite("A receiver of messages", .blocking, .bothEngines)
struct MessageReceiverTests {
  let scene: MessageScene
  var phone: PeerSession { scene.phone }
  var watch: PeerSession { scene.watch }

  init() throws { scene = try MessageScene() }

  @Test("delivers messages one at a time and in order, and acknowledges handled ones")
  func handling() async throws {
    struct NoPaper: Error, CustomStringConvertible { let description = "no paper" }
    let early = try await phone.enqueue(0, to: "watch")
    let heard = Mutex<[Int]>([])
    let running = Atomic(0)
    let receiver = try await watch.receiveMessages()
    receiver.handle(on: DispatchQueue(label: "messages", attributes: .concurrent)) { message in
      #expect(running.add(1, ordering: .relaxed).newValue == 1)
      defer { running.subtract(1, ordering: .relaxed) }
      heard.withLock { $0.append(message.value.intValue ?? -1) }
      if message.value == 7 { throw NoPaper() }
    }
    #expect(try await early.finalStatus(until: soon) == .processed)
    // It used to end the process.
    let refusals = Mutex<[WormholeError.Code]>([])
    receiver.handle(on: DispatchQueue(label: "second")) { error in
      refusals.withLock { $0.append(error.code) }
    } _: { _ in
      Issue.record("the first handler has them")
    }
    try eventually("it is refused") { refusals.withLock { $0 } == [.notHandled] }
    var transfers: [PeerMessageTransfer] = []
    for number in 1..<50 {
      transfers.append(try await phone.enqueue(PropertyListValue(number), to: "watch"))
    }
    #expect(try await transfers[48].finalStatus(until: soon) == .processed)
    #expect(heard.withLock { $0 } == Array(0..<50))
    #expect(try transfers[6].status() == .failed(reason: "no paper"))
    try eventually("it is idle") { try receiver.isIdle() }
  }

  @Test("redelivers messages that its handler released when they are due, and others meanwhile")
  func givingBack() async throws {
    let transfers = try [0, 1].map { try phone.enqueue(PropertyListValue($0), to: "watch") }
    let heard = Mutex<[String]>([])
    let receiver = try await Blocking.run { [watch] in
      try watch.receiveMessages(attempts: 3)
    }
    receiver.handle(on: DispatchQueue(label: "messages")) { message in
      heard.withLock { $0.append("\(message.value.intValue ?? -1) \(message.attempt)") }
      if message.value == 0 { try message.retry(after: .milliseconds(100), because: "again") }
    }
    guard case .failed = try await transfers[0].finalStatus(until: soon) else {
      Issue.record("it fails after the allowed number of releases")
      return
    }
    // The other one comes meanwhile; where it is slower than the pause, at the latest after one redelivery,
    // because released messages do not come twice in a row while another one waits.
    let all = heard.withLock { $0 }
    #expect(
      [["0 1", "1 1", "0 2", "0 3"], ["0 1", "0 2", "1 1", "0 3"]].contains(all), "\(all)")
    #expect(try watch.failures(for: "watch").map(\.content) == [.message(0)])
    #expect(try transfers[1].status() == .processed)
  }

  // It used to wait for the next receiver, and later ones overtook it.
  @Test("delivers a message that it could not open for lack of descriptors, and in order")
  func unopened() async throws {
    for number in 0..<3 { try await phone.enqueue(PropertyListValue(number), to: "watch") }
    let tries = Atomic(0)
    let opening = PeerReceiver<PeerMessage>.Opening(
      what: "messages", queue: watch.queue(of: "watch", isFile: false), blocks: false
    ) { entry in
      guard tries.add(1, ordering: .relaxed).newValue > 2 else {
        throw WormholeError(.tooManyOpenFiles, "open a message", path: "", reason: "a test")
      }
      return PeerMessage(entry, for: "watch")
    }
    let receiver = PeerReceiver(
      try await opening.queue.join(ConsumerTerms(joinsAgain: false), until: nil), for: "watch",
      opening)
    let heard = Mutex<[Int?]>([])
    receiver.handle(on: DispatchQueue(label: "messages")) { message in
      heard.withLock { $0.append(message.value.intValue) }
    }
    try eventually("the last has come") { heard.withLock { $0.last == 2 } }
    #expect(heard.withLock { $0 } == [0, 1, 2])
  }

  @Test("is not idle while a message waits or is handled")
  func idle() throws {
    let receiver = try watch.receiveMessages()
    #expect(try receiver.isIdle())
    try phone.enqueue(1, to: "watch")
    #expect(try !receiver.isIdle())
    let message = try #require(try receiver.next(until: .now))
    #expect(try !receiver.isIdle())
    try message.acknowledge()
    #expect(try receiver.isIdle())
  }

  @Test("that is ended wakes its waiters at once: a thread, and a task", arguments: [false, true])
  func ending(isTask: Bool) async throws {
    let receiver = try await watch.receiveMessages()
    let waiter = Task {
      let limit = ContinuousClock.now + .seconds(30)
      guard isTask else { return try await Blocking.run { try receiver.next(until: limit)?.id } }
      return try await receiver.next(until: limit)?.id
    }
    try await Blocking.run { try eventually("it waits") { receiver.isAwaited } }
    receiver.close()
    await #expect { try await waiter.value } throws: { ($0 as? WormholeError)?.code == .notActive }
    receiver.close()
    let error = #expect(throws: WormholeError.self) { try receiver.isIdle() }
    #expect(error?.code == .notActive)
  }

  @Test("ends when it is released, with or without a handler, and the next gets the rest")
  func forgetting() throws {
    try phone.enqueue(1, to: "watch")
    var first: PeerReceiver<PeerMessage>? = try watch.receiveMessages()
    let taken = try #require(try first?.next(until: .now))
    let busy = #expect(throws: WormholeError.self) { try watch.receiveMessages(until: .now) }
    #expect(busy?.code == .replaced && busy?.holder?.processID != nil)
    first = nil
    var second: PeerReceiver<PeerMessage>? = try watch.receiveMessages(until: .now)
    let error = #expect(throws: WormholeError.self) { try taken.acknowledge() }
    #expect(error?.code == .replaced)
    let again = try #require(try second?.next(until: .now))
    #expect(again.isRedelivery && again.value == 1)
    second?.handle(on: DispatchQueue(label: "forgotten")) { _ in Issue.record("none is left") }
    second = nil
    // An enqueued look may still hold it for a moment.
    try eventually("another can receive") {
      do {
        _ = try watch.receiveMessages(until: .now)
        return true
      } catch let error as WormholeError where error.code == .replaced {
        return false
      }
    }
  }

  @Test("that is ended while a handler runs lets the handler finish, and settles its message")
  func endingInHandler() throws {
    let sent = try phone.enqueue(1, to: "watch")
    try phone.enqueue(2, to: "watch")
    let gate = DispatchSemaphore(value: 0)
    let isRunning = DispatchSemaphore(value: 0)
    let receiver = try watch.receiveMessages()
    receiver.handle(
      on: DispatchQueue(label: "messages"), failure: { Issue.record("it failed: \($0)") },
      { message in
        #expect(message.value == 1)
        isRunning.signal()
        gate.wait()
      })
    isRunning.wait()
    receiver.close()
    gate.signal()
    #expect(try sent.finalStatus(until: soon) == .processed)
    #expect(try scene.drain() == ["phone 2"])
  }

  @Test("that was replaced while its process was stopped learns it, and does no harm")
  func replaced() throws {
    for number in 0..<3 { try phone.enqueue(PropertyListValue(number), to: "watch") }
    let late = try scene.participant()
    #expect(try late.ask("message-receive watch") == "done")
    #expect(try late.ask("message-next watch") == "phone 0")
    try late.send(.stop)
    try late.waitUntilStopped()
    let receiver = try watch.receiveMessages()
    #expect(try scene.drain(receiver) == ["phone 0 again", "phone 1", "phone 2"])
    try late.send(.continue)
    #expect(try late.ask("message-acknowledge watch").hasPrefix("error replaced"))
    #expect(try late.ask("message-next watch").hasPrefix("error replaced"))
    try phone.enqueue(3, to: "watch")
    #expect(try scene.drain(receiver) == ["phone 3"])
  }

  @Test("reports at once that it was replaced, although no message arrives any more")
  func replacedWhileIdle() throws {
    let log = scene.log("late")
    let late = try scene.participant()
    #expect(try late.ask("message-handle watch \(log)") == "done")
    try phone.enqueue(0, to: "watch")
    try eventually("it is handled") { try scene.lines(log) == ["phone 0"] }
    try late.send(.stop)
    try late.waitUntilStopped()
    let receiver = try watch.receiveMessages()
    try late.send(.continue)
    try eventually("it learns it") { try scene.lines(log).last == "ended replaced" }
    try phone.enqueue(1, to: "watch")
    let left = try scene.drain(receiver)
    // Perhaps stopped before it could acknowledge.
    #expect(left.suffix(1) == ["phone 1"] && left.dropLast().allSatisfy { $0 == "phone 0 again" })
    #expect(try scene.lines(log).count == 2)
  }
}
