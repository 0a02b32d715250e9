import Dispatch
import Synchronization
import Testing
import WormholePropertyLists
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeSystem
@testable import WormholeToolkit

@Suite(.blocking, .bothEngines) struct CallEndpointTests {
  /// Calls that came, and how calls ended.
  private final class Record: Sendable {
    private let state = Mutex<(calls: [IncomingCall], ends: [String], over: Int)>(([], [], 0))

    var calls: [IncomingCall] { state.withLock { $0.calls } }
    var ends: [String] { state.withLock { $0.ends } }
    /// How many incoming calls are over.
    var over: Int { state.withLock { $0.over } }

    func take(_ call: IncomingCall) {
      call.onEnd { [weak self] in self?.state.withLock { $0.over += 1 } }
      state.withLock { $0.calls.append(call) }
    }

    func drop() { state.withLock { $0.calls = [] } }

    func note(_ end: CallEnd) {
      let text =
        switch end {
        case .answered(.reply(let value)): "reply \(value.intValue ?? -1)"
        case .answered(.failure(let code, _, _)): "failure \(code)"
        case .timedOut: "timed out"
        case .cancelled: "cancelled"
        case .closed: "closed"
        case .died: "died"
        case .failed: "failed"
        }
      state.withLock { $0.ends.append(text) }
    }
  }

  private struct Scene {
    let directory: TemporaryDirectory
    let caller: CallEndpoint
    let callee: CallEndpoint
    let record: Record
    let address: String

    init(acceptingBytes bytes: Int = CallEndpoint.maximumBytes) throws {
      directory = try TemporaryDirectory()
      let record = Record()
      self.record = record
      caller = CallEndpoint(in: try directory.container()) { _ in }
      callee = CallEndpoint(in: try directory.container(), bytes: bytes) { record.take($0) }
      address = try callee.open()
    }

    @discardableResult
    func ask(_ value: PropertyListValue, for time: Duration = .seconds(60)) throws -> UInt64 {
      let record = record
      let id = try caller.begin(value, about: "test", until: .now + time) { record.note($0) }
      #expect(try caller.post(id, to: address, isWatched: true) == .posted)
      return id
    }

    func incoming(_ count: Int = 1) throws -> IncomingCall {
      try eventually("the calls come") { record.calls.count == count }
      return try #require(record.calls.last)
    }
  }

  @Test("Calls that are not answered are bounded in their bytes, too")
  func manyBytes() throws {
    let scene = try Scene(acceptingBytes: 100_000)
    let value = PropertyListValue.string(String(repeating: "x", count: 60_000))
    try scene.ask(value)
    let first = try scene.incoming()
    try scene.ask(value)
    try eventually("it is refused") { scene.record.ends == ["failure queueFull"] }
    #expect(try first.answer(.reply(.integer(1))))
    scene.record.drop()
    try eventually("the first has its answer") { scene.record.ends.count == 2 }
    withExtendedLifetime(first) {}
  }

  @Test("A call is handed over once, in order, and ends with the first answer only")
  func answer() throws {
    let scene = try Scene()
    for number in 0..<20 { try scene.ask(.integer(Int64(number))) }
    _ = try scene.incoming(20)
    #expect(scene.record.calls.map(\.value.intValue) == (0..<20).map { $0 })
    for call in scene.record.calls {
      #expect(try call.answer(.reply(call.value)))
      #expect(try !call.answer(.failure(code: "late", reason: "")))
    }
    try eventually("all have ended") { scene.record.ends == (0..<20).map { "reply \($0)" } }
    #expect(scene.caller.count == 0 && scene.record.over == 0)
  }

  @Test("The callee learns that a call was cancelled, has timed out, or is released")
  func ends() throws {
    let scene = try Scene()
    let cancelled = try scene.ask(1)
    _ = try scene.incoming(1)
    #expect(scene.caller.end(cancelled, as: .cancelled))
    #expect(!scene.caller.end(cancelled, as: .timedOut))
    try eventually("it is cancelled") { scene.record.over == 1 }
    try scene.ask(2, for: .seconds(1))
    try eventually("its time is over") { scene.record.over == 2 }
    let answered = try scene.ask(3)
    let call = try scene.incoming(3)
    #expect(try call.answer(.reply(3), isLast: false))
    try eventually("it is answered") { scene.record.ends.last == "reply 3" }
    #expect(scene.record.over == 2 && !call.isOver)
    try scene.caller.release(answered, at: scene.address)
    try eventually("it is released") { scene.record.over == 3 }
    #expect(scene.record.ends == ["cancelled", "timed out", "reply 3"])
  }

  @Test("A notice comes although its sender has ended, and a call from it does not")
  func notice() throws {
    let directory = try TemporaryDirectory()
    let record = Record()
    let notices = Mutex<[PropertyListValue]>([])
    let callee = CallEndpoint(
      in: try directory.container(), notice: { value in notices.withLock { $0.append(value) } },
      handler: { call in record.take(call) })
    let address = try callee.open()
    let outlet = try #require(directory.container().mailboxWriter(to: address))
    let gone = CallKey(id: 1, replyTo: "0-0")
    let request = CallMessage.request(gone, "late", .never)
    #expect(try outlet.post(request) == .posted)
    #expect(try outlet.post(CallMessage.notice("moved")) == .posted)
    try eventually("it comes") { notices.withLock { $0 } == ["moved"] }
    #expect(record.calls.isEmpty)
    callee.close()
  }

  @Test("A call that ends while it is posted is cancelled after it has come, not before")
  func endsWhilePosted() throws {
    let scene = try Scene()
    let record = scene.record
    let id = try scene.caller.begin(1, until: nil) { record.note($0) }
    // The last question before it is posted.
    let outcome = try scene.caller.post(id, to: scene.address) {
      scene.caller.end(id, as: .cancelled)
    }
    #expect(outcome == .posted)
    try eventually("it came, and is over") { record.calls.count == 1 && record.over == 1 }
    #expect(record.ends == ["cancelled"])
  }

  @Test("A call that its handler releases after its expiry has no answer, not even a failure")
  func releasedLate() throws {
    let directory = try TemporaryDirectory()
    let (late, record) = (Record(), Record())
    let caller = CallEndpoint(in: try directory.container()) { _ in }
    let address = try caller.open()
    let outlet = try #require(directory.container().mailboxWriter(to: address))
    /// Releases a call that its caller waits for without end.
    func release(_ record: Record, expiring expiry: Expiry) throws {
      let key = CallKey(id: try caller.begin(1, until: nil) { record.note($0) }, replyTo: address)
      _ = IncomingCall(key, 1, expiry: expiry, from: outlet, to: nil)
    }
    try release(late, expiring: Expiry(after: .zero))
    try release(record, expiring: Expiry(after: .seconds(60)))
    try eventually("the second one has failed") { record.ends == ["failure notAnswered"] }
    #expect(late.ends.isEmpty && caller.count == 1)
  }

  @Test("A call that its handler releases without an answer has failed")
  func released() throws {
    let scene = try Scene()
    try scene.ask(1)
    _ = try scene.incoming()
    scene.record.drop()
    try eventually("it has failed") { scene.record.ends == ["failure notAnswered"] }
  }

  @Test("When the callee closes, calls to it end as died, also if it was asked before it read them")
  func calleeDies() throws {
    let scene = try Scene()
    try scene.ask(1)
    let call = try scene.incoming()
    // An answer that lies there already comes before the death.
    try scene.ask(2)
    #expect(try call.answer(.reply(1)))
    scene.callee.close()
    try eventually("both have ended") { scene.record.ends.sorted() == ["died", "reply 1"] }
    let id = try scene.caller.begin(3, until: nil) { _ in }
    #expect(try scene.caller.post(id, to: scene.address, isWatched: true) == .gone)
    #expect(try scene.caller.post(id, to: scene.address) == .gone)
  }

  @Test("When the caller closes, its calls end, and are over for the callee, answered or not")
  func callerDies() throws {
    let scene = try Scene()
    try scene.ask(1)
    let first = try scene.incoming()
    #expect(try first.answer(.reply(1), isLast: false))
    try eventually("it is answered") { scene.record.ends == ["reply 1"] }
    try scene.ask(2)
    _ = try scene.incoming(2)
    scene.caller.close()
    #expect(scene.record.ends == ["reply 1", "closed"])
    try eventually("both are over") { scene.record.over == 2 }
    #expect(try !first.answer(.reply(1)))
  }

  @Test("The messages of a call have the documented keys, which other versions read")
  func keys() throws {
    let directory = try TemporaryDirectory()
    let messages = Mutex<[PropertyListValue]>([])
    let mailbox = try directory.container().makeMailbox { message in
      messages.withLock { $0.append(message) }
    }
    let caller = CallEndpoint(in: try directory.container()) { _ in }
    let id = try caller.begin(["from": "phone"], until: .now + .seconds(60)) { _ in }
    #expect(try caller.post(id, to: mailbox.address) == .posted)
    #expect(caller.end(id, as: .cancelled))
    try eventually("both come") { messages.withLock(\.count) == 2 }
    let (request, cancel) = messages.withLock { ($0[0], $0[1]) }
    let keys = ["expires", "id", "kind", "namespace", "replyTo", "uptime", "value"]
    let own = TestEngine.current == .directory ? keys : (keys + ["left"]).sorted()
    #expect(request.dictionaryValue?.keys.sorted() == own)
    #expect(request["kind"] == "request" && request["value"] == ["from": "phone"])
    #expect(request["replyTo"]?.stringValue == caller.address)
    #expect(cancel["kind"] == "cancel" && cancel["id"] == request["id"])
    #expect(cancel["replyTo"] == request["replyTo"] && cancel.dictionaryValue?.count == 3)
  }

  @Test("Calls about one subject are ended together")
  func subject() throws {
    let scene = try Scene()
    try scene.ask(1)
    try scene.ask(2)
    _ = try scene.incoming(2)
    scene.caller.endCalls(about: "other", as: .cancelled)
    #expect(scene.caller.count == 2)
    scene.caller.endCalls(about: "test", as: .cancelled)
    #expect(scene.record.ends == ["cancelled", "cancelled"])
    try eventually("both are over") { scene.record.over == 2 }
  }
}
