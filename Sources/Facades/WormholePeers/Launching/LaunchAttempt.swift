import Dispatch
import Wormhole
import WormholeSystem
import WormholeToolkit

/// One call's attempt to reach an active peer; see `Launcher` for the rules.
final class LaunchAttempt: Waiting {
  /// How often a start under way is looked at: the kernel has no event for a process that is
  /// stopped, or for the end of another process's child.
  private static let look: Duration = .milliseconds(100)

  /// Raised when the program that this call started has ended.
  private let latch = WakeLatch()
  private let launch: PeerLaunch
  private let peer: String
  private let action: String
  /// Whether it waits until the peer is active, or only until its process exists.
  private let isForActivity: Bool
  /// When to give up; by default after 10 seconds.
  private let deadline: ContinuousClock.Instant
  private let presence: Presence
  private let book: LaunchBook
  /// The start that this call waits for.
  private var followed: String?
  /// The program that this call started, and how it ended; nil if that is unknown.
  private var child: (nonce: String, end: Awaited<Termination?>)?

  init(
    _ launch: PeerLaunch, _ peer: String, container: SharedContainer, action: String,
    until deadline: ContinuousClock.Instant?
  ) {
    isForActivity = deadline != nil
    self.deadline = deadline ?? .now + SharedContainer.standardWait
    self.launch = launch
    self.peer = peer
    self.action = action
    presence = container.own.presence(PeerNames.presence(peer))
    book = LaunchBook(peer, container)
  }

  /// Also raises the latch when a process is active under the name; nil if that is not waited for.
  func watchPresence() throws -> ObservationToken? {
    guard isForActivity else { return nil }
    return try presence.observe(on: DispatchQueue(label: "wormhole.launcher")) { [latch] _ in
      latch.raise()
    }
  }

  func step() throws -> WaitingStep<Void> {
    while true {
      // In this order: a program that has ended by now was active earlier, if it ever was.
      let last = try book.read().start
      let isUnderWay = last?.isUnderWay ?? false
      let hasEnded = last.map { $0.isProgram && $0.process.hasEnded } ?? false
      var wasActive = false
      switch try presence.status() {
      case .running, .suspended, .unknown: return .done(())
      case .gone(let member, _): wasActive = last?.isBefore(member) ?? false
      case .neverSeen: break
      }
      if let last, wasActive, last.nonce == followed { return .done(()) }
      if let last, isUnderWay, !wasActive {
        followed = last.nonce
        // A process that is about to start it could die first.
        if !isForActivity, last.isProgram { return .done(()) }
        guard ContinuousClock.now < deadline else { throw timedOut(last) }
        return pause()
      }
      if let last, hasEnded, last.nonce == followed {
        // The end is visible a moment before its status is reported.
        if let child, child.nonce == last.nonce, !child.end.isSettled { return pause() }
        throw ended(last)
      }
      guard ContinuousClock.now < deadline else {
        throw WormholeError(
          .timedOut, action, peer: peer, reason: "the deadline passed before it could be started",
          remedy: "wait longer")
      }
      if try begin(after: last?.nonce), !isForActivity { return .done(()) }
    }
  }

  private func pause() -> WaitingStep<Void> {
    .wait(for: latch, until: min(deadline, .now + Self.look))
  }

  // MARK: Starting

  /// Starts the program; returns false if another process was faster.
  private func begin(after nonce: String?) throws -> Bool {
    if let obstacle = launch.obstacle { throw notLaunched(obstacle, remedy: "register it again") }
    let start = LaunchState.Start(
      nonce: Nonce.next(), uptime: bootTimeNanoseconds(), process: .current, isProgram: false)
    let budget = launch.budgetPerDay ?? .max
    let count = try book.change(until: deadline) { state -> Int? in
      let now = LaunchState.Moment.now()
      guard state.start?.nonce == nonce else { return nil }
      let count = state.count(at: now)
      if count < budget { state.begin(start, at: now) }
      return count
    }
    guard let count else { return false }
    guard count < budget else {
      throw notLaunched(
        "it was started \(count) times today (UTC), as often as its registration allows",
        remedy: "start it by hand, or register it with a larger budget")
    }
    try book.sweepOutputs(except: start)
    try run(start)
    return true
  }

  private func run(_ start: LaunchState.Start) throws {
    let child: ChildProcess
    do throws(Errno) {
      child = try ChildProcess(
        launch.program, launch.arguments, environment: environment,
        detachedPrintingTo: book.outputPath(of: start))
    } catch {
      try book.change { $0.note(start.nonce, nil) }
      throw notLaunched("its program \(launch.program) cannot be run: \(error)")
    }
    followed = start.nonce
    let id = child.processID
    let process = ProcessIdentity(
      processID: id, startTicks: ProcessStatus.of(id)?.startTicks ?? 0,
      namespace: ProcessIdentity.current.namespace)
    let (latch, end) = (latch, Awaited<Termination?>())
    self.child = (start.nonce, end)
    follow(child) {
      end.settle($0)
      latch.raise()
    }
    try book.change { $0.note(start.nonce, process) }
  }

  private var environment: [String] {
    let added = launch.environment.map { $0.key + "=" + $0.value }
    return Program.environment(with: added + [Launcher.variable + "=" + peer])
  }

  // MARK: Errors

  private func notLaunched(_ reason: String, remedy: String? = nil) -> WormholeError {
    WormholeError(.notLaunched, action, peer: peer, reason: reason, remedy: remedy)
  }

  private func ended(_ start: LaunchState.Start) -> WormholeError {
    let isOwn = child?.nonce == start.nonce
    let ending = isOwn ? child?.end.wait(until: .now) ?? nil : nil
    let words = book.lastLine(of: start).map { ", and printed last: \($0)" } ?? ""
    return notLaunched(
      "its program \(launch.program) (process \(start.process.processID)) ended before it was active"
        + (ending.map { ": it \($0.clause)" } ?? "") + words,
      remedy: "look at its output: \(book.outputPath(of: start))")
  }

  private func timedOut(_ start: LaunchState.Start) -> WormholeError {
    let age = start.age ?? .zero
    let holder = LeaseHolder(identity: start.process, held: age)
    let reason =
      start.isProgram
      ? "\(holder), is not active yet, \(age.tenthsOfSeconds) s after its start"
      : "\(holder), is about to start it"
    return WormholeError(
      .timedOut, action, peer: peer, reason: reason,
      remedy: "wait longer, or end that process; its output is in \(book.outputPath(of: start))",
      holder: holder)
  }
}

/// Waits for a child's end without a thread, so that the child never stays a zombie.
///
/// - Parameter ended: called once, on a thread that may block; gets nil if another part of this
///   process has waited for all its children, so that how this child ended is lost.
private func follow(
  _ child: consuming ChildProcess, ended: @escaping @Sendable (Termination?) -> Void
) {
  let followed = FollowedChild(child)
  let source = DispatchSource.makeReadSource(
    fileDescriptor: followed.process.descriptor, queue: DispatchQueue(label: "wormhole.launcher"))
  source.setEventHandler {
    do {
      guard let end = try followed.process.wait(until: .now) else { return }
      source.cancel()
      ended(end)
    } catch {
      // The child no longer exists, see above.
      source.cancel()
      ended(nil)
    }
  }
  // The descriptor stays open as long as the source uses it.
  source.setCancelHandler { withExtendedLifetime(followed) {} }
  source.activate()
}

private final class FollowedChild: Sendable {
  let process: ChildProcess

  init(_ process: consuming ChildProcess) { self.process = process }
}

extension Termination {
  /// "exited with status 3".
  fileprivate var clause: String {
    switch self {
    case .exited(let status): "exited with status \(status)"
    case .killed(let signal): "was killed by signal \(signal)"
    }
  }
}
