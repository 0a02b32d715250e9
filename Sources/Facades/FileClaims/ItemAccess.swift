import AppGroup
import Synchronization
import SystemCalls

/// Access to an item that has been granted.
package final class ItemAccess: Sendable {
  package let location: ItemLocation
  package let kind: AccessKind
  package let claim: Claim?
  /// Readers share it; an access in place keeps them out with it.
  private let lock: Mutex<ItemLock?>

  init(_ location: ItemLocation, _ kind: AccessKind, claim: Claim?, lock: ItemLock? = nil) {
    self.location = location
    self.kind = kind
    self.claim = claim
    self.lock = Mutex(lock)
  }

  /// Ends the access; nothing more is published.
  package func end() {
    do {
      try endReading()
    } catch {
      // The caller does not wait for an error here, and the next reading shows the present state.
      claim?.end()
      return
    }
    claim?.end()
  }

  /// The reason why the access was lost; nil as long as it was not taken over.
  package func loss() throws -> FileCoordinationError? {
    guard let claim else { return nil }
    let isStanding = try reporting(kind.action, path: location.path) { try claim.isStanding() }
    return isStanding ? nil : claim.overtaken()
  }

  /// Ends the access of a reader.
  ///
  /// - Throws: `overtaken` for a directory that was replaced meanwhile, because the reader may have
  ///   seen parts of both. A file is whole however often it is replaced.
  package func endReading() throws {
    guard let lock = lock.withLock({ $0.take() }), claim == nil, lock.status.kind == .directory
    else { return }
    guard try !lock.isAt(location) else { return }
    removeWhatWasRead(lock)
    throw FileCoordinationError(
      .overtaken, kind.action, path: location.path,
      reason:
        "the directory was replaced while it was read, because this process was stopped, or by "
        + "a program that does not coordinate",
      remedy: "read it again")
  }

  // The replaced directory was left to its reader, which had it locked.
  private func removeWhatWasRead(_ lock: ItemLock) {
    do {
      try lock.unlock()
      try ItemSite.open(location)?.removeIfUnused()
    } catch {
      // The next process removes the leftovers.
      Diagnostics.report(error)
    }
  }
}
