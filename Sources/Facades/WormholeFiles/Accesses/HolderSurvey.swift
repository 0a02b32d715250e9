import Wormhole
import WormholeSystem
import WormholeToolkit

/// The holders of one item's lease, as one access knows them that waits for them, but does not want
/// the lease.
struct HolderSurvey {
  enum Finding {
    case present(EntryName)
    /// May be taken over.
    case overdue(EntryName)
  }

  private var held: HeldDirectory?
  private var watch: Watch?
  private var observed = Observed()

  /// Looks for a holder.
  ///
  /// An entry counts only while the lease is locked: otherwise its process is dead.
  ///
  /// - Parameter concerns: whether a holder is in the way.
  /// - Returns: nil if there is none.
  mutating func look(
    at site: ItemSite, _ concerns: (EntryName) -> Bool
  ) throws(Errno) -> Finding? {
    for _ in 0..<renameRaceLimit {
      guard let held = try held(at: site) else { return nil }
      guard let entries = try ifPresent(held.descriptor.entries()) else {
        // Removed since it was opened.
        self = HolderSurvey()
        continue
      }
      guard let name = entries.lazy.compactMap({ EntryName($0.name) }).first(where: concerns)
      else { return nil }
      if try held.descriptor.tryLock(.shared) {
        // Otherwise a child that is being started would keep it locked for a moment longer.
        try held.descriptor.unlock()
        return nil
      }
      guard let overdue = try ifPresent(observed.overdue(held, of: site.home, now: .now)) else {
        continue
      }
      guard let overdue else { return .present(name) }
      // It may continue and leave at any moment.
      guard let isLeft = try ifPresent(site.home.isLeft(held, to: overdue.declaration)) else {
        continue
      }
      return isLeft ? .present(name) : .overdue(name)
    }
    throw .staleHandle
  }

  /// Takes the lease over from the holder that the last look found overdue.
  ///
  /// - Returns: false if it may not be taken over yet.
  mutating func takeOver(at site: ItemSite) throws(Errno) -> Bool {
    guard let held, let overdue = try ifPresent(observed.overdue(held, of: site.home, now: .now))
    else { return true }
    // A lease that is gone needs no takeover.
    guard let overdue,
      try ifPresent(site.home.mayTakeOver(held, from: overdue.declaration)) ?? true
    else { return false }
    _ = try ifPresent(site.lease.takeOver(held, from: overdue.declaration))
    return true
  }

  private mutating func held(at site: ItemSite) throws(Errno) -> HeldDirectory? {
    if let held { return held }
    // One of another user, who may use this user's site only as the administrator, is not looked at.
    let found = try tolerating(
      [.noSuchFile, .accessDenied], HeldDirectory(site.open(LeaseLayout.passing.held)))
    held = found
    return found
  }

  /// Watches for the end of the holders; see `AccessSurvey.watch`.
  mutating func watch(_ latch: WakeLatch) -> Bool {
    guard watch == nil, let held else { return true }
    watch = ChangeMonitor.shared.watchOpen(
      held.descriptor, [.closedWithoutWriting, .deleted, .movedFrom, .selfMoved, .selfDeleted]
    ) { _ in latch.raise() }
    return false
  }
}
