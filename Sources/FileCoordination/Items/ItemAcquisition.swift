import AppGroup
import SystemCalls

/// Access to one item, attempt after attempt, until it is there or the deadline has passed.
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
/// Of two that exclude each other each announces itself before it looks for the other.
final class ItemAcquisition: SteppedWork {
  private let demand: ItemDemand
  private let purpose: String
  private let term: Duration
  private let patience: Patience

  private var location: ItemLocation
  /// Whether the site was looked for already: then somebody may be there.
  private var hasLookedForSite = false
  private let ownLatch = WakeLatch()
  private var request: (lease: LeaseRequest, site: ItemSite)?
  private var others = Others()
  private var containing = Containing()
  private var contents: ContentsWait?
  private var readers = ReadersWait()
  private var moved: MovedItem?
  private var hasLooked = false
  /// What is held so far; the next step goes on from there.
  private var claim: Claim?
  /// Where we have been, to remove it if nobody else is there.
  private var visited: ItemSite?
  /// Whether the item was locked, and nobody there.
  private var wasLeftLocked = false
  /// The directory above whose contents somebody has claimed: what else its caller has in there has to
  /// be given up, too, for the other one waits for that.
  private(set) var givesWayTo: ItemLocation?
  /// Where this waits for its turn, and what it has found in its way there.
  private var place: ClaimLine.Place?
  private var obstacle: ClaimName?

  var latch: WakeLatch? { request?.lease.latch ?? ownLatch }

  init(
    _ location: ItemLocation, _ demand: ItemDemand, purpose: String, term: Duration,
    patience: Patience
  ) {
    self.location = location
    self.demand = demand
    self.purpose = purpose
    self.term = term
    self.patience = patience
    patience.cancellation.wakes(ownLatch)
  }

  // A task that is cancelled just drops what it waits for.
  deinit { leaveSite() }

  func step() throws -> StepProgress<ItemAccess> {
    let given = location.path
    do {
      return try reporting(demand.action, path: given) {
        while true {
          try patience.check(demand.action, path: given)
          switch try attempt() {
          case .access(let access): return .done(access)
          case .again: continue
          case .wait(let deadline): return .wait(until: deadline)
          }
        }
      }
    } catch {
      giveUp()
      leaveSite()
      throw error
    }
  }

  // Whoever left while we had its lease has left the site to us (Tests/Models/claims.pml,
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
    case wait(until: ContinuousClock.Instant)
  }

  private func attempt() throws -> Attempt {
    do {
      return try attemptOnce()
    } catch {
      // Stopped for so long that others took the claim away, or left last and removed the site.
      guard try hasLostItsPlace() else { throw error }
      giveUp()
      request = nil
      return patience.isOver ? try timedOut(nil) : .again
    }
  }

  private func hasLostItsPlace() throws -> Bool {
    // Moved since this attempt began.
    if let moved, try moved.newPlace(of: location) != nil { return true }
    if let claim { return try !claim.isStanding() }
    return try request.map { request throws(Errno) in try !request.site.isAtItsPlace() } ?? false
  }

  private func attemptOnce() throws -> Attempt {
    givesWayTo = nil
    if hasLooked { try followMove() } else { try rememberItem() }
    if demand.kind == .reading { return try attemptReading() }
    guard let claim else { return try attemptClaim() }
    return try attemptHolding(claim)
  }

  // MARK: Readers

  private func attemptReading() throws -> Attempt {
    let lock = try ItemLock.open(location)
    let isShared = try lock?.tryLock(.shared) ?? false
    if let site = try siteForReading() {
      let finding = try others.look(at: site, purpose: purpose) {
        // Whoever has the item locked may not have said yet that it publishes.
        $0.kind == .inPlace || $0.kind == .publishing || (lock != nil && !isShared)
      }
      // One that is stopped or dead is passed by: what it has not published nobody sees.
      if case .present(let name) = finding {
        wasLeftLocked = false
        return try wait(for: name) { others.watch($0) }
      }
    }
    if lock != nil, !isShared, !wasLeftLocked {
      // Whoever had it locked has left since, for each of us unlocks an item before its claim ends
      // (Tests/Models/claims.pml, DROP_SECOND_LOCK). Locked still: by a program that makes no claims.
      wasLeftLocked = true
      return .again
    }
    wasLeftLocked = false
    if case .present(let name, let directory) = try containing.look(location, purpose: purpose) {
      givesWayTo = directory
      return try wait(for: name, at: directory) { containing.watch($0) }
    }
    // Replaced between opening and locking.
    if let lock, try !lock.isAt(location) { return .again }
    // Also one that is not locked tells whether a directory was replaced while it was read.
    return .access(ItemAccess(location, demand, reading: lock))
  }

  private func siteForReading() throws -> ItemSite? {
    do {
      return try ItemSite.open(location)
    } catch let error as Errno where error == .accessDenied || error == .notDirectory {
      // Its owner's changes are published in one step all the same.
      return nil
    }
  }

  // MARK: Writers

  private func attemptClaim() throws -> Attempt {
    let place = self.place ?? ClaimLine.Place(at: location, ownLatch)
    self.place = place
    if !place.mayLook() {
      guard patience.isOver else { return .wait(until: patience.deadline(after: .seconds(1))) }
      if let obstacle { return try timedOut(obstacle.holder) }
    }
    do {
      let (request, site) = try self.request ?? makeRequest()
      self.request = (request, site)
      visited = site
      switch try request.attempt() {
      case .wait(let deadline): return .wait(until: min(deadline, patience.nextLook))
      case .acquired(let lease):
        self.request = nil
        return try claim(at: site, under: lease)
      }
    } catch let error as Errno where error == .staleHandle {
      // Whoever left last has just removed the site.
      request = nil
      return patience.isOver ? try timedOut(nil) : .again
    }
  }

  private func makeRequest() throws -> (LeaseRequest, ItemSite) {
    let site = try ItemSite.openOrMake(location, isMissing: !hasLookedForSite)
    hasLookedForSite = true
    visited = site
    let request = LeaseRequest(
      site: site.lease, mode: .exclusive, term: LeaseTerm.standard, deadline: patience.deadline)
    return (request, site)
  }

  private func claim(at site: ItemSite, under lease: Lease) throws -> Attempt {
    try withExtendedLifetime(lease) {
      guard let kind = demand.claimKind else { preconditionFailure("readers make no claim") }
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
            kind: kind, coversContents: demand.coversContents,
            declaration: LeaseDeclaration(mode: .exclusive, term: term), purpose: purpose)
          claim = try Claim.make(name, at: site, under: lease)
          // Whoever ends the claim removes the site.
          visited = nil
          place = nil
          return .again
        }
      } catch let error as AppGroupError where error.code == .leaseLost {
        return .again
      } catch let error as Errno where error == .noSuchFile {
        // Stopped with the lease for so long that others took it away, and removed the site.
        guard try !site.isAtItsPlace() else { throw error }
        return .again
      }
    }
  }

  private func attemptHolding(_ claim: Claim) throws -> Attempt {
    if case .present(let name, let directory) = try containing.look(location, purpose: purpose) {
      // Whoever has the directory waits for us, unless we give way.
      giveUp()
      givesWayTo = directory
      return try wait(for: name, at: directory) { containing.watch($0) }
    }
    // Only after that look: somebody who was done before it has replaced the directory by now, and
    // whoever came after it has found our claim, or will (Tests/Models/contents.pml, PLACE_FIRST).
    guard try claim.site.isAtItsPlace() else {
      // Nobody looks for the claim there any more, and nobody would see what is published there.
      giveUp()
      return .again
    }
    if demand.coversContents, let waiting = try waitForContents() { return waiting }
    guard demand.kind == .inPlace else {
      return .access(ItemAccess(location, demand, claim: claim))
    }
    switch try readers.look(at: location) {
    case .over(let lock):
      // Its only owner now, so that it is unlocked before the claim ends.
      readers = ReadersWait()
      return .access(
        ItemAccess(location, demand, claim: claim, lock: demand.keepsLock ? lock : nil))
    case .present(let lock):
      guard !patience.isOver else { return try timedOut(lock.holder(), "is reading it") }
      return readers.watch(ownLatch) ? .wait(until: patience.nextLook) : .again
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
    return waiting.watch(ownLatch) ? .wait(until: patience.nextLook) : .again
  }

  // MARK: Waiting

  private func wait(
    for name: ClaimName, at place: ItemLocation? = nil, _ watch: (WakeLatch) -> Bool
  ) throws -> Attempt {
    if patience.isOver {
      let what = place.map { "has the directory \($0.path)" } ?? "has access to it"
      return try timedOut(name.holder, what)
    }
    return watch(ownLatch) ? .wait(until: patience.nextLook) : .again
  }

  private func waitInLine(for name: ClaimName) throws -> Attempt {
    obstacle = name
    let before = place?.mustWait() ?? 0
    if before == 0 { return try wait(for: name) { others.watch($0) } }
    // Hundreds of waiters must not keep hundreds of descriptors of the same claim.
    others = Others()
    return try wait(for: name) { _ in true }
  }

  private func timedOut(
    _ holder: LeaseHolder?, _ what: String = "has access to it"
  ) throws -> Attempt {
    throw FileCoordinationError.timedOut(
      demand.action, path: location.path, holder: holder, has: what)
  }

  /// Begins anew, after access that was granted had to be given up; an item that is moved meanwhile is
  /// found all the same.
  func beginAgain(givingUp access: ItemAccess) throws {
    if demand.followsMoves { moved = try MovedItem(location) }
    claim = nil
    contents = nil
    access.end()
  }

  // Before anybody is looked for: whoever is found may be about to move it.
  private func rememberItem() throws {
    hasLooked = true
    guard demand.followsMoves else { return }
    do throws(Errno) {
      moved = try MovedItem(location)
    } catch {
      // What this user cannot find is not followed.
      guard error == .accessDenied || error == .notDirectory else { throw error }
    }
  }

  private func followMove() throws {
    guard let moved else { return }
    guard let place = try moved.newPlace(of: location) else { return }
    giveUp()
    // Of the old place: nobody may come there any more.
    leaveSite()
    location = place
    self.moved = try MovedItem(place)
    others = Others()
    containing = Containing()
    contents = nil
    readers = ReadersWait()
    request = nil
  }

  /// Ends what is held so far.
  func giveUp() {
    place = nil
    guard let claim else { return }
    self.claim = nil
    // What was seen under the claim says nothing of what others begin without it
    // (Tests/Models/contents.pml, KEEP_PASSED); and what is locked is unlocked first.
    contents = nil
    readers = ReadersWait()
    claim.end()
  }
}
