import Synchronization
import Wormhole
import WormholeSystem

/// Access to an item that has been granted.
package final class ItemAccess: Sendable {
  package let location: ItemPath
  package let kind: AccessKind
  package let claim: Claim?
  /// Readers share it; an access in place keeps them out with it.
  private let lock: Mutex<ItemLock?>

  init(_ location: ItemPath, _ kind: AccessKind, claim: Claim?, lock: ItemLock? = nil) {
    self.location = location
    self.kind = kind
    self.claim = claim
    self.lock = Mutex(lock)
  }

  /// Ends the access; nothing is published after that.
  ///
  /// - Parameter removal: gets the abandoned site; by default this call blocks until it is removed.
  package func end(_ removal: SiteRemoval = SiteRemoval()) {
    // The caller does not wait for an error here, and the next reading shows the current state.
    try? endReading(removal)
    claim?.end(removal)
  }

  /// The reason why the access was lost; nil if it was not taken over.
  package func loss() throws -> FileCoordinationError? {
    guard let claim else { return nil }
    let isStanding = try reporting(kind.action, path: location.text) { try claim.isStanding() }
    return isStanding ? nil : claim.overtaken()
  }

  /// Ends an access to the item itself.
  ///
  /// - Throws: `overtaken` when another process had it meanwhile.
  package func endInPlace(_ removal: SiteRemoval) throws {
    // No process could take it over before its program had ended, and a later loss does not matter.
    let isSafe = claim?.isHandedOn ?? true
    let loss = isSafe ? nil : try loss()
    end(removal)
    if let loss, kind.claim == .inPlace { throw loss }
  }

  /// Ends the access of a reader.
  ///
  /// - Throws: `overtaken` for a directory that was replaced meanwhile, because the reader may have
  ///   seen parts of both. A file is whole however often it is replaced.
  package func endReading(_ removal: SiteRemoval) throws {
    guard let lock = lock.withLock({ $0.take() }), claim == nil, lock.status.kind == .directory
    else { return }
    guard try !lock.isAt(location) else { return }
    leaveWhatWasRead(lock, removal)
    throw FileCoordinationError(
      .overtaken, kind.action, path: location.text,
      reason:
        "the directory was replaced while it was read, because this process was stopped, or by "
        + "a program that does not coordinate",
      remedy: "read it again")
  }

  // The replaced directory was left to its reader, which had it locked.
  private func leaveWhatWasRead(_ lock: ItemLock, _ removal: SiteRemoval) {
    do {
      try lock.unlock()
      if let site = try ItemSite.open(location) { removal.add(site) }
    } catch {
      // The next process removes the leftovers.
      Diagnostics.report(error)
    }
  }
}

extension [ItemAccess] {
  /// The reason why one of the accesses was lost.
  func loss() throws -> FileCoordinationError? {
    for access in self {
      if let loss = try access.loss() { return loss }
    }
    return nil
  }

  /// The cause of an error: an accessor whose access was taken over fails with an error of its own,
  /// because its copy is gone.
  ///
  /// - Parameter isAny: whether an error of any kind can have that cause.
  package func lossBehind(_ error: any Error, isAny: Bool = false) -> any Error {
    guard isAny || (error as? FileCoordinationError)?.code == .inputOutput else { return error }
    do {
      return try loss() ?? error
    } catch let unknown {
      // Without an answer, the error is unchanged.
      Diagnostics.report(unknown)
      return error
    }
  }
}
