import Wormhole
import WormholeSystem
import WormholeToolkit

/// Other processes' claims in one site, as one waiting access knows them.
struct ClaimSurvey {
  enum Finding {
    /// A claim of a living process.
    case present(ClaimName)
    /// A claim that may be taken over, whether its owner lives or not.
    case removable(ClaimName, isAlive: Bool)
  }

  private var known: [ClaimName: (claim: SharedDescriptor, watch: Watch?)] = [:]
  private var observed = Observed()
  /// When the grace ends of those that their users have stopped at a terminal.
  private var paused: [ClaimName: ContinuousClock.Instant] = [:]

  /// Looks for claims that exclude ours.
  ///
  /// - Parameters:
  ///   - names: the site's entries, if the caller already knows them.
  ///   - purpose: the caller's purpose; claims of the same purpose are not in the way.
  ///   - excludes: whether a kind of claim is in the way.
  /// - Returns: nil if there is none.
  mutating func look(
    at site: ItemSite, with names: [FileName]? = nil, purpose: String,
    _ excludes: (ClaimName) -> Bool
  ) throws(Errno) -> Finding? {
    var names = if let names { names } else { try site.entries().map(\.name) }
    for _ in 0..<renameRaceLimit {
      // Usually the only one is the caller's own.
      let claims = names.filter { !ClaimName.isOf(purpose, $0) }.compactMap { ClaimName($0) }
        .filter { $0.purpose != purpose && excludes($0) }
      do throws(Errno) {
        return try look(at: site, claims)
      } catch {
        // One of the claims has ended, or its owner has renamed it.
        guard error == .noSuchFile else { throw error }
      }
      names = try site.entries().map(\.name)
    }
    throw .staleHandle
  }

  private mutating func look(
    at site: ItemSite, _ names: [ClaimName]
  ) throws(Errno) -> Finding? {
    known = known.filter { names.contains($0.key) }
    paused = paused.filter { names.contains($0.key) && $0.key.declaration.isStopped }
    var living: [ClaimName] = []
    for name in names {
      guard let claim = try open(name, at: site) else { continue }
      // This process has now locked it, so no other has: its owner is dead.
      if try claim.descriptor.tryLock(.exclusive) {
        // Otherwise a child that is being started would keep it locked for a moment longer, and the
        // process that removes it would find it in use.
        try claim.descriptor.unlock()
        known[name] = nil
        return .removable(name, isAlive: false)
      }
      living.append(name)
    }
    guard let first = living.first else { return nil }
    // A taker has killed the program, and perhaps did not wait for the rest, or did not survive it.
    for name in living where name.declaration.identity.hasEnded {
      guard try known[name]?.claim.descriptor.taker(of: name) != nil else { continue }
      return .removable(name, isAlive: true)
    }
    let overdue = try observed.overdue(among: living.map(\.declaration), now: .now) {
      [known] declaration throws(Errno) in
      try known.first { $0.key.declaration == declaration }?.value.claim.descriptor.status()
    }
    if let name = living.first(where: { $0.declaration == overdue }),
      try !isPaused(name, at: site), try !isKept(name)
    {
      return .removable(name, isAlive: true)
    }
    return .present(first)
  }

  /// How much longer a claim is left to an owner stopped at a terminal, whom a person may continue.
  func patience(with name: ClaimName) -> Duration? {
    paused[name].map { ContinuousClock.now.duration(to: $0) }
  }

  // Only a command's claim has no term: to a program that names one the person is not in a session.
  private mutating func isPaused(_ name: ClaimName, at site: ItemSite) throws(Errno) -> Bool {
    guard name.declaration.term == LeaseDeclaration.whileRunning,
      let status = name.declaration.identity.status, status.isStopped, status.isInBackground
    else {
      paused[name] = nil
      return false
    }
    if let end = paused[name] { return .now < end }
    let grace = try known[name]?.claim.descriptor.grace() ?? LeaseRequest.graceAtTerminal
    paused[name] = .now + grace
    if grace > .zero {
      Diagnostics.notePatience(
        with: name.holder, forThe: "lock", site.location.text, lasting: grace)
    }
    return grace > .zero
  }

  // A claim to the item itself may be handed on to a program, and is then overdue when that program
  // is stopped. If the program is not yet declared (its starter was stopped in between), or has
  // ended, any process that inherited the claim keeps it.
  private func isKept(_ name: ClaimName) throws(Errno) -> Bool {
    guard [.inPlace, .sharing].contains(name.kind), !name.isPastItsTerm,
      let claim = known[name]?.claim
    else { return false }
    let declared = name.declaration.identity
    // The age of a claim in another namespace is not known.
    guard declared.isVisible || name.declaration.term == LeaseDeclaration.whileRunning else {
      return false
    }
    let heirs = try inheritors(of: claim.descriptor.status())
    return heirs.allSatisfy { $0.identity != declared } && heirs.contains { !$0.isStopped }
  }

  private mutating func open(
    _ name: ClaimName, at site: ItemSite
  ) throws(Errno) -> SharedDescriptor? {
    if let claim = known[name]?.claim { return claim }
    // Only a directory can be a claim.
    let claim = try tolerating(
      [.notDirectory, .tooManyLinks], SharedDescriptor(site.open(name.text)))
    known[name] = claim.map { ($0, nil) }
    return claim
  }

  /// Watches for the end of the claims that were found; see `AccessSurvey.watch`.
  mutating func watch(_ latch: WakeLatch) -> Bool {
    let new = known.filter { $0.value.watch == nil }
    for (name, entry) in new {
      known[name]?.watch = ChangeMonitor.shared.watchOpen(
        entry.claim.descriptor, [.closedWithoutWriting, .selfMoved, .selfDeleted]
      ) { _ in latch.raise() }
    }
    return new.isEmpty
  }
}

extension ItemSite {
  /// How long a killed process may take to end before another look; less than the lease's term.
  private static let endingTime: Duration = .milliseconds(200)

  /// Takes the lease, and takes over a claim.
  ///
  /// - Parameter request: kept between looks, because only a wait for the lease's holder shows that
  ///   it is stopped.
  /// - Returns: false if another process now has the lease.
  func takeOver(
    _ name: ClaimName, isAlive: Bool, continuing request: inout LeaseRequest?
  ) throws -> Bool {
    do {
      while true {
        let step = try step(toLease: &request, until: .now + SharedContainer.standardWait) {
          lease in
          .done(try takeOver(name, isAlive: isAlive, under: lease))
        }
        switch step {
        case .done(let isTaken): return isTaken
        case .wait: return false
        default: continue
        }
      }
    } catch let error as WormholeError where [.timedOut, .leaseLost].contains(error.code) {
      request = nil
      return false
    } catch let error as Errno where error == .staleHandle {
      // The last process has removed the site.
      return true
    }
  }

  /// Takes over a claim, in one step that fails for a lease holder that was itself overtaken.
  ///
  /// A program that works on the item itself cannot be kept from publishing, so it is killed first:
  /// a stopped program would write again when it continues.
  ///
  /// - Returns: false if it has not ended yet, or cannot be ended.
  func takeOver(_ name: ClaimName, isAlive: Bool, under lease: Lease) throws -> Bool {
    if LeaseFault.keepingClaims.isActive { return false }
    // Made now: it shows the late owner whether its term was over. The lease may be older.
    let taker = LeaseDeclaration(term: lease.declaration.term)
    // Nil if it has ended, or has another name now.
    if isAlive, name.kind == .inPlace,
      let claim = try ifPresent(fileStatus(name.text, at: descriptor))
    {
      _ = try tolerating(
        [.noSuchFile, .accessDenied, .notPermitted, .noSpace, .diskQuotaExceeded],
        announce(taker, to: name))
      guard try endInheritors(of: claim, until: .now + Self.endingTime) else { return false }
    }
    guard let entry = try lease.takeIn(name.text) else { return true }
    if isAlive {
      try lease.moveOut(entry, toFree: name.overtaken(by: taker))
      Diagnostics.noteTakeover(of: "claim", location.text, from: name.holder)
    } else {
      try lease.discard(entry)
    }
    return true
  }

  // The owner learns that its program has ended before the claim has another name: this tells it
  // who killed the program. It is only a name, so an error here does not matter.
  private func announce(_ taker: LeaseDeclaration, to name: ClaimName) throws(Errno) {
    let claim = try open(name.text)
    guard try claim.taker(of: name) == nil else { return }
    try makeDirectory(name.overtaken(by: taker), at: claim.rawValue)
  }
}

extension LeaseDeclaration {
  fileprivate var isStopped: Bool { identity.status?.isStopped == true }
}

extension FileDescriptor {
  /// The grace that this claim's owner wants when stopped at a terminal; nil without a wish.
  fileprivate func grace() throws(Errno) -> Duration? {
    try entries().lazy.compactMap { ClaimName.grace($0.name) }.first
  }

  /// The process that kills what works under this claim, to take it over; nil if there is none.
  func taker(of name: ClaimName) throws(Errno) -> LeaseDeclaration? {
    // Another descriptor would wake all who wait for the claim's end when it is closed.
    try entries().lazy.compactMap { name.taker($0.name) }.first
  }
}
