package import WormholeSystem

/// One attempt after another to get a lease, until it succeeds or the deadline has passed.
///
/// Schedule of a contended lease:
///
/// ```
/// this process                          the holder
/// flock LOCK_NB: busy                   …works
/// a few tries at short intervals        …closes: unlocked, one of the tries succeeds
///   (all fail) watch held, try again    …still works
/// wait ── until that is reported ────── closes, or removes its last entry and unlocks
///      └─ or every 50 ms: is it stopped, is its term over? then take the lease away
/// ```
package final class LeaseRequest: Waiting {
  /// The shortest time for which a stopped process keeps its lease.
  package static let grace: Duration = .milliseconds(50)
  /// The same for a command that a person has stopped at its terminal, and may continue there. Half of what
  /// `lock` waits without --timeout, so that such a wait succeeds.
  package static let graceAtTerminal: Duration = .seconds(30)
  /// The number of attempts, for about 10 ms, before sleeping: a change takes far less, and with
  /// many waiters the close of each would wake all the others.
  private static let shortTries = 13
  /// The number of attempts after a release was reported, because the lock ends just after that.
  private static let triesAfterRelease = 4

  let site: LeaseSite
  let term: Duration
  let deadline: ContinuousClock.Instant
  /// Created only if the request has to wait.
  private(set) lazy var latch = givenLatch ?? WakeLatch()
  private let givenLatch: WakeLatch?

  private var held: HeldDirectory?
  private var watch: Watch?
  private var tries = 0
  private var triesBeforeSleep: Int
  private var observed = Observed()
  private let handOver: LeaseHandOver?
  private var turn: LeaseHandOver.Look?
  private var meter = WaitMeter()

  /// - Parameters:
  ///   - keptLease: The lease, if it is handed over.
  ///   - latch: What ends its waits; by default its own.
  package init(
    site: LeaseSite, term: Duration, deadline: ContinuousClock.Instant,
    keeping keptLease: KeptLease? = nil, latch: WakeLatch? = nil
  ) {
    self.site = site
    givenLatch = latch
    // A transient lease is held for as long as an accessor runs.
    triesBeforeSleep = site.layout.isTemporary ? 2 : Self.shortTries
    handOver = keptLease?.handOver
    self.term = term
    self.deadline = deadline
  }

  deinit {
    // It did not become a lease: after a failed step it may be locked.
    if held != nil { site.releaseLock() }
  }

  /// Tries to get the lease now.
  ///
  /// - Throws: `timedOut` with the holder if the deadline has passed. There is one attempt even
  ///   after that, so a deadline in the past means "only if it is free".
  package func step() throws -> WaitingStep<Lease> {
    // The access to a coordinated file measures all its waits itself.
    if site.layout.isTemporary { return try attempt() }
    return try meter.take("lease", path: site.path, in: site.containerPath) { try attempt() }
  }

  private func attempt() throws -> WaitingStep<Lease> {
    while true {
      do {
        if let lease = try tryOnce() { return .done(lease) }
      } catch let error as Errno where error == .noSuchFile {
        // Taken over between two of our steps: a new generation.
        try forget()
      } catch let error as Errno where error == .deviceBusy {
        return try waitForClose()
      }
      let now = ContinuousClock.now
      if now >= deadline {
        // A process that looks for leftovers has it locked for a moment, and declares nothing.
        guard tries < Self.shortTries, try isUndeclared() else { throw try timedOut() }
      }
      if now >= deadline || tries < triesBeforeSleep {
        // 20, 40, 80 … 1280, 1280 … µs: the close is reported before the lock is released (rule 1).
        // Not more often, because a waiter that wakes up often takes the processor from the holder.
        defer { tries += 1 }
        let interval: Duration = .microseconds(20 << min(tries, 6))
        return turn?.pause(interval) ?? .spin(interval)
      }
      tries = 0
      triesBeforeSleep = Self.triesAfterRelease
      do {
        guard try armed() else { continue }
        if try takenOver(now: now) { continue }
      } catch let error as Errno where error == .noSuchFile {
        // The same between our looks at its holder: a removed directory has no entries to read
        // (getdents(2), ENOENT).
        try forget()
        continue
      } catch let error as Errno where error == .deviceBusy {
        return try waitForClose()
      }
      return .wait(for: latch, until: min(deadline, now.advanced(by: Self.grace)))
    }
  }

  // No process may act before the lease that was taken over is removed (rule 5). On NFS or FUSE it
  // cannot be removed while its late holder lives. No lock is held meanwhile.
  private func waitForClose() throws -> WaitingStep<Lease> {
    try forget()
    let now = ContinuousClock.now
    guard now < deadline else {
      throw WormholeError(
        .timedOut, "change the value", path: site.path,
        reason: "its lease was taken from a process that was stopped, and this network file "
          + "system keeps the lease's files until that process closes them",
        remedy: "continue or end the stopped process, and try again")
    }
    return .wait(for: latch, until: min(deadline, now.advanced(by: Self.grace)))
  }

  private func forget() throws(Errno) {
    // While the old lease still leads to it.
    _ = try site.directory()
    site.releaseLock()
    handOver?.close()
    held = nil
    watch = nil
    observed = Observed()
  }

  private func tryOnce() throws -> Lease? {
    let isFresh = self.held == nil
    let held = try self.held ?? site.openHeld()
    self.held = held
    turn = handOver?.look(at: held, isWaiting: !isFresh)
    let isLocked = try held.descriptor.tryLock(.exclusive)
    guard isLocked || site.layout.isTemporary && LeaseFault.enteringLocked.isActive else {
      // Not each time: many waiters that look at the path slow the holder down.
      if tries.isMultiple(of: 4), try !site.names(held) { try forget() }
      return nil
    }
    if !isFresh {
      // A fresh one was at the path a moment ago; an old one may have been removed long ago.
      guard try site.names(held) else {
        try forget()
        return nil
      }
      // While waiting we may have read it to its end.
      try held.descriptor.rewind()
    }
    if LeaseFault.markingFirst.isActive { try site.markClean(held) }
    let remains = try clearedHeld(held)
    let lease = try Lease(site: site, held: held, term: term)
    do {
      if let remains { try lease.begin(after: remains) }
    } catch let error as WormholeError where error.code == .leaseLost {
      try forget()
      return nil
    }
    // A later close of our own waiting descriptor must not release the lease: the lease owns it
    // now.
    self.held = nil
    watch = nil
    return lease
  }

  /// The entries that holders before this one have left in the lease.
  struct Remains {
    let entries: [FileDescriptor.Entry]
    let isClean: Bool
  }

  // Rule 5: no process acts as holder of a new generation before every older one is removed.
  private func clearedHeld(_ held: HeldDirectory) throws(Errno) -> Remains? {
    var isClean = false
    var hasOthers = false
    // One call shows all entries of a healthy lease; a second look is worth it only for leftovers.
    _ = try held.descriptor.nextNames { name in
      if name.isEqual(to: LeaseSite.cleanName) { isClean = true } else { hasOthers = true }
    }
    var leftovers: [FileDescriptor.Entry] = []
    if hasOthers {
      leftovers = try held.descriptor.entries().filter {
        !$0.name.hasPrefix(LeaseSite.cleanMark)
      }
    }
    if site.layout.isTemporary {
      try site.removeLeftovers(leftovers, in: held)
      return nil
    }
    if LeaseFault.actingBeforeRemoval.isActive { return Remains(entries: leftovers, isClean: true) }
    if !isClean { try site.clearRemains() }
    return isClean && leftovers.isEmpty ? nil : Remains(entries: leftovers, isClean: isClean)
  }

  // Watch first, then try again, so that a lock that is released in between is not missed.
  private func armed() throws(Errno) -> Bool {
    if watch != nil { return true }
    guard let held else { return false }
    if site.layout.isTemporary, site.home.access == .owner { try held.markWaitedFor() }
    let latch = latch
    watch = ChangeMonitor.shared.watchOpen(
      // A holder that keeps its lease open unlocks it just after it has removed its last entry.
      held.descriptor, [.closedWithoutWriting, .deleted, .selfMoved, .selfDeleted]
    ) { _ in latch.raise() }
    return false
  }

  private func isUndeclared() throws(Errno) -> Bool {
    guard let held else { return false }
    // Removed meanwhile: it is free.
    return try ifPresent(Observed.living(in: held, of: site.home))?.isEmpty ?? true
  }

  private func takenOver(now: ContinuousClock.Instant) throws -> Bool {
    guard let held, !LeaseFault.waitingForever.isActive,
      let overdue = try observed.overdue(held, of: site.home, now: now),
      try site.home.mayTakeOver(held, from: overdue.declaration)
    else { return false }
    try site.takeOver(held, from: overdue.declaration)
    try forget()
    return true
  }

  private func timedOut() throws -> WormholeError {
    var holder: LeaseHolder?
    if let held {
      // Taken over from its holder at this moment, so there is none to name.
      holder = try ifPresent(observed.holder(held, of: site.home)) ?? nil
    }
    let state = holder.map { "with its lease \($0.holding)" } ?? "while it was in use"
    return WormholeError(
      .timedOut, "change the value", path: site.path,
      reason: "the deadline passed \(state)",
      remedy: "try again, or with a later deadline", holder: holder)
  }
}
