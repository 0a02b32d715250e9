import Synchronization
import Testing
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeSystem

@Suite("Exclusive presence", .blocking, .bothEngines)
struct PresenceExclusiveTests {
  let directory: TemporaryDirectory
  let presence: Presence

  init() throws {
    directory = try TemporaryDirectory()
    presence = try directory.container().presence("p")
  }

  private func participant() throws -> Participant { try Participant(directory.path) }

  @Test("keeps others out, and names the holder to them")
  func keepsOut() throws {
    let a = try participant()
    let b = try participant()
    let id = try a.ask("alone p")
    #expect(try presence.members().map(\.isExclusive) == [true])
    let error = #expect(throws: WormholeError.self) { try presence.enterExclusively(until: .now) }
    #expect(error?.code == .timedOut)
    #expect(error?.holder?.processID == a.processID)
    #expect(error?.holder?.state == .running)
    let answer = try b.ask("alone p")
    #expect(answer.hasPrefix("error timedOut"), "\(answer)")
    #expect(answer.contains("process \(a.processID) (participant)"), "\(answer)")
    #expect(try presence.members().map(\.id) == [id], "\(directory.listing)")
    #expect(try a.ask("confirm p") == "done")
  }

  #if DEBUG
    // On a busy machine a consumer's time was up before its first attempt, and the error said only that
    // there is no such file.
    @Test(
      "is entered although a file vanishes meanwhile, also by one that does not wait",
      .onlyDirectories("etcd has no files"))
    func vanishing() throws {
      let names: Set<SystemCall> = [.openat, .renameat, .mkdirat]
      // What a process reads once about itself and the machine.
      try presence.enterExclusively(until: .now).close()
      for number in 0... {
        let directory = try TemporaryDirectory()
        let presence = try directory.container().presence("p")
        let calls = Mutex(0)
        let plan = Faults.Plan { call, _ in
          guard names.contains(call) else { return .proceed }
          return calls.withLock { calls in
            calls += 1
            return calls == number + 1 ? .fail(.noSuchFile) : .proceed
          }
        }
        do {
          try Faults.$plan.withValue(plan) { try presence.enterExclusively(until: .now) }.close()
        } catch let error as WormholeError where error.code != .timedOut {
          Issue.record("call \(number): \(error), \(directory.listing)")
        } catch {
          // Another process may be removing the lease.
          continue
        }
        if calls.withLock({ $0 }) <= number { break }
      }
    }
  #endif

  @Test(
    "passes to a waiter when the holder leaves or is killed", arguments: ["leave p", "kill"])
  func passes(command: String) throws {
    let a = try participant()
    let b = try participant()
    _ = try a.ask("alone p")
    try b.tell("alone p 60")
    if command == "kill" { try a.end() } else { #expect(try a.ask(command) == "done") }
    let id = try b.answer()
    #expect(try presence.members().map(\.id) == [id])
    #expect(try b.ask("confirm p") == "done")
  }

  // It waited for two seconds, as if a program was removing the container.
  @Test(
    "passes to a waiter at once when the holder is killed, as no removal",
    .onlyDirectories("etcd has no files"))
  func death() throws {
    let holder = try participant()
    _ = try holder.ask("alone p")
    #expect(try hasPassed(from: holder, isGone: nil))
  }

  /// - Returns: false if it was passed by before it was killed, as a holder that is stopped for long.
  private func hasPassed(
    from holder: Participant, isGone: (() throws -> Bool)?
  ) throws -> Bool {
    let record = PresenceRecord(isExclusive: true, content: nil, host: nil)
    let entry = presence.place.exclusiveEntry(
      record, .suspended, until: .now + .seconds(60), isGone: isGone)
    let first = try entry.step()
    if case .done(let hold) = first { hold.end(asDeath: false) }
    try holder.end()
    guard case .wait = first else { return false }
    let second = try entry.step()
    guard case .done(let hold) = second else {
      Issue.record("it still waits: \(second)")
      return true
    }
    #expect(ChangeMonitor.shared.isSettled(directory.path))
    hold.end(asDeath: false)
    return true
  }

  #if DEBUG
    // What it would have done in the role was missed, as if a program was removing the container.
    @Test(
      "passes to a waiter at once when the holder is killed before it has entered, too",
      .onlyDirectories("etcd has no files"))
    func deathBeforeEntering() throws {
      for step in 0..<100 {
        let holder = try participant()
        guard try holder.stops(in: "stop \(step) alone p") else { break }
        guard try presence.place.roleHolder()?.isEntering == true else {
          try holder.end()
          continue
        }
        if try hasPassed(from: holder, isGone: { true }) { return }
      }
      Issue.record("no process was stopped with the role before it had entered")
    }

    // A monitor said that it had died.
    @Test(
      "has left if it leaves between the opening of its file and the look at its lock",
      .onlyDirectories("etcd has no files"))
    func leavesDuringLook() throws {
      // A process that another test starts has the lock, too, until it runs its own program.
      try eventually("a member that leaves during a look is not seen") {
        let leaving = Mutex<PresenceRegistration?>(try presence.enter())
        let plan = Faults.Plan { call, _ in
          if call == .flock { leaving.withLock { $0.take() }?.close() }
          return .proceed
        }
        let look = try Faults.$plan.withValue(plan) { try presence.place.look(movesAside: false) }
        #expect(leaving.withLock { $0 } == nil)
        return look?.live.isEmpty == true && look?.dead.isEmpty == true
      }
    }
  #endif

  @Test("passes to a waiting task; a cancelled task stops waiting")
  func tasks() async throws {
    let a = try participant()
    _ = try a.ask("alone p")
    let presence = presence
    let cancelled = Task { try await presence.enterExclusively(until: .now + .seconds(60)) }
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { _ = try await cancelled.value }
    let waiting = Task { try await presence.enterExclusively(until: .now + .seconds(60)) }
    try a.end()
    let registration = try await waiting.value
    #expect(try presence.members().map(\.id) == [registration.id])
    registration.close()
    let error = #expect(throws: WormholeError.self) { try registration.confirm() }
    #expect(error?.code == .invalidToken)
  }

  // A                          this process
  // alone, stopped
  //                            alone: takes the role
  // continues: overtaken
  @Test(
    "is taken over from a suspended process, which learns the new holder when it continues",
    arguments: Suspension.available)
  func overtaken(_ way: Suspension) throws {
    let a = try participant()
    let old = try a.ask("alone p")
    let suspended = try Suspended(a, by: way)
    let strict = #expect(throws: WormholeError.self) {
      try presence.enterExclusively(overtaking: .nobody, until: .now + .milliseconds(100))
    }
    #expect(strict?.holder?.state == .stopped)
    let registration = try presence.enterExclusively()
    #expect(registration.id != old)
    #expect(try presence.members().map(\.id) == [registration.id], "\(directory.listing)")
    try suspended.resume()
    // In a directory by an event; on etcd, where its session lasts, when it asks.
    if TestEngine.current == .directory { #expect(try a.ask("lost p") == "leaseLost") }
    let answer = try a.ask("confirm p")
    #expect(answer.hasPrefix("error leaseLost"), "\(answer)")
    #expect(answer.contains("process \(Program.processID) "), "\(answer)")
    #expect(try a.ask("lost p") == "leaseLost")
    #expect(try presence.members().map(\.id) == [registration.id], "\(directory.listing)")
    try registration.confirm()
  }

  @Test("has one holder at a time, however many processes want it at once")
  func contended() throws {
    let contenders = try (0..<8).map { _ in try participant() }
    for contender in contenders { try contender.tell("alone p 60") }
    var remaining = Set(contenders.indices)
    while !remaining.isEmpty {
      try eventually("a process has it: \(directory.listing)") {
        try presence.members().contains { $0.state == .running }
      }
      let members = try presence.members()
      let index = try #require(
        contenders.firstIndex { $0.processID == members.first?.processID })
      #expect(members.count == 1, "\(directory.listing)")
      #expect(try contenders[index].answer() == members.first?.id)
      #expect(remaining.remove(index) != nil)
      #expect(try contenders[index].ask("leave p") == "done")
    }
  }
}
