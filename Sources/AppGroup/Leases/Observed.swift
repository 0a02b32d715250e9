package import SystemCalls

/// What a waiter has seen of the holders so far: rule 3, when is a holder overdue?
///
/// - its own declared term has passed, by its own clock if we share it, else since we first saw it;
/// - or /proc says that it is stopped, and we have seen it there for the grace already;
/// - or /proc says that it is dead, and we have seen it locked for 2 seconds all the same: by a process
///   that it belonged to and that does not let it go;
/// - or it has declared nothing at all (stopped between locking and declaring, or not one of us)
///   and /proc/locks names a stopped process, or the default term has passed since we began to look.
package struct Observed {
  struct Overdue {
    let declaration: LeaseDeclaration?
  }

  private var firstSeen: [LeaseDeclaration: ContinuousClock.Instant] = [:]
  private var undeclaredSince: ContinuousClock.Instant?

  package init() {}

  mutating func overdue(
    _ held: HeldDirectory, now: ContinuousClock.Instant
  ) throws(Errno) -> Overdue? {
    let living = try Self.declarations(in: held).filter { Self.mayLive($0) }
    guard !living.isEmpty else {
      firstSeen = [:]
      return try undeclaredIsOverdue(held.status(), now: now) ? Overdue(declaration: nil) : nil
    }
    undeclaredSince = nil
    return overdue(among: living, now: now).map { Overdue(declaration: $0) }
  }

  /// The first of the living holders that is overdue.
  package mutating func overdue(
    among living: [LeaseDeclaration], now: ContinuousClock.Instant
  ) -> LeaseDeclaration? {
    firstSeen = firstSeen.filter { living.contains($0.key) }
    for declaration in living {
      let since = firstSeen[declaration] ?? now
      firstSeen[declaration] = since
      let seen = since.duration(to: now)
      if declaration.age ?? seen >= declaration.term { return declaration }
      guard seen >= LeaseRequest.grace, declaration.identity.isVisible else { continue }
      let status = declaration.identity.status
      if status?.isStopped == true { return declaration }
      if status?.isDead ?? true, seen >= LeaseTerm.standard { return declaration }
    }
    return nil
  }

  /// The same for a lock that nobody declares: a lease in its first moment, or a stranger's.
  private mutating func undeclaredIsOverdue(
    _ file: FileStatus, now: ContinuousClock.Instant
  ) throws(Errno) -> Bool {
    let seen = undeclared(now: now)
    if seen >= LeaseTerm.standard { return true }
    guard seen >= LeaseRequest.grace else { return false }
    return try lockHolders(of: file).contains { ProcessStatus.of($0)?.isStopped == true }
  }

  /// The same for a gate, whose writer may wait as long as it likes if it is seen to run.
  package mutating func gateIsOverdue(
    _ file: FileStatus, now: ContinuousClock.Instant
  ) throws(Errno) -> Bool {
    let seen = undeclared(now: now)
    guard seen >= LeaseRequest.grace else { return false }
    let holders = try lockHolders(of: file).compactMap { ProcessStatus.of($0) }
    if holders.isEmpty { return seen >= LeaseTerm.standard }
    return holders.contains(where: \.isStopped)
  }

  /// The same for a lock that is shared: it is passed over only if everybody who is seen to have it is
  /// stopped (Tests/Models/claims.pml, ANY_STOPPED).
  package mutating func readersAreOverdue(
    _ file: FileStatus, now: ContinuousClock.Instant
  ) throws(Errno) -> Bool {
    let seen = undeclared(now: now)
    guard seen >= LeaseRequest.grace else { return false }
    let holders = try lockHolders(of: file).compactMap { ProcessStatus.of($0) }
    if holders.isEmpty { return seen >= LeaseTerm.standard }
    return holders.allSatisfy(\.isStopped)
  }

  private mutating func undeclared(now: ContinuousClock.Instant) -> Duration {
    let since = undeclaredSince ?? now
    undeclaredSince = since
    return since.duration(to: now)
  }

  /// The process that should be named to those who wait.
  func holder(_ held: HeldDirectory) throws(Errno) -> LeaseHolder? {
    for declaration in try Self.declarations(in: held) where Self.mayLive(declaration) {
      return LeaseHolder(identity: declaration.identity, held: declaration.age)
    }
    guard let visible = try lockHolders(of: held.status()).first else { return nil }
    return LeaseHolder(visible: visible, held: nil)
  }

  static func declarations(in held: HeldDirectory) throws(Errno) -> [LeaseDeclaration] {
    try held.descriptor.entries().compactMap { LeaseDeclaration($0.name) }
  }

  // The kernel has freed the lock of a process that is gone; what it left is not in anyone's way.
  private static func mayLive(_ declaration: LeaseDeclaration) -> Bool {
    guard declaration.identity.isVisible else { return true }
    guard let status = declaration.identity.status else { return false }
    return !status.isDead
  }
}

/// For how long a lease is held at most.
public enum LeaseTerm {
  /// The term of a change that says nothing else: 2 seconds. A holder that takes longer keeps the
  /// lease as long as nobody else wants it.
  public static let standard: Duration = .seconds(2)
}
