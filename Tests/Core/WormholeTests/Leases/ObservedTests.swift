import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import Wormhole

/// The moment from which a lease may be taken over, by a clock that the tests set.
@Suite("A holder of a lease is overdue", .blocking)
struct ObservedTests {
  let directory: TemporaryDirectory
  private let home: any LeaseHome
  let held: HeldDirectory
  let start = ContinuousClock.now

  init() throws {
    directory = try TemporaryDirectory()
    let value = try directory.container().value("k")
    try value.replace(with: 0)
    let site = LeaseSite(
      directory: SharedDescriptor(try value.directory.openOrMake()), home: value.container.root,
      path: value.path)
    home = site.home
    held = try site.openHeld()
  }

  private func overdue(
    _ observed: inout Observed, after time: Duration
  ) throws -> Observed.Overdue? {
    try observed.overdue(held, of: home, now: start + time)
  }

  private var now: UInt64 { bootTimeNanoseconds() / 1_000_000 }

  /// Declares a holder as this protocol's entry names do.
  ///
  /// - Parameter since: In milliseconds since the machine was started; 0 means as long ago as
  ///   possible, because the age of the testing machine is unknown.
  private func declare(
    _ identity: ProcessIdentity, since: UInt64, term milliseconds: UInt64
  ) throws -> String {
    let name =
      "x-" + String(identity.processID, radix: 16) + "-" + String(identity.startTicks, radix: 16)
      + "-" + String(identity.namespace, radix: 16) + "-" + String(since, radix: 16) + "-"
      + String(milliseconds, radix: 16) + "-a"
    try FileDescriptor.open(
      name, at: held.descriptor.rawValue, [.writeOnly, .create], mode: 0o600
    ).close()
    return name
  }

  private var elsewhere: ProcessIdentity {
    let own = ProcessIdentity.current
    return ProcessIdentity(
      processID: own.processID, startTicks: own.startTicks, namespace: own.namespace &+ 1)
  }

  @Test("when it is stopped and was observed for the grace, not a moment earlier")
  func stopped() throws {
    let holder = try Participant(directory.path)
    #expect(try holder.ask("long k 1") == "holding")
    var observed = Observed()
    #expect(try overdue(&observed, after: .zero) == nil)
    #expect(try overdue(&observed, after: .seconds(5)) == nil, "it runs, and its term is long")
    try holder.send(.stop)
    try holder.waitUntilStopped()
    observed = Observed()
    #expect(try overdue(&observed, after: .zero) == nil)
    #expect(try overdue(&observed, after: .milliseconds(49)) == nil)
    let atGrace = try overdue(&observed, after: .milliseconds(50))
    #expect(atGrace?.declaration?.identity.processID == holder.processID)
  }

  @Test("when its term has passed by its own clock, however late the look is")
  func ownClock() throws {
    let before = now
    let name = try declare(.current, since: 0, term: min(before, 5_000))
    var observed = Observed()
    #expect(try overdue(&observed, after: .zero)?.declaration?.name == name)
    #expect(try observed.holder(held, of: home)?.processID == Program.processID)
    let age = try #require(try observed.holder(held, of: home)?.held)
    #expect(age >= .milliseconds(before))
  }

  @Test("of another namespace, or another machine, when it was observed for as long as its term")
  func foreignClock() throws {
    _ = try declare(elsewhere, since: 0, term: 1_000)
    var observed = Observed()
    #expect(try overdue(&observed, after: .zero) == nil)
    #expect(try overdue(&observed, after: .milliseconds(999)) == nil)
    #expect(try overdue(&observed, after: .milliseconds(1_000)) != nil)
    #expect(try observed.holder(held, of: home)?.state == .unknown)
  }

  /// A healthy holder used to lose its lease after an hour.
  @Test("not after any time, while it declares no term, and is seen to run with the lease open")
  func whileRunning() throws {
    _ = try declare(.current, since: 0, term: UInt64(Int64.max))
    var observed = Observed()
    #expect(try overdue(&observed, after: .zero) == nil)
    #expect(try overdue(&observed, after: .seconds(3 * 3_600)) == nil)
    #expect(try overdue(&observed, after: .seconds(1_000_000)) == nil)
  }

  @Test("after an hour, when an entry says of a process that has not locked it that it has no term")
  func forged() throws {
    let first = try #require(ProcessStatus.of(1), "hidden by /proc")
    _ = try declare(first.identity, since: now, term: UInt64.max)
    var observed = Observed()
    #expect(try overdue(&observed, after: .zero) == nil)
    #expect(try overdue(&observed, after: .seconds(3_599)) == nil)
    #expect(try overdue(&observed, after: .seconds(3_600)) != nil)
  }

  @Test("of another namespace, after an hour without a sign of life")
  func renewed() throws {
    let name = try declare(elsewhere, since: 0, term: UInt64(Int64.max))
    var observed = Observed()
    #expect(try overdue(&observed, after: .zero) == nil)
    #expect(try overdue(&observed, after: .seconds(3_599)) == nil)
    let renewed = try #require(LeaseDeclaration(FileName(bytes: Array(name.utf8)))).renewed()
    let directory = held.descriptor.rawValue
    try rename(name, at: directory, to: renewed.name, at: directory)
    #expect(try overdue(&observed, after: .seconds(3_601)) == nil)
    #expect(try overdue(&observed, after: .seconds(7_200)) == nil)
    #expect(try overdue(&observed, after: .seconds(7_201)) != nil)
  }

  @Test("never when it is dead: the kernel has released its lock, and another process may have it")
  func dead() throws {
    _ = try declare(
      ProcessIdentity(
        processID: 0x7fff_fff0, startTicks: 1, namespace: ProcessIdentity.current.namespace),
      since: 0, term: 1)
    let holder = try Participant(directory.path)
    let identity = ProcessIdentity(
      processID: holder.processID,
      startTicks: try #require(ProcessStatus.of(holder.processID)).startTicks,
      namespace: ProcessIdentity.current.namespace)
    _ = try declare(identity, since: 0, term: 1)
    try holder.send(.kill)
    // Not waited for, so that it stays in the table of processes.
    try eventually("it is dead") { ProcessStatus.of(holder.processID)?.isDead != false }
    var observed = Observed()
    #expect(try overdue(&observed, after: .zero) == nil)
    #expect(try observed.holder(held, of: home) == nil, "a dead process blocks nothing")
  }

  @Test("when the lock had no declaration for the default term, or a stopped process has it")
  func undeclared() throws {
    let output = try makePipe()
    let script =
      "import fcntl,os,time; fcntl.flock(os.open('\(directory.path)/values/k/lease/held', 0), 2); "
      + "print(1, flush=True); time.sleep(60)"
    let holder = try ChildProcess(
      "python3", ["-c", script], output: output.write.rawValue)
    #expect(try waitReadable([output.read.rawValue], until: soon) == [true])
    var observed = Observed()
    #expect(try overdue(&observed, after: .zero) == nil)
    #expect(try overdue(&observed, after: .milliseconds(1_999)) == nil)
    let atTerm = try overdue(&observed, after: .seconds(2))
    #expect(atTerm != nil && atTerm?.declaration == nil)
    try holder.send(.stop)
    try eventually("it is stopped") { ProcessStatus.of(holder.processID)?.isStopped == true }
    observed = Observed()
    #expect(try overdue(&observed, after: .zero) == nil)
    #expect(try overdue(&observed, after: .milliseconds(49)) == nil)
    #expect(try overdue(&observed, after: .milliseconds(50)) != nil)
    try holder.send(.kill)
    _ = try holder.wait(until: soon)
  }

  @Test("only for an uninterrupted observation: another holder in between begins again")
  func beginsAnew() throws {
    var observed = Observed()
    #expect(try overdue(&observed, after: .zero) == nil)
    let name = try declare(.current, since: now, term: 600_000)
    #expect(try overdue(&observed, after: .seconds(1)) == nil)
    try removeFile(name, at: held.descriptor.rawValue)
    #expect(try overdue(&observed, after: .seconds(3)) == nil)
    #expect(try overdue(&observed, after: .seconds(5)) != nil)
  }

  /// A lease that many processes wanted used to be taken from holders that had just got it.
  @Test("not when each of several holders has just locked it, and has not declared itself yet")
  func busy() throws {
    var observed = Observed()
    #expect(try overdue(&observed, after: .zero) == nil)
    let name = try declare(.current, since: now, term: 600_000)
    try removeFile(name, at: held.descriptor.rawValue)
    #expect(try overdue(&observed, after: .seconds(2)) == nil)
    #expect(try overdue(&observed, after: .milliseconds(3_999)) == nil)
    #expect(try overdue(&observed, after: .seconds(4)) != nil)
  }

  /// Thirty waiters that read the table twenty times a second slowed every flock(2) of the machine down.
  @Test("by a look at the table of locks once a second, as long as the processes in it run")
  func seldom() throws {
    let file = try FileDescriptor.open(directory.path + "/x", [.writeOnly, .create], mode: 0o600)
    #expect(try file.tryLock(.exclusive))
    let locked = try file.status()
    var observed = Observed()
    #expect(try !observed.exclusiveLockIsOverdue(locked, now: start))
    #expect(try !observed.exclusiveLockIsOverdue(locked, now: start + .milliseconds(1_900)))
    try file.unlock()
    // A child that another test is just starting shares the lock.
    try eventually("no process has it") { try LockTable.current().holders(of: locked).isEmpty }
    #expect(try !observed.exclusiveLockIsOverdue(locked, now: start + .milliseconds(2_899)))
    #expect(try observed.exclusiveLockIsOverdue(locked, now: start + .milliseconds(2_900)))
  }

  @Test("of a lock alone only when it is stopped, or invisible for the default term")
  func exclusiveLock() throws {
    let holder = try Participant(directory.path)
    #expect(try holder.ask("long k 1") == "holding")
    let locked = try held.status()
    var observed = Observed()
    #expect(try !observed.exclusiveLockIsOverdue(locked, now: start))
    #expect(
      try !observed.exclusiveLockIsOverdue(locked, now: start + .seconds(600)), "it is seen to run")
    try holder.send(.stop)
    try holder.waitUntilStopped()
    observed = Observed()
    #expect(try !observed.exclusiveLockIsOverdue(locked, now: start + .milliseconds(0)))
    #expect(try !observed.exclusiveLockIsOverdue(locked, now: start + .milliseconds(49)))
    #expect(try observed.exclusiveLockIsOverdue(locked, now: start + .milliseconds(50)))
    let unlocked = try fileStatus(directory.path)
    observed = Observed()
    #expect(try !observed.exclusiveLockIsOverdue(unlocked, now: start))
    #expect(try !observed.exclusiveLockIsOverdue(unlocked, now: start + .milliseconds(1_999)))
    #expect(try observed.exclusiveLockIsOverdue(unlocked, now: start + .seconds(2)))
  }

  /// A shell that has used flock(1) as its manual shows used to lose the lock after two seconds.
  @Test("of an item's lock not while another process than the one that took it has it, and runs")
  func sharedDescriptor() throws {
    let path = directory.path + "/x"
    try ItemText.write("", to: path)
    let script = "exec 9<'\(path)'; flock 9; : >'\(path).locked'; exec sleep 60"
    let shell = try ChildProcess("sh", ["-c", script])
    try eventually("it has the lock") { try exists(path + ".locked", at: Directory.current) }
    let locked = try fileStatus(path)
    var observed = Observed()
    for seconds in [0, 1, 2, 600] {
      #expect(try !observed.readersAreOverdue(locked, now: start + .seconds(seconds)))
    }
    try shell.send(.stop)
    try eventually("it is stopped") { ProcessStatus.of(shell.processID)?.isStopped == true }
    observed = Observed()
    #expect(try !observed.readersAreOverdue(locked, now: start))
    #expect(try observed.readersAreOverdue(locked, now: start + .seconds(2)))
    try shell.send(.kill)
    _ = try shell.wait(until: soon)
  }

  @Test("of an item's lock when the program that inherited it is stopped, not its starter")
  func inheritedLock() throws {
    let file = try FileDescriptor.open(directory.path + "/x", [.writeOnly, .create], mode: 0o600)
    #expect(try file.tryLock(.shared))
    let locked = try file.status()
    let program = try ChildProcess("sleep", ["60"], inheriting: file.rawValue)
    var observed = Observed()
    #expect(try !observed.readersAreOverdue(locked, now: start))
    #expect(try !observed.readersAreOverdue(locked, now: start + .seconds(600)))
    try program.send(.stop)
    try eventually("it is stopped") { ProcessStatus.of(program.processID)?.isStopped == true }
    observed = Observed()
    #expect(try !observed.readersAreOverdue(locked, now: start))
    #expect(try observed.readersAreOverdue(locked, now: start + .milliseconds(50)))
    try program.send(.kill)
    _ = try program.wait(until: soon)
  }

  @Test("is overdue after the term without a table of locks")
  func noLockTable() throws {
    let scene = try LeaseScene()
    let site = try scene.site()
    let held = try site.openHeld()
    let stranger = try FileDescriptor.open(scene.lease + "/held", .readOnly)
    // A child that another test is just starting shares the lock of the change that made the lease.
    try eventually("the lease is free") { try stranger.tryLock(.exclusive) }
    let plan = Faults.Plan { call, _ in call == .openat ? .fail(.noSuchFile) : .proceed }
    var observed = Observed()
    try Faults.$plan.withValue(plan) {
      let start = ContinuousClock.now
      _ = try observed.overdue(held, of: site.home, now: start)
      let early = try observed.overdue(held, of: site.home, now: start + .seconds(1))
      let late = try observed.overdue(held, of: site.home, now: start + .seconds(3))
      let found = [early.map { _ in 1 } == 1, late.map { _ in 1 } == 1]
      #expect(found == [false, true])
    }
  }
}
