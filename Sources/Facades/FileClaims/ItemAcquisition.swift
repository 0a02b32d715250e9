package import AppGroup
import SystemCalls

/// Acquires access to one item: attempt after attempt, until one succeeds or the deadline has passed.
///
/// ```
/// reader                               writer                               publisher
/// flock LOCK_SH on the item            under the lease: nobody in the way?  flock LOCK_EX on the item
/// somebody publishes, or works         then a claim of its own                (its readers are waited for)
///   on it in place? wait               somebody has the contents of a       under the lease: claim still
/// somebody has the contents of a         directory above? give way, wait      there? one rename
///   directory above? give way, wait    covers contents, or in place: wait   claim and site removed
///                                        for those who are there
/// ```
///
/// Of two accesses that exclude each other, each announces itself before it looks for the other.
package final class ItemAcquisition: Waiting {
  private let kind: AccessKind
  /// Whether the access must state its purpose, because other processes may have the same purpose: a
  /// claim states it, a lock does not.
  private let tellsPurpose: Bool
  private let purpose: String
  private let term: Duration
  private let patience: Patience

  private var location: ItemLocation
  /// Whether an earlier attempt looked for the site: then another process may be there.
  private var hasLookedForSite = false
  private let latch = WakeLatch()
  private var request: (lease: LeaseRequest, site: ItemSite)?
  private var others = ClaimSurvey()
  private var containing = Containing()
  private var contents: ContentsWait?
  private var readers = ReadersWait()
  private var moved: MovedItem?
  private var hasLooked = false
  /// The parts that are held so far; the next step continues from there.
  private var claim: Claim?
  /// The site that this acquisition used; it is removed if no other process uses it.
  private var visited: ItemSite?
  /// Whether the item was locked although no process was found at its site.
  private var wasLeftLocked = false
  /// The directory above whose contents another process has claimed. The caller must also give up its
  /// other accesses in that directory, because that process waits for them.
  package private(set) var givesWayTo: ItemLocation?
  /// The place in the line of waiters, and the claims found ahead of it.
  private var place: ClaimLine.Place?
  private var obstacle: ClaimName?

  package init(
    _ location: ItemLocation, _ kind: AccessKind, tellsPurpose: Bool = false, purpose: String,
    term: Duration, patience: Patience
  ) {
    self.location = location
    self.kind = kind
    self.tellsPurpose = tellsPurpose
    self.purpose = purpose
    self.term = term
    self.patience = patience
    patience.cancellation.wakes(latch)
  }

  // A cancelled task just drops its place.
  deinit { leaveSite() }

  package func step() throws -> WaitingStep<ItemAccess> {
    let given = location.path
    do {
      return try reporting(kind.action, path: given) {
        while true {
          try patience.check(kind.action, path: given)
          switch try attempt() {
          case .access(let access): return .done(access)
          case .again: continue
          case .wait(let latch, let deadline): return .wait(for: latch, until: deadline)
          case .spin(let pause): return .spin(pause)
          }
        }
      }
    } catch {
      giveUp()
      leaveSite()
      throw error
    }
  }

  // A process that left while we had the lease has left the site to us (Tests/Models/claims.pml,
  // GIVE_UP_AT_ONCE).
  private func leaveSite() {
    guard let site = visited else { return }
    visited = nil
    request = nil
    site.removeReporting()
  }

  private enum Attempt {
    case access(ItemAccess)
    case again
    case wait(for: WakeLatch, until: ContinuousClock.Instant)
    case spin(Duration)
  }

  private func attempt() throws -> Attempt {
    do {
      return try attemptOnce()
    } catch {
      // This process was stopped for so long that others took the claim away, or removed the site.
      guard try hasLostItsPlace() else { throw error }
      giveUp()
      request = nil
      return patience.isOver ? try timedOut(nil) : .again
    }
  }

  private func hasLostItsPlace() throws -> Bool {
    // The item was moved after this attempt began.
    if let moved, try moved.newPlace(of: location) != nil { return true }
    if let claim { return try !claim.isStanding() }
    return try request.map { request throws(Errno) in try !request.site.isAtItsPlace() } ?? false
  }

  private func attemptOnce() throws -> Attempt {
    givesWayTo = nil
    if hasLooked { try followMove() } else { try rememberItem() }
    guard let claimKind = kind.claim ?? (tellsPurpose ? .sharing : nil) else {
      return try attemptReading()
    }
    guard let claim else { return try attemptClaim(claimKind) }
    return try attemptHolding(claim)
  }

  // MARK: Readers

  private func attemptReading() throws -> Attempt {
    let lock = try ItemLock.open(location)
    let isShared = try lock?.tryLock(.shared) ?? false
    if let site = try siteForReading() {
      let finding = try others.look(at: site, purpose: purpose) {
        // The process that has the item locked may not have announced yet that it publishes.
        $0.kind == .inPlace || $0.kind == .publishing || (lock != nil && !isShared)
      }
      // A stopped or dead process is passed by, because its unpublished changes are invisible.
      if case .present(let name) = finding {
        wasLeftLocked = false
        return try wait(for: name) { others.watch($0) }
      }
    }
    if lock != nil, !isShared, !wasLeftLocked {
      // The process that had it locked has left, because an item is unlocked before its claim ends
      // (Tests/Models/claims.pml, DROP_SECOND_LOCK). If it is still locked, then by a program without
      // claims.
      wasLeftLocked = true
      return .again
    }
    wasLeftLocked = false
    if case .present(let name, let directory) = try containing.look(location, purpose: purpose) {
      givesWayTo = directory
      return try wait(for: name, at: directory) { containing.watch($0) }
    }
    // The item was replaced between opening and locking.
    if let lock, try !lock.isAt(location) { return .again }
    // Or it was moved between the look for it and opening.
    if lock == nil, try moved?.newPlace(of: location) != nil { return .again }
    // Even without a lock, the descriptor tells whether a directory was replaced while it was read.
    return .access(ItemAccess(location, kind, claim: nil, lock: lock))
  }

  private func siteForReading() throws -> ItemSite? {
    do {
      return try ItemSite.open(location)
    } catch let error as Errno where error == .accessDenied || error == .notDirectory {
      // Its owner still publishes changes in one step.
      return nil
    }
  }

  // MARK: Writers

  private func attemptClaim(_ kind: ClaimName.Kind) throws -> Attempt {
    let place = self.place ?? ClaimLine.Place(at: location, latch)
    self.place = place
    if !place.mayLook() {
      guard patience.isOver else {
        return .wait(for: latch, until: patience.deadline(after: .seconds(1)))
      }
      if let obstacle { return try timedOut(obstacle.holder) }
    }
    do {
      let (request, site) = try self.request ?? makeRequest()
      self.request = (request, site)
      visited = site
      switch try request.step() {
      case .wait(let latch, _): return .wait(for: latch, until: patience.nextLook)
      case .spin(let pause): return .spin(pause)
      case .done(let lease):
        self.request = nil
        return try claim(kind, at: site, under: lease)
      }
    } catch let error as Errno where error == .staleHandle {
      // The last process that left has just removed the site.
      request = nil
      return patience.isOver ? try timedOut(nil) : .again
    }
  }

  private func makeRequest() throws -> (LeaseRequest, ItemSite) {
    let site = try ItemSite.openOrMake(location, isMissing: !hasLookedForSite)
    hasLookedForSite = true
    visited = site
    let request = LeaseRequest(
      site: site.lease, mode: .exclusive, term: Value.standardTerm, deadline: patience.deadline)
    return (request, site)
  }

  private func claim(
    _ kind: ClaimName.Kind, at site: ItemSite, under lease: Lease
  ) throws -> Attempt {
    try withExtendedLifetime(lease) {
      do {
        let finding = try others.look(at: site, with: lease.surroundings, purpose: purpose) {
          kind.excludes($0.kind)
        }
        switch finding {
        case .present(let name): return try waitInLine(for: name)
        case .removable(let name, let isAlive):
          guard try site.takeAway(name, isAlive: isAlive, under: lease) else {
            return try waitInLine(for: name)
          }
          return .again
        case .nobody:
          let name = ClaimName(
            kind: kind, coversContents: self.kind.coversContents,
            declaration: LeaseDeclaration(mode: .exclusive, term: term), purpose: purpose)
          claim = try Claim.make(name, at: site, under: lease)
          // The process that ends the claim removes the site.
          visited = nil
          place = nil
          return .again
        }
      } catch let error as AppGroupError where error.code == .leaseLost {
        return .again
      } catch let error as Errno where error == .noSuchFile {
        // This process was stopped with the lease for so long that others took it over and removed
        // the site.
        guard try !site.isAtItsPlace() else { throw error }
        return .again
      }
    }
  }

  private func attemptHolding(_ claim: Claim) throws -> Attempt {
    if case .present(let name, let directory) = try containing.look(location, purpose: purpose) {
      // The owner of the directory waits for this access unless it gives way.
      giveUp()
      givesWayTo = directory
      return try wait(for: name, at: directory) { containing.watch($0) }
    }
    // Only after that look: a process that finished before it has replaced the directory by now, and
    // one that came later has found our claim, or will (Tests/Models/contents.pml, PLACE_FIRST).
    guard try claim.site.isAtItsPlace() else {
      // No process looks for the claim there any more, or would see anything published there.
      giveUp()
      return .again
    }
    if kind.coversContents, let waiting = try waitForContents() { return waiting }
    guard kind.claim == .inPlace else {
      return .access(ItemAccess(location, kind, claim: claim))
    }
    switch try readers.look(at: location) {
    case .over(let lock):
      // The access is the only owner now, so the item is unlocked before the claim ends.
      readers = ReadersWait()
      return .access(
        ItemAccess(location, kind, claim: claim, lock: tellsPurpose ? nil : lock))
    case .present(let lock):
      guard !patience.isOver else { return try timedOut(lock.holder(), "is reading it") }
      return readers.watch(latch) ? .wait(for: latch, until: patience.nextLook) : .again
    }
  }

  private func waitForContents() throws -> Attempt? {
    guard try location.status()?.kind == .directory else { return nil }
    var waiting = contents ?? ContentsWait(location, purpose: purpose)
    defer { contents = waiting }
    guard let obstacle = try waiting.look() else { return nil }
    guard !patience.isOver else {
      return try timedOut(obstacle.holder, "works on \(obstacle.path)")
    }
    return waiting.watch(latch) ? .wait(for: latch, until: patience.nextLook) : .again
  }

  // MARK: Waiting

  private func wait(
    for name: ClaimName, at place: ItemLocation? = nil, _ watch: (WakeLatch) -> Bool
  ) throws -> Attempt {
    if patience.isOver {
      let what = place.map { "has the directory \($0.path)" } ?? "has access to it"
      return try timedOut(name.holder, what)
    }
    return watch(latch) ? .wait(for: latch, until: patience.nextLook) : .again
  }

  private func waitInLine(for name: ClaimName) throws -> Attempt {
    obstacle = name
    let before = place?.mustWait() ?? 0
    if before == 0 { return try wait(for: name) { others.watch($0) } }
    // Hundreds of waiters must not keep hundreds of descriptors of the same claim.
    others = ClaimSurvey()
    return try wait(for: name) { _ in true }
  }

  private func timedOut(
    _ holder: LeaseHolder?, _ what: String = "has access to it"
  ) throws -> Attempt {
    throw FileCoordinationError.timedOut(
      kind.action, path: location.path, holder: holder, has: what)
  }

  /// Begins again after granted access had to be given up; finds an item that was moved in the
  /// meantime.
  package func beginAgain(givingUp access: ItemAccess) throws {
    if kind.followsMoves { moved = try MovedItem(location) }
    claim = nil
    contents = nil
    access.end()
  }

  // Before the look for other processes, because one that is found may be about to move the item.
  private func rememberItem() throws {
    hasLooked = true
    guard kind.followsMoves else { return }
    do throws(Errno) {
      moved = try MovedItem(location)
    } catch {
      // A place that this user cannot reach is not followed.
      guard error == .accessDenied || error == .notDirectory else { throw error }
    }
  }

  private func followMove() throws {
    guard let moved else { return }
    guard let place = try moved.newPlace(of: location) else { return }
    giveUp()
    // The site of the old place: no process may come there any more.
    leaveSite()
    location = place
    self.moved = try MovedItem(place)
    others = ClaimSurvey()
    containing = Containing()
    contents = nil
    readers = ReadersWait()
    request = nil
  }

  /// Releases everything that is held so far.
  package func giveUp() {
    place = nil
    guard let claim else { return }
    self.claim = nil
    // Findings under the claim are void, because others may begin without it now
    // (Tests/Models/contents.pml, KEEP_PASSED). The item is unlocked first.
    contents = nil
    readers = ReadersWait()
    claim.end()
  }
}
