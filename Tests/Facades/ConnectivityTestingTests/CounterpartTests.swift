import Foundation
import Synchronization
import Testing
import WatchConnectivity
import Wormhole
import WormholePeers
import WormholePropertyLists
import WormholeTestSupport

@testable import ConnectivityTesting

@Suite("A counterpart", .blocking)
struct CounterpartTests {
  private let scene: TestScene
  private let phone: WCSession
  private let delegate = RecordingDelegate()

  init() async throws {
    scene = try TestScene()
    phone = try scene.session(.phone, replyTimeout: .seconds(60))
    phone.delegate = delegate
    phone.activate()
    try await phone.waitUntil(.activated)
  }

  private func watch(_ script: [Counterpart.Step]) async throws -> Counterpart {
    let watch = scene.counterpart(.watch, script: script)
    try await watch.arrive()
    try await phone.waitUntil(\.isReachable)
    return watch
  }

  @Test("A task that is cancelled waits at no gate", .timeLimit(.minutes(1)))
  func cancelled() async {
    let gate = Gate()
    let waiting = Task { await gate.pass() }
    waiting.cancel()
    await waiting.value
    #expect(!gate.isOpen)
  }

  @Test("replies as its script says, one step for each message; the last stays in force")
  func script() async throws {
    let watch = try await watch([
      .answer(["by": "first"]), .refuses, .letsGo,
      .answer { received in ["by": .string("\(received.value["n"]?.intValue ?? 0)")] },
    ])
    #expect(await phone.ask() == .reply("first"))
    #expect(await phone.ask() == .failed(.deliveryFailed))
    #expect(await phone.ask() == .failed(.messageReplyTimedOut))
    #expect(await phone.ask(["n": 4]) == .reply("4"))
    #expect(await phone.ask(["n": 5]) == .reply("5"))
    watch.follow([.answer(["by": "new"])])
    #expect(await phone.ask() == .reply("new"))
    #expect(watch.received.count == 6)
    try await scene.end()
  }

  @Test("is as slow as the test wants: it replies when the gate is opened")
  func slow() async throws {
    let gate = Gate()
    let watch = try await watch([.answer(["by": "late"], after: gate)])
    async let outcome = phone.ask(["n": 1])
    let message = try await watch.next()
    #expect(message.kind == .message && message.expectsReply && message.value == ["n": 1])
    gate.open()
    #expect(await outcome == .reply("late"))
    try await scene.end()
  }

  @Test("is no longer waited for by a task that was cancelled, which takes nothing")
  func cancellation() async throws {
    let watch = try await watch([.answer([:])])
    let next: @Sendable () async throws -> Void = {
      _ = try await watch.next(until: soon)
    }
    let reachable: @Sendable () async throws -> Void = {
      try await phone.waitUntil(.inactive, until: .now + .seconds(30))
    }
    for wait in [next, next, next, next, reachable] {
      let task = Task { try await wait() }
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
    }
    #expect(await phone.ask(["n": 1]) == .reply(""))
    #expect(try await watch.next().value == ["n": 1])
    try await scene.end()
  }

  @Test("is deaf: reachable, and silent until the sender's time has passed")
  func deaf() async throws {
    let watch = try await watch([.isDeaf])
    let outcomes = Mutex<[Outcome]>([])
    phone.sendMessage([:]) { _ in
      outcomes.withLock { $0.append(.reply("")) }
    } errorHandler: { error in
      outcomes.withLock { $0.append(.failed((error as? WCError)?.code)) }
    }
    #expect(try await watch.next().expectsReply)
    #expect(phone.isReachable && outcomes.withLock { $0 }.isEmpty)
    try await scene.end()
    #expect(outcomes.withLock { $0 }.count == 1)

    let impatient = try TestScene()
    let phone = try impatient.session(.phone, replyTimeout: .milliseconds(50))
    phone.delegate = delegate
    phone.activate()
    try await impatient.counterpart(.watch, script: [.isDeaf]).arrive()
    try await phone.waitUntil(\.isReachable)
    #expect(await phone.ask() == .failed(.messageReplyTimedOut))
    try await impatient.end()
  }

  @Test(
    "dies in the middle of a reply: its sender learns it at once, and others see a dead process")
  func dying() async throws {
    let watch = try await watch([.dies, .answer(["by": "again"])])
    #expect(await phone.ask() == .failed(.notReachable))
    #expect(!watch.isPresent && !phone.isReachable)
    guard
      case .gone(_, let ended) = try PeerSession("desk", in: scene.container)
        .reachability(of: "watch")
    else {
      Issue.record("it is not gone")
      return
    }
    // A process that leaves in order notes when.
    #expect(ended == nil)
    try await watch.arrive()
    try await phone.waitUntil(\.isReachable)
    #expect(await phone.ask() == .reply("again"))
    watch.leave()
    guard
      case .gone(_, .some) = try PeerSession("desk", in: scene.container)
        .reachability(of: "watch")
    else {
      Issue.record("it has not left")
      return
    }
    try await scene.end()
  }

  @Test(
    "dies or leaves although it is still arriving, as soon as it is reached",
    arguments: [true, false])
  func shortLife(dies: Bool) async throws {
    let watch = scene.counterpart(.watch, script: [.dies])
    // Its arrival waits for this one, and it is reachable meanwhile.
    let receiver = try await PeerSession("watch", in: scene.container).receiveMessages()
    let arrival = Task { try await watch.arrive(until: soon) }
    try await phone.waitUntil(\.isReachable)
    if dies {
      #expect(await phone.ask() == .failed(.notReachable))
    } else {
      watch.leave()
    }
    // While it becomes active, it is seen for a moment longer.
    try await phone.waitUntil(\.isOutOfReach)
    receiver.close()
    try await arrival.value
    #expect(!watch.isPresent)
    // Nothing of that stay is in the way of the next one.
    watch.follow([.answer(["by": "again"])])
    try await watch.arrive()
    try await phone.waitUntil(\.isReachable)
    #expect(await phone.ask() == .reply("again"))
    try await scene.end()
  }

  @Test("gets dictionaries, contexts and files, and hangs while its gate is closed")
  func transfers() async throws {
    let watch = try await watch([])
    watch.transfers.close()
    phone.transferUserInfo(["a": 1])
    await #expect(throws: WormholeError.self) {
      try await watch.next(until: .now + .milliseconds(50))
    }
    #expect(phone.outstandingUserInfoTransfers.count == 1)
    watch.die()
    #expect(watch.received.isEmpty)
    try await watch.arrive()
    watch.transfers.open()
    #expect(try await watch.next() == watch.received[0])
    #expect(watch.received[0].kind == .userInfo && watch.received[0].value == ["a": 1])
    try eventually("it is delivered") { delegate.events.contains("finished [\"a\"]") }
    try phone.updateApplicationContext(["b": 2])
    #expect(try await watch.next().kind == .context)
    let file = scene.directory.appending(path: "ticket.txt")
    try Data("seat 7".utf8).write(to: file)
    phone.transferFile(file, metadata: ["id": 7])
    let received = try await watch.next()
    #expect(received.fileName == "ticket.txt" && received.fileContent == Data("seat 7".utf8))
    #expect(received.value == ["id": 7])
    phone.sendMessageData(Data([1, 2]), replyHandler: nil)
    #expect(try await watch.next().kind == .messageData)
    try await scene.end()
  }

  @Test("sends messages, dictionaries, contexts and files")
  func sending() async throws {
    let watch = try await watch([])
    #expect(try await watch.sendMessage(["a": 1]) == ["by": "phone"])
    try await watch.tell(["b": 1])
    try await watch.transferUserInfo(["c": 1])
    try await watch.updateContext(["d": 1])
    let file = scene.directory.appending(path: "note.txt")
    try Data("seat 8".utf8).write(to: file)
    let transfer = try watch.transferFile(file)
    let events = [
      "question [\"a\"]", "message [\"b\"]", "user info [\"c\"]", "context [\"d\"]", "file seat 8",
    ]
    try eventually("all have arrived") { events.allSatisfy(delegate.events.contains) }
    #expect(try await transfer.finalStatus(until: soon) == .processed)
    try await scene.end()
  }

  @Test("has the app or not, is paired or not, on either side")
  func pairing() async throws {
    let watch = try await watch([])
    try watch.setAppInstalled(false)
    #expect(await phone.ask() == .failed(.watchAppNotInstalled))
    #expect(phone.isPaired && !phone.isWatchAppInstalled)
    try watch.setAppInstalled(true)
    try await phone.waitUntil(\.isWatchAppInstalled)
    try watch.unpair()
    #expect(await phone.ask() == .failed(.deviceNotPaired))
    try await scene.end()

    let other = try TestScene()
    let onWrist = try other.session(.watch)
    onWrist.delegate = delegate
    onWrist.activate()
    let handset = other.counterpart(.phone, script: [.answer(["by": "handset"])])
    try await handset.arrive()
    try await onWrist.waitUntil(\.isReachable)
    #expect(await onWrist.ask() == .reply("handset"))
    try handset.setAppInstalled(false)
    #expect(await onWrist.ask() == .failed(.companionAppNotInstalled))
    try handset.setAppInstalled(true)
    try handset.unpair()
    #expect(await onWrist.ask() == .failed(.deviceNotPaired))
    try await other.end()
  }

  @Test("comes back as another watch: inactive, deactivated, activated with that one")
  func anotherWatch() async throws {
    let first = try await watch([.answer(["by": "first"])])
    try await first.transferUserInfo(["last": 1])
    try eventually("it is there") { delegate.events.contains("user info [\"last\"]") }
    let second = try await first.comeBack(as: "left", script: [.answer(["by": "left"])])
    try eventually("the session is active with the other watch") {
      delegate.events.suffix(3) == ["inactive", "deactivated", "activation activated"]
    }
    try await phone.waitUntil(\.isReachable)
    #expect(await phone.ask() == .reply("left"))
    #expect(first.received.isEmpty && second.received.count == 1)
    // And again as the first one, with what is known of each.
    try second.setAppInstalled(true, isComplicationEnabled: false)
    let third = try await second.comeBack(as: "watch", script: [.answer(["by": "back"])])
    try await phone.waitUntil(\.isReachable)
    try eventually("it is the first watch again") {
      delegate.events.filter { $0 == "activation activated" }.count == 3
    }
    try await phone.waitUntil(\.isReachable)
    #expect(await phone.ask() == .reply("back"))
    let pairing = try Pairing(of: "phone", in: scene.container).state()
    #expect(pairing["left"]?.isComplicationEnabled == false)
    third.leave()
    try await scene.end()
  }
}

extension WCSession {
  fileprivate var isOutOfReach: Bool { !isReachable }
}
