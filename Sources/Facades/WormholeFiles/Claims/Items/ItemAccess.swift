import Synchronization
import Wormhole
package import WormholeSystem

/// The use of one item by a coordinated access. Presenters of other processes read it by name.
package enum AccessKind: String, Sendable, Hashable, CaseIterable {
  /// Reads the item while no access publishes it; presenters save their changes first.
  case reading
  /// The same, but presenters need not save.
  case readingWithoutChanges
  /// Changes a private copy, which is published at the end.
  case content
  /// The same, and presenters save their changes first.
  case merging
  /// Makes the item again in a private place that is empty at first.
  case replacing
  /// Removes the item; its private copy consists of second names.
  case deleting
  /// Renames the item where it is.
  case moving
  /// Changes the attributes of the item where it is.
  case metadata
  /// Keeps the item from all other processes while a program works on it in place.
  case locking
  /// Keeps the item from being changed, whether it exists or not.
  case sharing

  package var isReading: Bool { self == .reading || self == .readingWithoutChanges }

  /// Whether an access of any other kind to the same item is enough for this one, too.
  package var isWeakerThanWriting: Bool { isReading || self == .sharing }

  /// What is held for it besides a lock on the item; nil for readers, which need no more than that.
  package var claim: ClaimName.Kind? {
    switch self {
    case .reading, .readingWithoutChanges: nil
    case .content, .merging, .replacing, .deleting: .copying
    case .moving, .metadata, .locking: .inPlace
    case .sharing: .sharing
    }
  }

  /// Whether its accessor gets a private copy.
  package var isOnCopy: Bool { claim == .copying }

  /// How the private copy is made; nil when it is empty at first, or there is none.
  package var copyMode: TreeCopy.Mode? {
    switch self {
    case .content, .merging: .copy
    case .deleting: .link
    default: nil
    }
  }

  /// Whether the private copy has content of its own.
  package var copiesContent: Bool { copyMode == .copy }

  /// Whether accesses to what is in the directory are waited for, and kept out.
  package var coversContents: Bool { [.deleting, .moving, .replacing].contains(self) }

  /// Whether a symbolic link means what it points to.
  package var followsLink: Bool { self != .deleting && self != .moving }

  /// Whether an item that is moved while it is waited for is looked for at its new place.
  var followsMoves: Bool { self != .replacing }

  /// A verb with its object, for sentences.
  package var action: String {
    switch self {
    case .reading, .readingWithoutChanges: "read the item"
    case .content, .merging: "change the item"
    case .replacing: "replace the item"
    case .deleting: "delete the item"
    case .moving: "move the item"
    case .metadata: "change the item's attributes"
    case .locking: "lock the item"
    case .sharing: "share the item"
    }
  }
}

/// How long an access waits, unless it is cancelled before.
package final class Patience: Sendable {
  package let deadline: ContinuousClock.Instant
  private let isCancelled = Atomic(false)
  private let latches = Mutex<[WakeLatch]>([])

  package init(deadline: ContinuousClock.Instant) {
    self.deadline = deadline
  }

  /// How often a waiter looks again without an event: a process may be stopped, a call cancelled.
  package static let interval: Duration = .milliseconds(50)

  package var isOver: Bool { ContinuousClock.now >= deadline }

  /// Throws when the access was cancelled.
  package func check(_ action: String, path: String) throws {
    guard isCancelled.load(ordering: .acquiring) else { return }
    throw FileCoordinationError(
      .cancelled, action, path: path, reason: "the coordinator was told to cancel it")
  }

  /// When to look again at the latest, for a waiter that an event wakes before.
  package func nextLook(after wait: Duration = interval) -> ContinuousClock.Instant {
    min(deadline, .now + wait)
  }

  /// Raises a latch when the access is cancelled.
  func wakes(_ latch: WakeLatch) { latches.withLock { $0.append(latch) } }

  /// Gives up the access.
  package func cancel() {
    isCancelled.store(true, ordering: .releasing)
    for latch in latches.withLock({ $0 }) { latch.raise() }
  }
}

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

  /// Ends the access; nothing more is published.
  ///
  /// - Parameter removal: gets the site that is left; by default this call blocks until it is removed.
  package func end(_ removal: SiteRemoval = SiteRemoval()) {
    // The caller does not wait for an error here, and the next reading shows the present state.
    try? endReading(removal)
    claim?.end(removal)
  }

  /// The reason why the access was lost; nil as long as it was not taken over.
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
  /// The cause of an error: an access that was overtaken fails with an error of its own, because it finds
  /// no place for its copy, or no copy.
  ///
  /// - Parameter isAny: whether an error of any kind can be due to that.
  package func lossBehind(_ error: any Error, isAny: Bool = false) -> any Error {
    guard isAny || (error as? FileCoordinationError)?.code == .inputOutput else { return error }
    do {
      for access in self {
        if let loss = try access.loss() { return loss }
      }
    } catch let unknown {
      // Without an answer, the error stays as it is.
      Diagnostics.report(unknown)
    }
    return error
  }
}
