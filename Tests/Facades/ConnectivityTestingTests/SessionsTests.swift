import Communicator
import ConnectivityTesting
import Foundation
import Synchronization
import Testing
import WatchConnectivity
import Wormhole
import WormholePropertyLists
import WormholeTestSupport

@Suite("Sessions of a test's own", .blocking)
struct SessionsTests {
  @Test("live in one process, any number of pairs, and none hears another's", arguments: 0..<4)
  func pairs(number: Int) async throws {
    let scene = try TestScene()
    let (phone, watch) = try (scene.session(.phone), scene.session(.watch))
    let (onPhone, onWatch) = (RecordingDelegate(), RecordingDelegate())
    phone.delegate = onPhone
    watch.delegate = onWatch
    phone.activate()
    watch.activate()
    try await phone.waitUntil(\.isReachable)
    try await watch.waitUntil(\.isReachable)
    #expect(await phone.ask(["a\(number)": 1]) == .reply("watch"))
    #expect(await watch.ask(["b\(number)": 1]) == .reply("phone"))
    watch.transferUserInfo(["c\(number)": 1])
    try phone.updateApplicationContext(["d\(number)": 1])
    try eventually("all of it is there") {
      onPhone.events.contains("user info [\"c\(number)\"]")
        && onWatch.events.contains("context [\"d\(number)\"]")
        && onWatch.events.contains("question [\"a\(number)\"]")
        && onPhone.events.contains("question [\"b\(number)\"]")
    }
    try await scene.end()
    #expect(onPhone.foreignDefaults == 0 && onWatch.foreignDefaults == 0)
    // Every key has the number of its pair.
    let keys = (onPhone.events + onWatch.events).filter { $0.contains("\"") }
    #expect(keys.allSatisfy { $0.contains("\(number)\"") }, "\(keys)")
  }

  @Test(
    "are the default one in a function and its tasks, in delegates and in handlers, but not beside")
  func defaults() async throws {
    let scene = try TestScene()
    let (phone, watch) = try (scene.session(.phone), scene.session(.watch))
    let delegate = RecordingDelegate()
    let ofProcess = WCSession.default
    watch.asDefault {
      WCSession.default.delegate = delegate
      WCSession.default.activate()
    }
    let other = RecordingDelegate()
    await phone.asDefault {
      #expect(WCSession.default === phone)
      await Task { #expect(WCSession.default === phone) }.value
      await Task.detached { #expect(WCSession.default === ofProcess) }.value
      WCSession.default.delegate = other
      WCSession.default.activate()
    }
    #expect(WCSession.default === ofProcess && ofProcess !== phone)
    try await phone.waitUntil(\.isReachable)
    let inHandler = await withCheckedContinuation { continuation in
      phone.sendMessage(["a": 1]) { _ in
        continuation.resume(returning: WCSession.default === phone)
      } errorHandler: { _ in
        continuation.resume(returning: false)
      }
    }
    let inErrorHandler = await withCheckedContinuation { continuation in
      phone.sendMessage(["a": delegate], replyHandler: nil) { _ in
        continuation.resume(returning: WCSession.default === phone)
      }
    }
    #expect(inHandler && inErrorHandler && delegate.foreignDefaults == 0)
    let inObserver = Mutex<Bool?>(nil)
    let observation = phone.observe(\.isReachable) { _, _ in
      inObserver.withLock { $0 = WCSession.default === phone }
    }
    try await watch.end()
    try eventually("the phone sees that the watch is away") { inObserver.withLock { $0 } != nil }
    #expect(inObserver.withLock { $0 } == true)
    observation.invalidate()
    try await scene.end()
  }

  @Test("end wholly: no presence, no call, no object is left, and their messages end")
  func end() async throws {
    let scene = try TestScene()
    let delegate = RecordingDelegate()
    let held = scene.counterpart(.watch, script: [.isDeaf])
    try await held.arrive()
    weak var gone: WCSession?
    let outcome = Mutex<Outcome?>(nil)
    do {
      let phone = try WCSessionBox(scene.session(.phone, replyTimeout: .seconds(60)))
      gone = phone.session
      phone.session.delegate = delegate
      phone.session.activate()
      try await phone.session.waitUntil(\.isReachable)
      phone.session.sendMessage(["a": 1]) { _ in
      } errorHandler: { error in
        outcome.withLock { $0 = .failed((error as? WCError)?.code) }
      }
      _ = try await held.next()
      try await phone.session.end()
      #expect(outcome.withLock { $0 } != nil)
      #expect(try scene.container.own.presence("peer/phone").members().isEmpty)
      #expect(phone.session.activationState == .notActivated)
      let before = delegate.events
      try await held.transferUserInfo(["late": 1])
      held.leave()
      phone.session.delegate = delegate
      phone.session.activate()
      try eventually("it says that it has ended") { delegate.events.count > before.count }
      #expect(delegate.events.dropFirst(before.count) == ["activation notActivated 7004"])
    }
    // A new session on the same container gets what waits.
    let next = try scene.session(.phone)
    let another = RecordingDelegate()
    next.delegate = another
    next.activate()
    try eventually("it gets what waited") { another.events.contains("user info [\"late\"]") }
    try await scene.end()
    try eventually("the session is released") { gone == nil }
    #expect(!FileManager.default.fileExists(atPath: scene.directory.path))
  }

  private final class WCSessionBox {
    let session: WCSession
    init(_ session: WCSession) { self.session = session }
  }

  @Test("can be ended in the middle of an activation, which then never happens")
  func activating() async throws {
    for _ in 0..<20 {
      let scene = try TestScene()
      let phone = try scene.session(.phone)
      let delegate = RecordingDelegate()
      phone.delegate = delegate
      phone.activate()
      try await phone.end()
      let after = delegate.events
      #expect(phone.activationState == .notActivated)
      #expect(try scene.container.own.presence("peer/phone").members().isEmpty)
      try await scene.end()
      #expect(delegate.events == after)
    }
  }

  @Test("end at the deadline although a delegate's method does not return")
  func hangingDelegate() async throws {
    let scene = try TestScene()
    let phone = try scene.session(.phone)
    let delegate = HangingDelegate()
    phone.delegate = delegate
    phone.activate()
    try eventually("it hangs") { delegate.hangs }
    await #expect(throws: WormholeError.self) { try await phone.end(until: .now) }
    delegate.gate.signal()
    try await phone.end()
    try await scene.end()
  }

  private final class HangingDelegate: NSObject, WCSessionDelegate, Sendable {
    let gate = DispatchSemaphore(value: 0)
    private let isHanging = Atomic(false)
    var hangs: Bool { isHanging.load(ordering: .acquiring) }

    func session(
      _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
      error: (any Error)?
    ) {
      isHanging.store(true, ordering: .releasing)
      gate.wait()
    }
  }

  // `configure` a second time used to end the process.
  @Test("of the process are reset, and configured again", .ownProcess)
  func reset() async throws {
    for role in [WCSession.Role.phone, .watch, .phone] {
      let directory = try TemporaryDirectory()
      WCSession.configure(role: role, container: try directory.container())
      let delegate = RecordingDelegate()
      WCSession.default.delegate = delegate
      WCSession.default.activate()
      try eventually("it is active") { delegate.events == ["activation activated"] }
      #expect(WCSession.default.role == role && WCSession.isSupported())
      let observation = GuaranteedMessage.observe { _ in }
      let communicator = Communicator.shared
      #expect(communicator === Communicator.shared)
      try await WCSession.reset()
      #expect(Communicator.shared !== communicator)
      try await WCSession.reset()
      GuaranteedMessage.unobserve(observation)
      #expect(try directory.container().own.presence("peer/\(role)").members().isEmpty)
      #expect(WCSession.default.activationState == .notActivated)
    }
    #expect(!WCSession.isSupported())
  }

  @Test("are ended with their scene, also with one that is only released")
  func released() async throws {
    let directory: URL
    let delegate = RecordingDelegate()
    do {
      let scene = try TestScene()
      directory = scene.directory
      let phone = try scene.session(.phone)
      phone.delegate = delegate
      phone.activate()
      try await phone.waitUntil(.activated)
    }
    try eventually("its directory is removed") {
      !FileManager.default.fileExists(atPath: directory.path)
    }
  }
}
