import Wormhole
import WormholeSystem

/// Acquires access to one item: tries until an attempt succeeds or the deadline has passed.
///
/// ```
/// reader                               writer                               publisher
/// flock LOCK_SH on the item            under the lease: nobody in the way?  flock LOCK_EX on the item
/// somebody publishes, works on it in   then a claim of its own                (its readers are waited for)
///   place, or was at work when this    somebody has the contents of a       under the lease: claim still
///   began? wait                          directory above? give way, wait      there? one rename
/// somebody has the contents of a       covers contents, or in place: wait   claim and site removed
///   directory above? give way, wait      for those who are there
/// ```
///
/// Of two accesses that exclude each other, each announces itself before it looks for the other.
final class ItemAcquisition: Waiting {
  private let kind: AccessKind
  private let terms: AccessTerms
  /// Whether the access must state its purpose, because other processes may have the same purpose:
  /// a claim states it, a lock does not.
  private var announcesPurpose: Bool
  /// Gets the sites that this acquisition leaves.
  private let removal: SiteRemoval

  private var location: ItemPath
  /// The item at the first look, because it may be moved.
  private var item: SharedDescriptor?
  private var hasLooked = false
  /// When the access began, on the clock of `LeaseDeclaration.since`.
  private let began = bootTimeNanoseconds() / 1_000_000
  private var survey: AccessSurvey
  /// The site that this acquisition uses; it is removed if no other process uses it.
  private var site: ItemSite?
  /// Whether an earlier attempt looked for the site: then another process may use it.
  private var hasLookedForSite = false
  /// For the site's lease, which others hold only for moments: even a caller that does not wait for
  /// others waits for it.
  private var request: LeaseRequest?
  private let leaseDeadline: ContinuousClock.Instant
  /// Where the access has its other items. An item that was moved there is not followed: the access
  /// would wait for itself.
  var otherPlaces: [ItemPath] = []
  /// The claim, once it is made; the next step continues from there.
  private var claim: Claim?
  /// The site, or the directory, when the item was found locked with no process at its site.
  private var lockedAmid: FileStatus?
  private var lockedLooks = 0
  /// The directory above whose contents another process has claimed. The caller must also give up
  /// its other accesses in that directory, because that process waits for them.
  private(set) var givesWayTo: ItemPath?
  /// The place in the line of waiters, and the claim found ahead of it.
  private var place: ClaimLinePlace?
  private var obstacle: ClaimName?
  private var meter = WaitMeter()

  /// - Parameter item: the item just found at the location.
  init(
    _ location: ItemPath, _ kind: AccessKind, item: SharedDescriptor? = nil,
    under terms: AccessTerms, leaving removal: SiteRemoval
  ) {
    self.location = location
    self.item = kind.followsMoves ? item : nil
    self.kind = kind
    self.terms = terms
    announcesPurpose = terms.isPurposeShared
    leaseDeadline = max(terms.deadline, .now + .seconds(1))
    survey = AccessSurvey(purpose: terms.purpose)
    self.removal = removal
  }

  // A cancelled task just drops its place.
  deinit { leaveSite() }

  func step() throws -> WaitingStep<ItemAccess> {
    let given = location.text
    return try meter.take("claim", path: given) {
      do {
        try terms.check(kind.action, path: given)
        return try reporting(kind.action, path: given, attempt)
      } catch {
        giveUp()
        leaveSite()
        // If no entry may be made there, readers only lock the item.
        guard kind.isReading, announcesPurpose,
          (error as? WormholeError)?.code == .permissionDenied
        else { throw error }
        announcesPurpose = false
        return .again
      }
    }
  }

  // A process that left while we had the lease left the site to us (Tests/Models/claims.pml,
  // GIVE_UP_AT_ONCE).
  private func leaveSite() {
    request = nil
    if let site = site.take() { removal.add(site) }
  }

  private func attempt() throws -> WaitingStep<ItemAccess> {
    do {
      givesWayTo = nil
      if let claim { return try attemptHolding(claim) }
      if hasLooked { try followMove() } else { try rememberItem() }
      if let claimKind = kind.claim ?? (announcesPurpose ? .sharing : nil) {
        return try attemptClaim(claimKind)
      }
      return try attemptReading()
    } catch {
      // This process was stopped so long that others took the claim away, or removed the site.
      guard try hasLostItsPlace() else { throw error }
      giveUp()
      request = nil
      return try tryAgain()
    }
  }

  private func hasLostItsPlace() throws -> Bool {
    // The item was moved after this attempt began.
    if let item, try location.newPlace(of: item) != nil { return true }
    if let claim { return try !claim.isStanding() }
    return if request != nil, let site { try !site.isAtItsPlace() } else { false }
  }

  private func tryAgain() throws -> WaitingStep<ItemAccess> {
    if ContinuousClock.now >= leaseDeadline { throw timeout(nil) }
    return .again
  }

  // MARK: Readers

  private func attemptReading() throws -> WaitingStep<ItemAccess> {
    if let place, let moment = try nextLook(place) {
      return .wait(for: terms.latch, until: moment)
    }
    let lock = try ItemLock.open(location)
    let isShared = try lock?.tryLock(.shared) ?? false
    // If this user may not open it, the owner still publishes changes in one step.
    if let site = try ItemSite.openIfPermitted(location),
      let name = try writer(at: site, hasLocked: lock != nil && !isShared)
    {
      lockedAmid = nil
      return try waitInLine(for: name, at: site)
    }
    if lock != nil, !isShared, try !isLockedByProgram() { return .spin(Self.tick) }
    lockedAmid = nil
    if let (name, directory) = try survey.lookAbove(location) {
      return try giveWay(to: name, at: directory)
    }
    // The item was replaced between opening and locking.
    if let lock, try !lock.isAt(location) { return .again }
    // Or it was moved between being looked for and being opened.
    if lock == nil, let item, try location.newPlace(of: item) != nil { return .again }
    lock?.isRead(for: terms.purpose)
    place = nil
    // Even without a lock, the descriptor shows whether a directory was replaced while it was read.
    return .done(ItemAccess(location, kind, claim: nil, lock: lock))
  }

  /// Whether an item that is locked, with no process at its site, is locked by a program without
  /// claims. Otherwise its process has left, because an item is unlocked before its claim ends
  /// (Tests/Models/claims.pml, DROP_SECOND_LOCK), and another may have it by now. Then something
  /// was made or removed between two looks, which changes the site's or directory's times.
  private func isLockedByProgram() throws -> Bool {
    let path = ItemSite.path(of: location)
    let now =
      try ifPresent(fileStatus(path))
      ?? fileStatus(location.parent.text + "/", followingLinks: true)
    lockedLooks += 1
    // In a directory that constantly changes, the looks show nothing.
    if let last = lockedAmid.take(), now.isUntouched(since: last) || lockedLooks > Self.looks {
      return true
    }
    lockedAmid = now
    return false
  }

  /// The pause between two looks: longer than the kernel's clock takes to show another time.
  private static let tick: Duration = .milliseconds(20)
  private static let looks = 50

  /// Returns a claim that a reader waits for; nil if there is none.
  ///
  /// - Parameter hasLocked: whether a process has the item locked, which may not yet have announced
  ///   that it publishes.
  private func writer(at site: ItemSite, hasLocked: Bool) throws(Errno) -> ClaimName? {
    // A stopped or dead process is ignored, because its unpublished changes are invisible.
    var ignored: Set<ClaimName> = []
    while !LeaseFault.passingClaims.isActive {
      let finding = try survey.look(at: site) { name in
        guard !ignored.contains(name) else { return false }
        return hasLocked || name.kind == .inPlace || name.kind == .publishing || isAwaited(name)
      }
      switch finding {
      case nil: return nil
      case .present(let name): return name
      case .removable(let name, _): ignored.insert(name)
      }
    }
    return nil
  }

  /// Whether a reader waits for a writer that works on a copy. It waits for those that were at work
  /// when it began, because they may have told others of their change (Tests/Models/claims.pml,
  /// READ_BEHIND). It ignores later ones, which may never end, and one whose accessor began it.
  private func isAwaited(_ name: ClaimName) -> Bool {
    name.kind == .copying && (kind.isReading || kind == .sharing)
      && name.declaration.since <= began && !LeaseFault.readingBehind.isActive
      && !terms.enclosing.contains(name.purpose)
  }

  // MARK: Writers

  private func attemptClaim(_ kind: ClaimName.Kind) throws -> WaitingStep<ItemAccess> {
    if let moment = try nextLook(takePlace()) { return .wait(for: terms.latch, until: moment) }
    do {
      let site = try siteToClaim()
      return try site.step(toLease: &request, until: leaseDeadline, self.kind.action) { lease in
        try claim(kind, at: site, under: lease)
      }
    } catch let error as Errno where error == .staleHandle {
      // The last process that left has just removed the site.
      request = nil
      return try tryAgain()
    }
  }

  private func siteToClaim() throws -> ItemSite {
    if request != nil, let site { return site }
    let kept = hasLookedForSite ? nil : KeptSites.shared.take(location)
    let site = try kept ?? ItemSite.openOrMake(location, isMissing: !hasLookedForSite)
    hasLookedForSite = true
    self.site = site
    return site
  }

  private func claim(
    _ kind: ClaimName.Kind, at site: ItemSite, under lease: Lease
  ) throws -> WaitingStep<ItemAccess> {
    do {
      if let other = try survey.look(
        at: site, under: lease, { kind.excludes($0.kind) || isAwaited($0) }),
        !LeaseFault.claimingUnseen.isActive
      {
        if other.isTaken { return .again }
        try site.showWaiting(under: lease)
        return try waitInLine(for: other.name, at: site)
      }
      let name = ClaimName(
        kind: kind, coversContents: self.kind.coversContents,
        declaration: LeaseDeclaration(term: terms.term), purpose: terms.purpose)
      claim = try Claim.make(name, at: site, under: lease)
      // The site is left with the claim.
      self.site = nil
      place = nil
      return .again
    } catch let error as WormholeError where error.code == .leaseLost {
      return .again
    } catch let error as Errno where error == .noSuchFile {
      // This process was stopped with the lease so long that others took it over and removed the
      // site.
      guard try !site.isAtItsPlace() else { throw error }
      return .again
    }
  }

  private func attemptHolding(_ claim: Claim) throws -> WaitingStep<ItemAccess> {
    if let (name, directory) = try survey.lookAbove(location) {
      // The owner of the directory waits for this access unless it gives way.
      giveUp()
      return try giveWay(to: name, at: directory)
    }
    // Only after that look: a process that finished before has by now replaced the directory, and a
    // later one has found our claim, or will (Tests/Models/contents.pml, PLACE_FIRST).
    guard try claim.site.isAtItsPlace() else {
      // No process looks for the claim there any longer, or would see anything published there.
      giveUp()
      return .again
    }
    let found = try location.status()
    if found == nil, let item, try location.newPlace(of: item) != nil {
      try followMove()
      return .again
    }
    if kind.coversContents, found?.kind == .directory,
      let obstacle = try survey.lookInside(location)
    {
      return try wait(for: obstacle.holder, obstacle.what)
    }
    guard kind.claim == .inPlace || kind == .sharing else {
      return .done(ItemAccess(location, kind, claim: claim, found: found))
    }
    // The lock of flock(1), which other programs may have.
    let mode: LockMode = kind == .sharing ? .shared : .exclusive
    if let lock = try survey.lookForReaders(of: location, found: found, mode),
      !LeaseFault.passingReaders.isActive
    {
      return try wait(for: lock.holder(), "a lock on it")
    }
    // The access is the only owner now, so the item is unlocked before the claim ends.
    let lock = survey.takeLock(of: location)
    return .done(ItemAccess(location, kind, claim: claim, lock: announcesPurpose ? nil : lock))
  }

  // MARK: Waiting

  private func giveWay(to name: ClaimName, at directory: ItemPath) throws -> WaitingStep<ItemAccess>
  {
    givesWayTo = directory
    place = nil
    return try wait(for: name.holder, "the directory \(directory.text)")
  }

  private func takePlace() -> ClaimLinePlace {
    let isReading = kind.claim == nil && !announcesPurpose
    let place = self.place ?? ClaimLinePlace(at: location, isReading: isReading, terms.latch)
    self.place = place
    return place
  }

  /// - Returns: nil if it may look now, otherwise when to ask again.
  private func nextLook(_ place: ClaimLinePlace) throws -> ContinuousClock.Instant? {
    guard let moment = place.nextLook(until: terms.deadline) else { return nil }
    if .now < terms.deadline { return moment }
    if let obstacle { throw timeout(obstacle.holder) }
    return nil
  }

  private func waitInLine(
    for name: ClaimName, at site: ItemSite
  ) throws -> WaitingStep<ItemAccess> {
    obstacle = name
    let patience = survey.patience(with: name, at: site).map {
      "; it was stopped at its terminal, and others may take it over in \($0.tenthsOfSeconds) s"
    }
    // Hundreds of waiters must not keep hundreds of descriptors of the same claim.
    if takePlace().mustWait() > 0 { survey.forgetClaims(at: site) }
    return try wait(for: name.holder, patience: patience)
  }

  private func wait(
    for holder: @autoclosure () throws -> LeaseHolder?, _ what: String = "the item",
    patience: String? = nil
  ) throws -> WaitingStep<ItemAccess> {
    try survey.wait(
      with: terms.latch, until: terms.deadline, else: timeout(holder(), what, patience))
  }

  private func timeout(
    _ holder: LeaseHolder?, _ what: String = "the item", _ patience: String? = nil
  ) -> WormholeError {
    .timedOut(kind.action, path: location.text, holder: holder, of: what, patience)
  }

  /// Begins again after granted access had to be given up; finds an item that was moved meanwhile.
  func beginAgain(givingUp access: ItemAccess) throws {
    if kind.followsMoves { item = try location.openToFollow() }
    claim = nil
    survey.forgetFindings()
    access.end(removal)
  }

  // Before the look for other processes, because one that is found may be about to move the item.
  private func rememberItem() throws {
    hasLooked = true
    guard kind.followsMoves, item == nil else { return }
    // A place that this user cannot reach is not followed.
    item = try tolerating([.accessDenied, .notDirectory], location.openToFollow()) ?? nil
  }

  private func followMove() throws {
    guard let item, let place = try location.newPlace(of: item) else { return }
    if otherPlaces.contains(place) {
      self.item = nil
      return
    }
    giveUp()
    // The old place's site: no process may use it any longer.
    leaveSite()
    location = place
    self.item = try place.openToFollow()
    survey = AccessSurvey(purpose: terms.purpose)
  }

  /// Releases everything held so far.
  func giveUp() {
    place = nil
    guard let claim = self.claim.take() else { return }
    // Findings under the claim are void, because others may now begin without it
    // (Tests/Models/contents.pml, KEEP_PASSED). The item is unlocked first.
    survey.forgetFindings()
    claim.end(removal)
  }
}
