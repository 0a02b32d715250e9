import AppGroup
import Synchronization
import SystemCalls

/// Access to an item that has been granted: what is held for it.
final class ItemAccess: Sendable {
  let location: ItemLocation
  let demand: ItemDemand
  let claim: Claim?
  /// Held on to: readers share it; whoever works in place keeps them out with it.
  private let lock: Mutex<ItemLock?>

  init(_ location: ItemLocation, _ demand: ItemDemand, reading lock: ItemLock?) {
    self.location = location
    self.demand = demand
    claim = nil
    self.lock = Mutex(lock)
  }

  init(_ location: ItemLocation, _ demand: ItemDemand, claim: Claim, lock: ItemLock? = nil) {
    self.location = location
    self.demand = demand
    self.claim = claim
    self.lock = Mutex(lock)
  }

  /// Ends the access; nothing more is published.
  func end() {
    do {
      try endReading()
    } catch {
      // Whoever reads it again learns what is there now; nobody waits to be told here.
      claim?.end()
      return
    }
    claim?.end()
  }

  /// Why this is no access any more; nil as long as nobody has taken it away.
  func loss() throws -> FileCoordinationError? {
    guard let claim else { return nil }
    let isStanding = try reporting(demand.action, path: location.path) { try claim.isStanding() }
    return isStanding ? nil : claim.overtaken()
  }

  /// Ends the access of a reader.
  ///
  /// - Throws: `overtaken` for a directory that was replaced meanwhile, for then what was read in it
  ///   may be of both. A file is whole however often it is replaced.
  func endReading() throws {
    guard let lock = lock.withLock({ $0.take() }), claim == nil, lock.status.kind == .directory
    else { return }
    guard try !lock.isAt(location) else { return }
    removeWhatWasRead(lock)
    throw FileCoordinationError(
      .overtaken, demand.action, path: location.path,
      reason:
        "the directory was replaced while it was read, because this process was stopped, or by "
        + "a program that does not coordinate",
      remedy: "read it again")
  }

  // Whoever replaced the directory left the old one to its reader, which had it locked.
  private func removeWhatWasRead(_ lock: ItemLock) {
    do {
      try lock.unlock()
      try ItemSite.open(location)?.removeIfUnused()
    } catch {
      // What is left behind is swept by whoever comes next.
      Diagnostics.report(error)
    }
  }
}
