package import WormholeSystem

/// A waiter's observations of the holders so far, for rule 3: a holder is overdue if one of these
/// holds.
///
/// - Its own declared term has passed, by its own clock if we share it, otherwise since our first
///   look; or an hour of it, unless /proc shows that the holder runs and has the lease open. So a
///   holder keeps its lease as long as it declares and runs, and an entry in the name of another
///   process does not keep the lease.
/// - /proc shows it stopped, and we have observed it for the grace already. In another namespace of
///   process numbers /proc/locks may name it: those who paused its container see that.
/// - /proc shows it dead, but we have still observed its lock for 2 seconds: a related process
///   keeps the lock.
/// - It has declared nothing (stopped between locking and declaring, or a foreign program), and
///   /proc/locks names a stopped process, or the default term has passed since our first look, and no
///   holder has changed the lease since.
package struct Observed {
  package struct Overdue {
    package let declaration: LeaseDeclaration?
  }

  private var firstSeen: [LeaseDeclaration: ContinuousClock.Instant] = [:]
  private var undeclaredSince: ContinuousClock.Instant?
  /// The directory of the lease then.
  private var undeclaredDirectory: FileStatus?
  /// The processes that had the lock at the last look at /proc/locks.
  private var named: (processes: [Int32], at: ContinuousClock.Instant)?
  /// The time for which they are not looked for again, as long as all of them run.
  private static let pace: Duration = .seconds(1)

  package init() {}

  package mutating func overdue(
    _ held: HeldDirectory, of home: any LeaseHome, now: ContinuousClock.Instant
  ) throws(Errno) -> Overdue? {
    let living = try Self.living(in: held, of: home)
    guard !living.isEmpty else {
      firstSeen = [:]
      return try undeclaredIsOverdue(held.status(), now: now) ? Overdue(declaration: nil) : nil
    }
    undeclaredSince = nil
    return try overdue(among: living, now: now) { _ throws(Errno) in try held.status() }
      .map { Overdue(declaration: $0) }
  }

  /// Returns the first of the living holders that is overdue.
  ///
  /// - Parameter directory: Returns what a holder has locked.
  package mutating func overdue(
    among living: [LeaseDeclaration], now: ContinuousClock.Instant,
    _ directory: (LeaseDeclaration) throws(Errno) -> FileStatus?
  ) throws(Errno) -> LeaseDeclaration? {
    firstSeen = firstSeen.filter { living.contains($0.key) }
    for declaration in living {
      let since = firstSeen[declaration] ?? now
      firstSeen[declaration] = since
      let seen = since.duration(to: now)
      let age = max(declaration.age ?? .zero, seen)
      if age >= declaration.term { return declaration }
      if age >= LeaseDeclaration.longestUnseenTerm {
        let locked = try directory(declaration)
        guard let locked, try declaration.identity.isSeenToHave(locked) else { return declaration }
      }
      guard seen >= LeaseRequest.grace else { continue }
      guard declaration.identity.isVisible else {
        guard let locked = try directory(declaration) else { continue }
        let isStopped = try unseenHolders(of: locked, now: now).map { $0?.isStopped == true }
        if !isStopped.isEmpty, isStopped.allSatisfy({ $0 }) { return declaration }
        continue
      }
      if declaration.identity.status?.isStopped == true { return declaration }
      if seen >= LeaseDeclaration.standardTerm, declaration.identity.hasEnded {
        return declaration
      }
    }
    return nil
  }

  /// Returns whether a lock without a declaration is overdue: a lease in its first moment, or a
  /// foreign program's.
  private mutating func undeclaredIsOverdue(
    _ directory: FileStatus, now: ContinuousClock.Instant
  ) throws(Errno) -> Bool {
    if directory != undeclaredDirectory {
      // A holder has changed it since, so this is the first moment of another one.
      (undeclaredSince, named) = (nil, nil)
      undeclaredDirectory = directory
    }
    let seen = undeclared(now: now)
    if seen >= LeaseDeclaration.standardTerm { return true }
    guard seen >= LeaseRequest.grace else { return false }
    return try holders(of: directory, now: now).contains { $0?.isStopped == true }
  }

  /// Returns whether an exclusive lock is overdue; it may be held for any time as long as its holder is
  /// seen to run.
  package mutating func exclusiveLockIsOverdue(
    _ file: FileStatus, now: ContinuousClock.Instant
  ) throws(Errno) -> Bool {
    let seen = undeclared(now: now)
    guard seen >= LeaseRequest.grace else { return false }
    let holders = try holders(of: file, now: now)
    return holders.allSatisfy { $0 == nil }
      ? seen >= LeaseDeclaration.standardTerm : holders.contains { $0?.isStopped == true }
  }

  /// Returns whether an item's lock is overdue: it is ignored only if all that share it are stopped
  /// (Tests/Models/files.pml, ANY_STOPPED).
  package mutating func readersAreOverdue(
    _ file: FileStatus, now: ContinuousClock.Instant
  ) throws(Errno) -> Bool {
    let seen = undeclared(now: now)
    guard seen >= LeaseRequest.grace else { return false }
    let sharers = try sharers(of: file, after: seen, now: now)
    if sharers.allSatisfy({ $0 == nil }) { return seen >= LeaseDeclaration.standardTerm }
    if LeaseFault.passingRunningReaders.isActive {
      return sharers.contains { $0?.isStopped == true }
    }
    return sharers.allSatisfy { $0?.isStopped == true }
  }

  /// Returns the processes that share an item's lock: the programs that have inherited it, not those that
  /// have started them, and all others. Nil for one that cannot be looked up.
  private mutating func sharers(
    of file: FileStatus, after seen: Duration, now: ContinuousClock.Instant
  ) throws(Errno) -> [ProcessStatus?] {
    if let known = known(now: now) { return known }
    let heirs = try inheritors(of: file)
    var processes = try LockTable.current().holders(of: file)
      .filter { holder in !heirs.contains { $0.parent == holder } }
    if seen >= LeaseDeclaration.standardTerm,
      processes.contains(where: { ProcessStatus.of($0) == nil }) || processes.isEmpty
    {
      // The table names the process that has locked it, and not everywhere.
      processes = try processesLocking(file).map(\.identity.processID)
        .filter { holder in !heirs.contains { $0.parent == holder } }
    }
    processes += heirs.map(\.identity.processID)
    named = (processes, now)
    return processes.map { ProcessStatus.of($0) }
  }

  /// Returns the processes that have the file locked; nil for one that cannot be looked up.
  ///
  /// While the kernel lists the locks, every flock(2) on the machine waits. So where many processes
  /// wait, each of them must look rarely, or the holder makes no progress.
  private mutating func holders(
    of file: FileStatus, now: ContinuousClock.Instant
  ) throws(Errno) -> [ProcessStatus?] {
    if let known = known(now: now) { return known }
    let processes = try LockTable.current().holders(of: file)
    named = (processes, now)
    return processes.map { ProcessStatus.of($0) }
  }

  /// Those of the last look, as long as all of them run.
  private func known(now: ContinuousClock.Instant) -> [ProcessStatus?]? {
    guard let named, !named.processes.isEmpty, named.at.duration(to: now) < Self.pace else {
      return nil
    }
    let known = named.processes.map { ProcessStatus.of($0) }
    return known.allSatisfy { $0?.isStopped == false && $0?.isDead == false } ? known : nil
  }

  /// As `holders(of:now:)`, for holders that the table perhaps never names here.
  private mutating func unseenHolders(
    of file: FileStatus, now: ContinuousClock.Instant
  ) throws(Errno) -> [ProcessStatus?] {
    if let named, named.processes.isEmpty, named.at.duration(to: now) < Self.pace { return [] }
    return try holders(of: file, now: now)
  }

  private mutating func undeclared(now: ContinuousClock.Instant) -> Duration {
    let since = undeclaredSince ?? now
    undeclaredSince = since
    return since.duration(to: now)
  }

  /// Returns the process to name to waiters.
  func holder(_ held: HeldDirectory, of home: any LeaseHome) throws(Errno) -> LeaseHolder? {
    if let declaration = try Self.living(in: held, of: home).first {
      return LeaseHolder(identity: declaration.identity, held: declaration.age)
    }
    guard let visible = try LockTable.current().holders(of: held.status()).first else { return nil }
    return LeaseHolder(visible: visible, held: nil)
  }

  // The kernel has released the lock of a dead process, and its leftovers block nothing.
  static func living(
    in held: HeldDirectory, of home: any LeaseHome
  ) throws(Errno) -> [LeaseDeclaration] {
    try held.descriptor.entries().compactMap { home.declaration($0.name) }
      .filter { !$0.identity.hasEnded }
  }
}
