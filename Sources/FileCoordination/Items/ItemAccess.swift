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
    lock.withLock { $0 = nil }
    claim?.end()
  }

  /// Ends the access of a reader.
  ///
  /// - Throws: `overtaken` for a directory that was replaced meanwhile, for then what was read in it
  ///   may be of both. A file is whole however often it is replaced.
  func endReading() throws {
    guard let lock = lock.withLock({ $0.take() }), lock.status.kind == .directory else { return }
    guard try !lock.isAt(location) else { return }
    throw FileCoordinationError(
      .overtaken, demand.action, path: location.path,
      reason: "the directory was replaced while it was read, because this process was stopped, or by "
        + "a program that does not coordinate",
      remedy: "read it again")
  }
}
