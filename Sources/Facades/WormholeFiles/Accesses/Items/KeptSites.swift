import Synchronization
import Wormhole
import WormholeSystem

/// The sites of items that this process changes again and again, kept for a moment after an access:
/// making and removing their directories takes longer than the rest of it.
///
/// ```
/// access                                             the next one
/// …publishes                                         flock, fstat of held: no holder since
/// gives its empty entry a name that declares          renames it to its own entry
///   nobody, fstat, and unlocks held
/// ```
///
/// Others may remove such a site, as they remove one that a killed process left. A process that
/// waits for the item marks the lease, which is then not kept, so that the waiting process comes first
/// (Tests/Models/files.pml, WARM).
final class KeptSites: Sendable {
  static let shared = KeptSites()

  private struct Item {
    let location: ItemPath
    var changed: ContinuousClock.Instant
    var changes = 0
    var hasOthers = false
    var site: ItemSite?
  }

  private struct State {
    /// As `ProcessIdentity.forkID`.
    let fork = ProcessIdentity.forkID
    /// The most recently changed comes last.
    var items: [Item] = []
    var hasThread = false

    var keptSites: Int { items.count { $0.site != nil } }

    func index(of location: ItemPath) -> Int? { items.lastIndex { $0.location == location } }
  }

  private let mutex = Mutex(State())
  private let removing = Mutex(())
  /// The process that removes the sites when it exits; not its forked child, in which no thread
  /// would release the locks.
  private let owner = Atomic(Int32(0))

  /// How long a site is kept at most, and the longest time between consecutive changes.
  private static let time: Duration = .milliseconds(100)
  /// The number of consecutive changes after which a site is kept: most programs never reach it.
  private static let changes = 10
  /// The limit of items whose changes are counted.
  private static let itemLimit = 64
  /// The limit of sites that are kept; each has three descriptors.
  private static let limit = 16

  /// A forked child begins with nothing: the sites are its parent's, and it lacks the thread.
  private func withState<Result>(_ body: (inout State) -> Result) -> Result {
    mutex.withLock { state in
      if state.fork != ProcessIdentity.forkID { state = State() }
      return body(&state)
    }
  }

  /// Returns the site of an item, if it is kept, for one access.
  func take(_ location: ItemPath) -> ItemSite? {
    withState { state in
      // Most programs keep none.
      guard state.hasThread, let index = state.index(of: location) else { return nil }
      return state.items[index].site.take()
    }
  }

  /// Counts a change, and returns whether the site should be kept after it.
  func countChange(of location: ItemPath) -> Bool {
    let now = ContinuousClock.now
    return withState { state in
      var item = Item(location: location, changed: now)
      if let index = state.index(of: location) { item = state.items.remove(at: index) }
      if item.changed.duration(to: now) >= Self.time { item.changes = 0 }
      item.changed = now
      item.changes += 1
      state.items.append(item)
      if state.items.count > Self.itemLimit,
        let index = state.items.firstIndex(where: { $0.site == nil })
      {
        state.items.remove(at: index)
      }
      // A site already kept belongs to a directory with another name.
      return item.changes >= Self.changes && !item.hasOthers && item.site == nil
        && state.keptSites < Self.limit
    }
  }

  /// Another process also uses the site.
  func meetOther(_ location: ItemPath) {
    withState { state in
      if let index = state.index(of: location) { state.items[index].hasOthers = true }
    }
  }

  /// Keeps a site whose item was counted.
  ///
  /// - Returns: false if the item was forgotten, another thread's site is kept, too many others
  ///   are, or no thread can be started to remove it.
  func keep(_ site: ItemSite) -> Bool {
    withState { state in
      // Since the item was counted, other threads may have kept theirs.
      guard let index = state.index(of: site.location), state.items[index].site == nil,
        state.keptSites < Self.limit
      else { return false }
      if !state.hasThread {
        do {
          try startThread(name: "wormhole.sites") { self.removeAgain() }
        } catch {
          // The next change tries again.
          return false
        }
        state.hasThread = true
      }
      let process = ProcessIdentity.current.processID
      if owner.exchange(process, ordering: .relaxed) != process {
        Program.atExit { KeptSites.shared.removeAtExit() }
      }
      state.items[index].site = site
      return true
    }
  }

  private func removeAgain() {
    repeat {
      pauseThread(Self.time)
      let now = ContinuousClock.now
      remove { item in
        item.hasOthers = false
        return item.changed.duration(to: now) < Self.time
      }
    } while withState { state in
      state.hasThread = !state.items.isEmpty
      return state.hasThread
    }
  }

  private func removeAtExit() {
    if owner.load(ordering: .relaxed) == Program.processID { removeAll() }
  }

  /// Forgets everything, and removes the sites; returns when all are removed.
  func removeAll() { remove { _ in false } }

  /// Removes the sites.
  ///
  /// - Parameter isCounted: Whether an item's changes are still counted.
  private func remove(_ isCounted: (inout Item) -> Bool) {
    removing.withLock { _ in
      var sites: [ItemSite] = []
      withState { state in
        state.items = state.items.compactMap { item in
          var item = item
          if let site = item.site.take() { sites.append(site) }
          return isCounted(&item) ? item : nil
        }
      }
      for site in sites { site.removeKept() }
    }
  }
}

/// What this process keeps of a site between two accesses: the lease, unlocked, and in it the empty
/// directory of the last entry.
final class KeptSite: Sendable {
  private struct State {
    var isWarm = false
    var spare: SharedDescriptor?
  }

  private let lease = KeptLease()
  private let state = Mutex(State())

  /// Takes the lease if no one has held it since it was left.
  ///
  /// - Returns: also nil if it was not left open.
  func takeLease(of location: ItemPath) throws -> Lease? {
    guard state.withLock({ exchange(&$0.isWarm, with: false) }) else { return nil }
    if let lease = try lease.take(term: SharedContainer.standardTerm) { return lease }
    KeptSites.shared.meetOther(location)
    // The spare was lost with the lease.
    close()
    return nil
  }

  /// Leaves a lease open when it ends.
  func leave(_ lease: Lease, spare: SharedDescriptor) {
    lease.keepOpen(as: self.lease)
    state.withLock { $0 = State(isWarm: true, spare: spare) }
  }

  func takeSpare() -> SharedDescriptor? { state.withLock { $0.spare.take() } }

  /// Closes the lease: what is in it is no longer known.
  func close() {
    state.withLock { $0 = State() }
    lease.close()
  }
}
