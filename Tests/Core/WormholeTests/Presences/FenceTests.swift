import Synchronization
import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeEtcd

/// Changes under the fence of an exclusive role, of a process that is stopped in the middle of them and
/// replaced.
@Suite("The fence of a role", .blocking, .bothEngines)
struct FenceTests {
  let directory: TemporaryDirectory
  let container: SharedContainer
  let presence: Presence

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
    presence = container.presence("role")
  }

  /// What the changes of the participant change.
  private func state() throws -> [Int64] {
    try ["a", "b"].map { try container.value($0).read()?.int64Value ?? 0 }
      + [Int64(container.queue("jobs").outstanding().count)]
  }

  private static let changes = ["update", "together", "send", "store"]

  // MARK: The plain case

  @Test("lets its holder change a value, several, and a queue; its number grows with each entering")
  func holds() async throws {
    var last: UInt64 = 0
    for round in 1...3 {
      let role = try await presence.enterExclusively()
      #expect(role.fence.number > last)
      last = role.fence.number
      let old = try await container.value("a").update(while: role.fence) { value in
        defer { value = .integer(Int64(round)) }
        return value?.int64Value ?? 0
      }
      #expect(old == Int64(round - 1))
      try await container.update(["a", "b"], while: role.fence) { $0["b"] = $0["a"] }
      try await container.value("c").replace(with: "x", while: role.fence)
      try await container.queue("jobs").sender("s").enqueue(.integer(1), while: role.fence)
      #expect(try state() == [Int64(round), Int64(round), Int64(round)])
      // By its number alone, as a command has it.
      try await container.value("b").replace(with: 9, while: presence.fence(last))
      role.close()
    }
  }

  @Test("refuses a number that is not that of the last entering, and says so", arguments: changes)
  func stale(change: String) throws {
    let old = try presence.enterExclusively()
    let fence = old.fence
    old.close()
    let role = try presence.enterExclusively()
    let before = try state()
    for number in [fence.number, role.fence.number + 1, 0] {
      let stale = presence.fence(number)
      let error = #expect(throws: WormholeError.self) {
        switch change {
        case "update": try container.value("a").update(while: stale) { $0 = 5 }
        case "together": try container.update(["a", "b"], while: stale) { $0["a"] = 5 }
        default:
          try container.queue("jobs").sender("s").enqueue(
            5, keepsReceipt: change == "store", while: stale)
        }
      }
      #expect(error?.code == .leaseLost)
      #expect(error?.description.contains("role \"role\"") == true, "\(String(describing: error))")
    }
    #expect(try state() == before)
    // Also where nothing would change.
    #expect(throws: WormholeError.self) { try container.value("a").update(while: fence) { _ in } }
    withExtendedLifetime(role) {}
  }

  @Test("does not exist before the first entering: no number passes")
  func unused() throws {
    for number: UInt64 in [0, 1, .max] {
      #expect(throws: WormholeError.self) {
        try container.value("a").update(while: presence.fence(number)) { $0 = 1 }
      }
    }
    #expect(try container.value("a").read() == nil)
  }

  // MARK: Stopped in the middle

  /// ```
  /// late                        successor
  /// enters, begins its change
  /// stopped before call N
  ///                             takes the role over, looks
  /// continued: refused          sees no further change
  /// ```
  @Test(
    "refuses a process that is stopped before any system call of its change",
    .onlyDirectories("on etcd the steps are its requests"), arguments: changes)
  func steps(change: String) throws {
    let counting = try Participant(directory.path)
    _ = try counting.ask("alone role")
    // The first change makes directories, too.
    #expect(try counting.ask("while role \(change)") == "done")
    let calls = try counting.calls(of: "while role \(change)")
    #expect(try counting.ask("leave role") == "done")
    try counting.end()
    var refused = 0
    for place in stride(from: TriedSteps.first, to: calls, by: TriedSteps.stride) {
      let initial = try state()
      let late = try Participant(directory.path)
      _ = try late.ask("alone role 10")
      try late.tell("stop \(place) while role \(change)")
      try late.waitUntilStopped()
      let role = try presence.enterExclusively()
      let seen = try state()
      try late.send(.continue)
      let answer = try late.answer()
      #expect(try state() == seen, "step \(place) of \(calls): \(answer)")
      if seen == initial {
        #expect(answer.hasPrefix("error leaseLost"), "step \(place) of \(calls): \(answer)")
        refused += 1
      }
      role.close()
      try late.end()
    }
    // Most steps come before the one that publishes.
    #expect(refused * 2 * TriedSteps.stride > calls / 2, "\(refused) of \(calls)")
    if TriedSteps.isThorough { print("\(change): \(refused) refused of \(calls) steps") }
  }

  @Test(
    "refuses a change whose requests come to etcd after a successor has entered",
    .enabled(if: TestEngine.available.contains(.etcd), "there is no etcd here"), arguments: changes)
  func requests(change: String) throws {
    guard TestEngine.current == .etcd else { return }
    let location = try #require(try TestEngine.etcd.location(of: directory.path))
    let gate = RequestGate()
    let proxy = try LossyProxy(to: EtcdNode.shared.get().endpoint) { gate.pass($0) }
    let through = EtcdLocation(endpoints: [proxy.endpoint], prefix: location.prefix).description
    let late = try Participant(
      program: BuiltProgram.path("participant"), [through],
      environment: ["XDG_STATE_HOME=\(directory.path)/state"])
    var number = 0
    var refused = 0
    while true {
      _ = try late.ask("alone role 10")
      let before = try state()
      let successor = Mutex<(role: PresenceRegistration, seen: [Int64])?>(nil)
      gate.close(before: number) {
        try late.send(.stop)
        try late.waitUntilStopped()
        let role = try presence.enterExclusively()
        let seen = try state()
        successor.withLock { $0 = (role, seen) }
        try late.send(.continue)
      }
      let answer = try late.ask("while role \(change)")
      let isOvertaken = gate.open()
      guard isOvertaken else {
        // It makes fewer requests.
        #expect(answer == "done")
        break
      }
      let (role, seen) = try #require(successor.withLock { $0 })
      #expect(try state() == seen, "request \(number): \(answer)")
      if seen == before {
        #expect(answer.hasPrefix("error leaseLost"), "request \(number): \(answer)")
        refused += 1
      }
      _ = try late.ask("leave role")
      role.close()
      number += 1
    }
    #expect(refused >= 2)
  }
}

/// Holds one of the requests of a participant back while something else happens.
private final class RequestGate: Sendable {
  private struct State {
    /// How many pass before.
    var left = 0
    var action: (@Sendable () throws -> Void)?
  }

  private let state = Mutex(State())

  func close(before number: Int, _ action: @escaping @Sendable () throws -> Void) {
    state.withLock { $0 = State(left: number, action: action) }
  }

  /// - Returns: Whether the request came.
  func open() -> Bool {
    state.withLock { state in
      defer { state.action = nil }
      return state.action == nil
    }
  }

  func pass(_ path: String) {
    guard ["/v3/kv/txn", "/v3/kv/range"].contains(path) else { return }
    let action = state.withLock { state -> (@Sendable () throws -> Void)? in
      guard state.action != nil else { return nil }
      guard state.left == 0 else {
        state.left -= 1
        return nil
      }
      defer { state.action = nil }
      return state.action
    }
    do { try action?() } catch { Issue.record("while a request was held back: \(error)") }
  }
}
