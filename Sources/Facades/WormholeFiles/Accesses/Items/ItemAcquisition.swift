import Wormhole
import WormholeSystem

/// Acquires access to one item: tries until an attempt succeeds or the deadline has passed.
///
/// ```
/// reader                               writer                               publisher
/// flock LOCK_SH on the item            locks the lease, and makes its       flock LOCK_EX on the item
/// somebody publishes, works on it in     entry in it                          (its readers are waited for)
///   place, or was at work when this    somebody has the contents of a       one rename from its entry,
///   began? wait                          directory above? give way, wait      which fails after a takeover
/// somebody has the contents of a       covers contents, or in place: wait   entry, lease and site removed
///   directory above? give way, wait      for those who are there
/// ```
///
/// Of two accesses that exclude each other, each announces itself before it looks for the other.
final class ItemAcquisition: Waiting {
  private let kind: AccessKind
  private let terms: AccessTerms

  private var location: ItemPath
  /// The item at the first look, because it may be moved.
  private var item: SharedDescriptor?
  private var hasLooked = false
  /// When the access began, on the clock of `LeaseDeclaration.since`.
  private let beganMilliseconds = bootTimeNanoseconds() / 1_000_000
  private let began = ContinuousClock.now
  private var survey: AccessSurvey
  /// The site that this acquisition uses; it is removed if no other process uses it.
  private var site: ItemSite?
  /// Whether an earlier attempt looked for the site: then another process may use it.
  private var hasLookedForSite = false
  /// For the item's lease.
  private var request: LeaseRequest?
  /// Where the access has its other items. An item that was moved there is not followed: the access
  /// would wait for itself.
  var otherPlaces: [ItemPath] = []
  /// The entry, once it is made; the next step continues from there.
  private var entry: ItemEntry?
  /// The site, or the directory, when the item was found locked with no process at its site.
  private var lockedAmid: FileStatus?
  private var lockedLooks = 0
  /// The directory above whose contents another process keeps. The caller must also give up
  /// its other accesses in that directory, because that process waits for them.
  private(set) var givesWayTo: ItemPath?
  /// The place in the line of this process's waiters.
  private var place: LinePlace?
  private var meter = WaitMeter()

  /// - Parameter item: the item just found at the location.
  init(
    _ location: ItemPath, _ kind: AccessKind, item: SharedDescriptor? = nil,
    under terms: AccessTerms
  ) {
    self.location = location
    self.item = kind.followsMoves ? item : nil
    self.kind = kind
    self.terms = terms
    survey = AccessSurvey(purpose: terms.purpose)
  }

  // A cancelled task just drops its place.
  deinit { leaveSite() }

  func step() throws -> WaitingStep<ItemAccess> {
    let given = location.text
    return try meter.take("file", path: given) {
      do {
        try terms.check(kind.action, path: given)
        return try reporting(kind.action, path: given, attempt)
      } catch {
        giveUp()
        leaveSite()
        throw error
      }
    }
  }

  private func leaveSite() {
    request = nil
    site.take()?.leave()
  }

  private func attempt() throws -> WaitingStep<ItemAccess> {
    do {
      givesWayTo = nil
      if let entry { return try attemptHolding(entry) }
      if hasLooked { try followMove() } else { try rememberItem() }
      return try kind.entry.map(attemptEntry) ?? attemptReading()
    } catch {
      // This process was stopped so long that others took the item over, or removed the site.
      guard try hasLostItsPlace() else { throw error }
      giveUp()
      request = nil
      return try tryAgain()
    }
  }

  private func hasLostItsPlace() throws -> Bool {
    // The item was moved after this attempt began.
    if let item, try location.newPlace(of: item) != nil { return true }
    if let entry { return try !entry.isStanding() }
    return if request != nil, let site { try !site.isAtItsPlace() } else { false }
  }

  private func tryAgain() throws -> WaitingStep<ItemAccess> {
    if ContinuousClock.now >= max(terms.deadline, began + .seconds(1)) { throw timeout(nil) }
    return .again
  }

  // MARK: Readers

  private func attemptReading() throws -> WaitingStep<ItemAccess> {
    if let place, let moment = try nextLook(place) {
      return .wait(for: terms.latch, until: moment)
    }
    let lock = try ItemLock.open(location)
    if lock == nil, kind == .sharing { return try attemptEntry(.inPlace) }
    let isShared = try lock?.tryLock(.shared) ?? false
    // If this user may not open it, the owner still publishes changes in one step.
    if let site = try ItemSite.openIfPermitted(location),
      let name = try writer(at: site, hasLocked: lock != nil && !isShared)
    {
      lockedAmid = nil
      return try waitInLine(for: name, at: site)
    }
    if let lock, !isShared {
      if try !isLockedByProgram() { return .spin(Self.tick) }
      // A reader goes on, because the program may keep its lock for as long as it runs.
      if kind == .sharing { return try wait(for: lock.holder(), "a lock on it") }
    }
    lockedAmid = nil
    if let (name, directory) = try survey.lookAbove(location) {
      return try giveWay(to: name, at: directory)
    }
    // The item was replaced between opening and locking.
    if let lock, try !lock.isAt(location) { return .again }
    // Or it was moved between being looked for and being opened.
    if lock == nil, let item, try location.newPlace(of: item) != nil { return .again }
    lock?.isUsed(for: terms.purpose)
    place = nil
    // Even without a lock, the descriptor shows whether a directory was replaced while it was read.
    return .done(ItemAccess(location, kind, entry: nil, lock: lock))
  }

  /// Whether an item that is locked, with no process at its site, is locked by a program that does not
  /// coordinate. Otherwise its process has left, because an item is unlocked before its entry ends
  /// (Tests/Models/files.pml, DROP_SECOND_LOCK), and another may have it by now. Then something
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

  /// Returns a holder that a reader waits for; nil if there is none.
  ///
  /// - Parameter hasLocked: whether a process has the item locked, which may not yet have announced
  ///   that it publishes.
  private func writer(at site: ItemSite, hasLocked: Bool) throws(Errno) -> EntryName? {
    guard !LeaseFault.passingHolders.isActive else { return nil }
    let finding = try survey.look(at: site) { name in
      hasLocked || name.kind == .inPlace || name.kind == .publishing || isAwaited(name)
    }
    // A stopped process is passed by, because its unpublished changes are invisible.
    return if case .present(let name) = finding { name } else { nil }
  }

  /// Whether a reader waits for a writer that works on a copy. It waits for those that were at work
  /// when it began, because they may have told others of their change (Tests/Models/files.pml,
  /// READ_BEHIND). It ignores later ones, which may never end, and one whose accessor began it.
  private func isAwaited(_ name: EntryName) -> Bool {
    name.kind == .copying && name.declaration.since <= beganMilliseconds
      && !LeaseFault.readingBehind.isActive
      && LeaseShare.purpose(of: name).map { !terms.enclosing.contains($0) } ?? true
  }

  // MARK: Writers

  private func attemptEntry(_ kind: EntryName.Kind) throws -> WaitingStep<ItemAccess> {
    if let moment = try nextLook(takePlace()) { return .wait(for: terms.latch, until: moment) }
    do {
      let site = try siteToUse()
      // Accesses of one purpose in this process have one lease.
      if let share = LeaseShare.find(at: site, for: terms.purpose) {
        return try enter(kind, at: site, share)
      }
      let step = try stepToLease(at: site).then {
        try enter(kind, at: site, LeaseShare($0, at: site, for: terms.purpose))
      }
      // Hundreds of waiters must not keep hundreds of descriptors of the same lease.
      if case .wait = step, takePlace().mustWait() > 0 {
        request = nil
        return .wait(for: terms.latch, until: min(terms.deadline, .now + AccessTerms.interval))
      }
      return step
    } catch let error as Errno where error == .staleHandle {
      // The last process that left has just removed the site.
      request = nil
      return try tryAgain()
    }
  }

  private func siteToUse() throws -> ItemSite {
    if request != nil, let site { return site }
    let kept = hasLookedForSite ? nil : KeptSites.shared.take(location)
    let site = try kept ?? ItemSite.openOrMake(location, isMissing: !hasLookedForSite)
    hasLookedForSite = true
    self.site = site
    return site
  }

  private func stepToLease(at site: ItemSite) throws -> WaitingStep<Lease> {
    if request == nil, let lease = try site.takeKeptLease() { return .done(lease) }
    let request =
      self.request
      ?? LeaseRequest(
        site: site.lease, term: terms.term, deadline: terms.deadline, latch: terms.latch)
    self.request = request
    do {
      return try request.step()
    } catch let error as WormholeError where error.code == .timedOut {
      let patience = site.home.patience.map {
        "; it was stopped at its terminal, and others may take it over in \($0.tenthsOfSeconds) s"
      }
      throw timeout(error.holder, patience: patience)
    }
  }

  private func enter(
    _ kind: EntryName.Kind, at site: ItemSite, _ share: LeaseShare
  ) throws -> WaitingStep<ItemAccess> {
    request = nil
    let name = EntryName(
      kind: kind, coversContents: self.kind.coversContents,
      declaration: LeaseDeclaration(term: terms.term))
    entry = try ItemEntry.make(name, at: site, in: share)
    guard entry != nil else {
      // This process was stopped with the lease so long that others took it over. One that was killed
      // meanwhile may have left the lease.
      if try share.lease.held.descriptor.status().links == 0 { share.forget() }
      return .again
    }
    // The site is left with the entry.
    self.site = nil
    place = nil
    return .again
  }

  private func attemptHolding(_ entry: ItemEntry) throws -> WaitingStep<ItemAccess> {
    if let (holder, directory) = try survey.lookAbove(location) {
      // That process waits for this access unless it gives way.
      giveUp()
      return try giveWay(to: holder, at: directory)
    }
    // Only after that look: a process that finished before has by now replaced the directory, and a
    // later one has found our entry, or will (Tests/Models/contents.pml, PLACE_FIRST).
    guard try entry.site.isAtItsPlace() else {
      // No process looks for the entry there any longer, or would see anything published there.
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
    guard entry.name.kind == .inPlace else {
      return try granted(ItemAccess(location, kind, entry: entry, found: found), by: entry)
    }
    // The lock of flock(1), which other programs may have.
    if let lock = try survey.lookForReaders(of: location, found: found),
      !LeaseFault.passingReaders.isActive
    {
      return try wait(for: lock.holder(), "a lock on it")
    }
    // The access is the only owner now, so the item is unlocked before the entry ends.
    let lock = survey.takeLock(of: location)
    lock?.isUsed(for: terms.purpose)
    return try granted(
      ItemAccess(location, kind, entry: entry, found: found, lock: lock), by: entry)
  }

  // Others took it over while this process was stopped, or waited longer than its term: nothing was
  // begun, so it begins again.
  private func granted(
    _ access: ItemAccess, by entry: ItemEntry
  ) throws -> WaitingStep<ItemAccess> {
    guard try entry.isLost() else { return .done(access) }
    _ = access.takeLock()
    giveUp()
    return try tryAgain()
  }

  // MARK: Waiting

  private func giveWay(
    to holder: EntryName, at directory: ItemPath
  ) throws -> WaitingStep<ItemAccess> {
    givesWayTo = directory
    place = nil
    return try wait(for: holder.holder, "the directory \(directory.text)")
  }

  private func takePlace() -> LinePlace {
    let place = self.place ?? LinePlace(at: location, isReading: kind.entry == nil, terms.latch)
    self.place = place
    return place
  }

  /// - Returns: nil if it may look now, or for the last time; otherwise when to ask again.
  private func nextLook(_ place: LinePlace) throws -> ContinuousClock.Instant? {
    let moment = place.nextLook(until: terms.deadline)
    return .now < terms.deadline ? moment : nil
  }

  private func waitInLine(
    for name: EntryName, at site: ItemSite
  ) throws -> WaitingStep<ItemAccess> {
    // As for writers.
    if takePlace().mustWait() > 0 { survey.forgetHolder(at: site) }
    return try wait(for: name.holder)
  }

  private func wait(
    for holder: @autoclosure () throws -> LeaseHolder?, _ what: String = "the item"
  ) throws -> WaitingStep<ItemAccess> {
    try survey.wait(with: terms.latch, until: terms.deadline, else: timeout(holder(), what))
  }

  private func timeout(
    _ holder: LeaseHolder?, _ what: String = "the item", patience: String? = nil
  ) -> WormholeError {
    .timedOut(kind.action, path: location.text, holder: holder, of: what, patience)
  }

  /// Begins again after granted access had to be given up; finds an item that was moved meanwhile.
  func beginAgain(givingUp access: ItemAccess) throws {
    // Another process may have moved it meanwhile.
    if kind.followsMoves { item = try location.openToFollow() ?? item }
    entry = nil
    survey.forgetFindings()
    access.end()
  }

  // Before the look for other processes, because one that is found may be about to move the item.
  private func rememberItem() throws {
    hasLooked = true
    guard kind.followsMoves, item == nil else { return }
    item = try location.openToFollow()
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
    guard let entry = self.entry.take() else { return }
    // Findings under the lease are void, because others may now begin without it
    // (Tests/Models/contents.pml, KEEP_PASSED). The item is unlocked first.
    survey.forgetFindings()
    entry.end()
  }
}
