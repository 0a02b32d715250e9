import Dispatch
import Synchronization
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import WormholePeers

@Suite("A context", .blocking, .bothEngines)
struct ContextTests {
  let scene: MessageScene
  var phone: PeerSession { scene.phone }
  var watch: PeerSession { scene.watch }

  init() throws { scene = try MessageScene() }

  @Test("is the latest that one peer set for another, readable by both, one for each direction")
  func latest() async throws {
    #expect(try phone.context(for: "watch") == nil && watch.context(from: "phone") == nil)
    try await phone.setContext(["seat": 1], for: "watch")
    try await phone.setContext(["seat": 2], for: "watch")
    try await phone.setContext(3, for: "other")
    #expect(try phone.context(for: "watch") == ["seat": 2])
    #expect(try watch.context(from: "phone") == ["seat": 2])
    #expect(try watch.context(for: "phone") == nil && phone.context(from: "watch") == nil)
    #expect(try watch.context(from: "phone", as: [String: Int].self) == ["seat": 2])
    let error = #expect(throws: WormholeError.self) {
      try watch.context(from: "phone", as: [Int].self)
    }
    #expect(error?.code == .unexpectedValue)
    try await phone.setContext(encoding: [1, 2], for: "watch")
    #expect(try watch.context(from: "phone", as: [Int].self) == [1, 2])
    try phone.removeContext(for: "watch")
    #expect(try watch.context(from: "phone") == nil)
  }

  @Test("names the peer that set it, and so does any value that the one peer of a process sets")
  func publisher() async throws {
    let own = scene.container.own
    try await phone.setContext(1, for: "watch")
    var value = own.value(PeerNames.context(from: "phone", to: "watch"))
    #expect(try await value.snapshot().publisher?.peer == "phone")
    value = scene.container.value("x")
    try await value.replace(with: 1)
    #expect(try await value.snapshot().publisher?.peer == nil)
    try await phone.activate()
    try await value.replace(with: 2)
    #expect(try await value.snapshot().publisher?.peer == "phone")
    // A process that is two peers is neither alone.
    try await watch.activate()
    try await value.replace(with: 3)
    #expect(try await value.snapshot().publisher?.peer == nil)
    try await watch.setContext(1, for: "phone")
    let back = own.value(PeerNames.context(from: "watch", to: "phone"))
    #expect(try await back.snapshot().publisher?.peer == "watch")
    phone.close()
    try await value.replace(with: 4)
    #expect(try await value.snapshot().publisher?.peer == "watch")
    watch.close()
    try await value.replace(with: 5)
    #expect(try await value.snapshot().publisher?.peer == nil)
  }

  @Test("is delivered once, the last after a burst, none after a newer one, even over restarts")
  func observing() throws {
    try phone.setContext(0, for: "watch")
    try phone.setContext(1, for: "watch")
    var heard = try observed { heard in
      try eventually("what was there") { heard() == [1] }
      for number in 2...100 { try phone.setContext(PropertyListValue(number), for: "watch") }
      try eventually("the last") { heard().last == 100 }
    }
    #expect(heard == heard.sorted() && Set(heard).count == heard.count, "\(heard)")
    // This name has seen it; the next observer sees contexts from the meantime.
    heard = try observed { heard in
      try phone.setContext(101, for: "watch")
      try eventually("only the new one") { heard() == [101] }
      try phone.removeContext(for: "watch")
      try phone.setContext(101, for: "watch")
      try eventually("setting the same again delivers it again") { heard() == [101, 101] }
    }
    try phone.setContext(102, for: "watch")
    heard = try observed { heard in try eventually("the one between") { heard() == [102] } }
  }

  /// Returns the contexts that a new observer receives while a body runs.
  private func observed(_ body: (@escaping () -> [Int]) throws -> Void) throws -> [Int] {
    let watch = try PeerSession("watch", in: scene.container)
    let heard = Mutex<[Int]>([])
    let queue = DispatchQueue(label: "context")
    let observation = try watch.observeContext(from: "phone", on: queue) { context in
      do {
        let number = try context.get().intValue ?? -1
        heard.withLock { $0.append(number) }
      } catch {
        Issue.record(error)
      }
    }
    // The existing contexts have been read by now.
    queue.sync {}
    try body { heard.withLock { $0 } }
    queue.sync { observation.cancel() }
    return heard.withLock { $0 }
  }

  @Test("is not delivered again to the successor of a process that was killed")
  func killed() throws {
    let log = scene.log("heard")
    for number in 0..<3 {
      let watch = try scene.participant()
      #expect(try watch.ask("context-observe watch phone \(log)") == "done")
      try phone.setContext(PropertyListValue(number), for: "watch")
      let seen = scene.container.own.value(PeerNames.seen(from: "phone", to: "watch"))
      let version = try scene.container.own.value(PeerNames.context(from: "phone", to: "watch"))
        .version()?.text
      try eventually("it is handed over") { try seen.read()?.stringValue == version }
      try watch.end()
    }
    #expect(try scene.lines(log) == ["0", "1", "2"])
  }

  @Test("that is damaged is reported as an error, and the next one arrives all the same")
  func damaged() throws {
    try phone.setContext(1, for: "watch")
    let heard = Mutex<[String]>([])
    let observation = try watch.observeContext(
      from: "phone", on: DispatchQueue(label: "context")
    ) { context in
      let line =
        switch context {
        case .success(let value): "\(value.intValue ?? -1)"
        case .failure(let error): "\(error.code)"
        }
      heard.withLock { $0.append(line) }
    }
    try eventually("the first") { heard.withLock { $0 } == ["1"] }
    let context = scene.container.own.value(PeerNames.context(from: "phone", to: "watch"))
    try context.replace(withBytes: Array("no".utf8))
    try eventually("the damage") { heard.withLock { $0.last } == "damaged" }
    let error = #expect(throws: WormholeError.self) { try watch.context(from: "phone") }
    #expect(error?.code == .damaged)
    // A damaged record of delivered contexts must not be an obstacle either.
    let seen = scene.container.own.value(PeerNames.seen(from: "phone", to: "watch"))
    try seen.replace(withBytes: Array("no".utf8))
    try phone.setContext(2, for: "watch")
    try eventually("the next") { heard.withLock { $0.last } == "2" }
    observation.cancel()
  }
}
