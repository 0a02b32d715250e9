import Dispatch
import Synchronization
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import WormholePeers

@Suite("A pairing", .blocking, .bothEngines)
struct PairingTests {
  let directory: TemporaryDirectory
  let pairing: Pairing

  init() throws {
    directory = try TemporaryDirectory()
    pairing = Pairing(of: "phone", in: try directory.container())
  }

  @Test("is one companion of the default name, paired, installed and active, before any pairing")
  func fresh() throws {
    let state = try pairing.state()
    #expect(state.companions == [.init(name: "watch")] && state.active?.name == "watch")
    #expect(try pairing.activate("watch") && !pairing.activate("other"))
    #expect(try pairing.container.own.value(PeerNames.pairing("phone")).read() == nil)
  }

  // The default used to stay, paired and active, so that the only paired watch was refused.
  @Test("is exactly the paired ones after the first pairing, which replaces the default")
  func first() throws {
    try pairing.pair(.init(name: "left"))
    #expect(try pairing.state() == .init(companions: [.init(name: "left")], activeName: "left"))
    let other = Pairing(of: "other", in: pairing.container)
    try other.pair(.init(name: "watch"))
    try other.pair(.init(name: "left"))
    #expect(try other.state().companions.map(\.name) == ["watch", "left"])
    #expect(try other.state().activeName == "watch")
  }

  @Test("is never with itself")
  func itself() throws {
    let error = #expect(throws: WormholeError.self) { try pairing.pair(.init(name: "phone")) }
    #expect(error?.code == .unsupportedValue)
    #expect(try pairing.state().active?.name == "watch")
  }

  @Test("has no complication on display without an app")
  func withoutApp() throws {
    try pairing.pair(.init(name: "watch"))
    var watch = Pairing.Companion(name: "watch")
    watch.isAppInstalled = false
    try pairing.pair(watch)
    #expect(try pairing.state().active?.isComplicationEnabled == false)
    #expect(try pairing.state().active?.isAppInstalled == false)
  }

  @Test("keeps the order of pairing, and always has an active companion as long as there is any")
  func changing() throws {
    try pairing.pair(.init(name: "watch"))
    try pairing.pair(.init(name: "second", isAppInstalled: false))
    try pairing.pair(.init(name: "third"))
    #expect(try pairing.state().active?.name == "watch")
    try pairing.pair(.init(name: "second", isComplicationEnabled: false))
    #expect(try pairing.state().companions.map(\.name) == ["watch", "second", "third"])
    let second = Pairing.Companion(name: "second", isComplicationEnabled: false)
    #expect(try pairing.state().companions[1] == second)
    #expect(try pairing.activate("second"))
    #expect(try pairing.unpair("second"))
    #expect(try pairing.state().activeName == "third")
    #expect(try !pairing.unpair("second"))
    #expect(try pairing.unpair("watch") && pairing.unpair("third"))
    #expect(try pairing.state() == .init(companions: [], activeName: nil))
    try pairing.pair(.init(name: "fourth"))
    #expect(try pairing.state().activeName == "fourth")
    #expect(throws: WormholeError.self) { try pairing.pair(.init(name: "")) }
  }

  @Test("loses no simultaneous change")
  func concurrent() throws {
    DispatchQueue.concurrentPerform(iterations: 12) { number in
      do {
        try pairing.pair(.init(name: "watch-\(number)"))
      } catch {
        Issue.record(error)
      }
    }
    #expect(try pairing.state().companions.count == 12)
  }

  @Test("calls its observers after each change; an unreadable one is an error of the look")
  func observing() throws {
    try pairing.pair(.init(name: "watch"))
    let seen = Mutex<[String]>([])
    let observation = try pairing.observe(on: DispatchQueue(label: "pairing")) { [pairing] in
      let line: String
      do {
        let state = try pairing.state()
        line = "\(state.companions.map(\.name)) \(state.activeName ?? "none")"
      } catch {
        line = (error as? WormholeError).map { "\($0.code)" } ?? "\(error)"
      }
      seen.withLock { $0.append(line) }
    }
    let value = pairing.container.own.value(PeerNames.pairing("phone"))
    try pairing.pair(.init(name: "second"))
    try eventually("the second") { seen.withLock { $0.last } == #"["watch", "second"] watch"# }
    try pairing.activate("second")
    try eventually("the switch") { seen.withLock { $0.last } == #"["watch", "second"] second"# }
    try value.replace(with: "nonsense")
    try eventually("the nonsense") { seen.withLock { $0.last } == "damaged" }
    #expect(throws: WormholeError.self) { try pairing.state() }
    #expect(throws: WormholeError.self) { try pairing.pair(.init(name: "third")) }
    try value.remove()
    try eventually("the default") { seen.withLock { $0.last } == #"["watch"] watch"# }
    observation.cancel()
  }

  // A session compares its counterpart also for other reasons, and may have notified its delegate
  // of the state in between.
  @Test("calls its observers after changes that leave it as it was")
  func backAndForth() throws {
    try pairing.pair(.init(name: "watch"))
    let calls = Mutex(0)
    let queue = DispatchQueue(label: "pairing")
    let observation = try pairing.observe(on: queue) { calls.withLock { $0 += 1 } }
    queue.suspend()
    try pairing.pair(.init(name: "watch", isAppInstalled: false))
    try pairing.pair(.init(name: "watch"))
    queue.resume()
    try eventually("the observer is called") { calls.withLock { $0 } > 0 }
    observation.cancel()
  }
}

extension PairingTests {
  @Test("that ends takes back what was sent before, and nothing of a pairing that begins meanwhile")
  func takingBack() throws {
    let phone = try PeerSession("phone", in: pairing.container)
    try phone.enqueue("old", to: "watch")
    try phone.setContext("old", for: "watch")
    try phone.takeBackAll(for: "watch") { false }
    #expect(try phone.outstandingMessageTransfers(to: "watch").map(\.value) == ["old"])
    #expect(try phone.context(for: "watch") == "old")
    try phone.takeBackAll(for: "watch") {
      try phone.enqueue("new", to: "watch")
      try phone.setContext("new", for: "watch")
      return true
    }
    #expect(try phone.outstandingMessageTransfers(to: "watch").map(\.value) == ["new"])
    #expect(try phone.context(for: "watch") == "new")
  }

  @Test("tells names apart by their bytes")
  func bytes() throws {
    let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}")
    try pairing.pair(.init(name: composed))
    try pairing.pair(.init(name: decomposed))
    func companions() throws -> [[UInt8]] {
      try pairing.state().companions.map { Array($0.name.utf8) }
    }
    #expect(try companions() == [Array(composed.utf8), Array(decomposed.utf8)])
    #expect(try pairing.activate(decomposed))
    #expect(try pairing.state().activeName?.utf8.elementsEqual(decomposed.utf8) == true)
    #expect(try pairing.unpair(composed) && !pairing.unpair(composed))
    #expect(try companions() == [Array(decomposed.utf8)])
    #expect(try pairing.state().activeName?.utf8.elementsEqual(decomposed.utf8) == true)
  }
}

#if DEBUG
  extension PairingTests {
    @Test(
      "whose end was interrupted is ended by the next call for it, also by a new pairing",
      .onlyDirectories("calls of its file system fail"))
    func interrupted() throws {
      let phone = try PeerSession("phone", in: pairing.container)
      func fill() throws {
        try phone.enqueue(1, to: "watch")
        try phone.setContext(2, for: "watch")
      }
      func isClean() throws -> Bool {
        try phone.outstandingMessageTransfers(to: "watch").isEmpty
          && phone.context(for: "watch") == nil
      }
      try pairing.pair(.init(name: "watch"))
      try fill()
      interruptUnpairing()
      #expect(try !isClean() && pairing.state()["watch"] == nil)
      #expect(try pairing.unpair("watch") && isClean() && !pairing.unpair("watch"))

      try pairing.pair(.init(name: "watch"))
      try fill()
      interruptUnpairing()
      try pairing.pair(.init(name: "watch"))
      #expect(try isClean() && pairing.state().activeName == "watch")
      // What waits from now on belongs to the new pairing.
      try fill()
      try pairing.pair(.init(name: "watch", isComplicationEnabled: false))
      #expect(try !isClean())
    }

    /// Nothing can be opened any more once the companion is removed.
    private func interruptUnpairing() {
      let isRemoved = Atomic(false)
      let failing = Faults.Plan { call, _ in
        if call == .renameat2 { isRemoved.store(true, ordering: .relaxed) }
        return [.openat, .openat2].contains(call) && isRemoved.load(ordering: .relaxed)
          ? .fail(.inputOutput) : .proceed
      }
      #expect(throws: WormholeError.self) {
        try Faults.$plan.withValue(failing) { try pairing.unpair("watch") }
      }
    }
  }
#endif
