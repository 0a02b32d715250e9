import Dispatch
import Wormhole
import WormholeSystem
import WormholeToolkit

/// One call's way to a peer that is active; see `Launcher` for the rules.
final class LaunchAttempt: Waiting {
  /// How often a start under way is looked at: the kernel has no event for a process that is
  /// stopped, nor for the end of another process's child.
  private static let look: Duration = .milliseconds(100)
  /// How long a process has to be stopped, or missing, until it counts as such.
  private static let grace: Duration = .milliseconds(50)
  /// After this time a start without a process will get none, or one that is not visible here.
  private static let patience: Duration = .seconds(10)

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
  /// The program that this call started, and whether its end was reported.
  private var child: (nonce: String, end: Awaited<Void>)?
  /// The place of a start of this call that another process has removed.
  private var overtaken: String?
  /// An observation that is not certain yet, and its time.
  private var doubted: (observation: String, since: ContinuousClock.Instant)?

  init(
    _ launch: PeerLaunch, _ peer: String, container: SharedContainer, action: String,
    until deadline: ContinuousClock.Instant?
  ) {
    isForActivity = deadline != nil
    self.deadline = deadline ?? .now + Value.standardWait
    self.launch = launch
    self.peer = peer
    self.action = action
    presence = container.own.presence(PeerNames.presence(peer))
    book = LaunchBook(peer, container)
  }

  /// Raises the latch, too, when a process is active under the name; nil if that is not waited for.
  func watchPresence() throws -> ObservationToken? {
    guard isForActivity else { return nil }
    return try presence.observe(on: DispatchQueue(label: "wormhole.launcher")) { [latch] _ in
      latch.raise()
    }
  }

  func step() throws -> WaitingStep<Void> {
    guard let (start, isSettled) = try underWay() else { return .done(()) }
    // Another process that is about to start it could die first.
    if !isForActivity, isSettled { return .done(()) }
    guard ContinuousClock.now < deadline else { throw timedOut(start) }
    let pause = isForActivity ? Self.look : Self.grace
    return .wait(for: latch, until: min(deadline, .now + pause))
  }

  /// Looks how far the start is, and starts the program if it is this call's turn.
  ///
  /// - Returns: the start that is under way, and whether it has a process; nil when the peer is
  ///   active, or was active since this call began to wait for it.
  private func underWay() throws -> (LaunchState.Start, isSettled: Bool)? {
    while true {
      // In this order: a program that has ended by now was active before, if it ever was.
      let last = try book.read().start
      let standing: Standing = if let last { try self.standing(of: last) } else { .abandoned }
      let wasActive: Bool
      switch try presence.status() {
      case .running, .suspended, .unknown: return nil
      case .gone(let member, _): wasActive = last?.isBefore(member) ?? false
      case .neverSeen: wasActive = false
      }
      if wasActive, last?.nonce == followed { return nil }
      switch (standing, last) {
      case (.underWay(let isSettled), let start?) where !wasActive:
        followed = start.nonce
        return (start, isSettled)
      case (.ended, let start?) where start.nonce == followed:
        // The end is visible a moment before its status is reported.
        if let child, child.nonce == start.nonce, !child.end.isSettled { return (start, true) }
        throw ended(start)
      default:
        guard ContinuousClock.now < deadline else {
          throw PeerError(
            .timedOut, action, peer: peer, reason: "the deadline passed before it could be started",
            remedy: "wait longer")
        }
        if let start = try begin(after: last?.nonce) { return (start, true) }
      }
    }
  }

  // MARK: Where the last start stands

  private enum Standing {
    case underWay(isSettled: Bool)
    case ended
    /// No program was started, or its start cannot be waited for.
    case abandoned
  }

  private func standing(of start: LaunchState.Start) throws -> Standing {
    guard start.ending == nil else { return .ended }
    // From before the machine was restarted.
    guard let age = start.age else { return .abandoned }
    let isOld = age > Self.patience
    guard let process = start.process else {
      guard isOld || start.nonce == overtaken || mayBeOver(start.launcher, start.nonce) else {
        return .underWay(isSettled: false)
      }
      return try resolve(start)
    }
    guard process.isVisible else { return isOld ? .abandoned : .underWay(isSettled: true) }
    if process.hasEnded { return .ended }
    guard process.status?.isStopped == true else { return .underWay(isSettled: true) }
    return isCertain(start.nonce) ? .abandoned : .underWay(isSettled: false)
  }

  private func mayBeOver(_ launcher: ProcessIdentity, _ nonce: String) -> Bool {
    guard launcher.isVisible else { return false }
    if launcher.hasEnded { return true }
    return launcher.status?.isStopped == true && isCertain(nonce)
  }

  /// Whether the same observation was made a moment ago.
  private func isCertain(_ observation: String) -> Bool {
    if let doubted, doubted.observation == observation {
      return ContinuousClock.now - doubted.since >= Self.grace
    }
    doubted = (observation, .now)
    return false
  }

  /// Makes sure that no program will be started any more, or finds the program that was started.
  private func resolve(_ start: LaunchState.Start) throws -> Standing {
    let place = book.place(of: start)
    guard try !place.prevent(), let output = try place.output() else { return .abandoned }
    let variable = Self.variable(start.nonce)
    guard let process = try processes(printingTo: output, orWith: variable).first else {
      // A process that has just opened the file may not be visible in /proc at this very moment.
      return isCertain(start.nonce + " without a process") ? .ended : .underWay(isSettled: false)
    }
    try book.change { $0.note(start.nonce) { $0.process = $0.process ?? process } }
    return .underWay(isSettled: true)
  }

  // MARK: Starting

  private static func variable(_ nonce: String) -> String { "WORMHOLE_LAUNCH=" + nonce }

  private enum Turn {
    case mine
    case anothers
    case exhausted(Int)
  }

  /// Starts the program; nil when another process was faster.
  private func begin(after nonce: String?) throws -> LaunchState.Start? {
    if let obstacle = launch.obstacle { throw notLaunched(obstacle, remedy: "register it again") }
    let place = try book.newPlace()
    let start = LaunchState.Start(
      nonce: place.nonce, launcher: .current, uptime: bootTimeNanoseconds())
    let budget = launch.budgetPerDay
    let turn = try book.change(until: deadline) { state -> Turn in
      let now = LaunchState.Moment.now()
      guard state.start?.nonce == nonce else { return .anothers }
      let count = state.count(at: now)
      guard count < budget ?? .max else { return .exhausted(count) }
      state.begin(start, at: now)
      return .mine
    }
    if case .mine = turn {
      try place.sweepOthers()
      return try run(start, at: place)
    }
    _ = try place.prevent()
    guard case .exhausted(let count) = turn else { return nil }
    throw notLaunched(
      "it was started \(count) times today (UTC), as often as its registration allows",
      remedy: "start it by hand, or register it with a larger budget")
  }

  private func run(
    _ start: LaunchState.Start, at place: StartPlace
  ) throws -> LaunchState.Start? {
    let child: ChildProcess
    do throws(Errno) {
      child = try ChildProcess(
        launch.program, launch.arguments, environment: environment(start.nonce),
        detachedPrintingTo: place.outputPath)
    } catch {
      guard try place.output() != nil || error != .noSuchFile else {
        // This process was stopped meanwhile, and another process has taken over.
        overtaken = start.nonce
        return nil
      }
      let reason = "its program \(launch.program) cannot be run: \(error)"
      try book.change { $0.note(start.nonce) { $0.ending = reason } }
      throw notLaunched(reason)
    }
    followed = start.nonce
    let id = child.processID
    let process = ProcessIdentity(
      processID: id, startTicks: ProcessStatus.of(id)?.startTicks ?? 0,
      namespace: ProcessIdentity.current.namespace)
    let (book, latch, childEnd) = (book, latch, Awaited<Void>())
    self.child = (start.nonce, childEnd)
    follow(child) { end in
      // After an error, perhaps a full disk, others see that its process has ended, but not how.
      try? book.change { $0.note(start.nonce) { $0.ending = end?.clause ?? "ended" } }
      childEnd.settle(())
      latch.raise()
    }
    try book.change { $0.note(start.nonce) { $0.process = process } }
    var noted = start
    noted.process = process
    return noted
  }

  private func environment(_ nonce: String) -> [String] {
    let added = launch.environment.map { $0.key + "=" + $0.value }
    return Program.environment(with: added + [Self.variable(nonce)])
  }

  // MARK: Errors

  private func notLaunched(_ reason: String, remedy: String? = nil) -> PeerError {
    PeerError(.notLaunched, action, peer: peer, reason: reason, remedy: remedy)
  }

  private func ended(_ start: LaunchState.Start) -> PeerError {
    let place = book.place(of: start)
    let process = start.process.map { " (process \($0.processID))" } ?? ""
    let ending = start.ending.map { ": it \($0)" } ?? ""
    let words = place.lastLine().map { ", and printed last: \($0)" } ?? ""
    return notLaunched(
      "its program \(launch.program)\(process) ended before it was active\(ending)\(words)",
      remedy: "look at its output: \(place.outputPath)")
  }

  private func timedOut(_ start: LaunchState.Start) -> PeerError {
    let age = start.age ?? .zero
    let holder = LeaseHolder(identity: start.process ?? start.launcher, held: age)
    let reason =
      start.process == nil
      ? "\(holder), is about to start it"
      : "\(holder), is not active yet, \(age.tenthsOfSeconds) s after its start"
    return PeerError(
      .timedOut, action, peer: peer, reason: reason,
      remedy: "wait longer, or end that process; its output is in "
        + book.place(of: start).outputPath, holder: holder)
  }
}

/// Waits for a child's end without a thread, so that the child never stays a zombie.
///
/// - Parameter ended: called once, on a thread that may block; gets nil when another part of this
///   process has waited for all its children, which loses how this child ended.
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
      // The child does not exist any more, see above.
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
