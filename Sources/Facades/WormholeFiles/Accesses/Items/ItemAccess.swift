import Synchronization
package import Wormhole
import WormholeSystem
package import WormholeToolkit

/// How a coordinated access uses one item. Other processes' presenters read it by name.
package enum AccessKind: String, Sendable, Hashable, CaseIterable {
  /// Reads the item while no access publishes it; presenters save their changes first.
  case reading
  /// Reads the item, but presenters need not save.
  case readingWithoutChanges
  /// Changes a private copy, which is published at the end.
  case content
  /// Changes a private copy, and presenters save their changes first.
  case merging
  /// Remakes the item in a private directory that is initially empty.
  case replacing
  /// Removes the item; its private copy consists of hard links.
  case deleting
  /// Renames the item in place.
  case moving
  /// Takes in an item that the same access moves. In place, because an item's only copy must not
  /// lie in an entry, which is removed with all its contents if its owner ends.
  case receiving
  /// Changes the attributes of the item in place.
  case metadata
  /// Keeps the item from all other processes while it is changed in place, by the accessor or by a
  /// program.
  case locking
  /// Keeps the item from being changed, as a reader does, for a program. A missing item, which cannot
  /// be shared, is kept from all others.
  case sharing

  package var isReading: Bool { self == .reading || self == .readingWithoutChanges }

  /// The entry that it needs in the item's lease; nil for readers, which only lock the item.
  package var entry: EntryName.Kind? { traits.entry }

  /// Whether its accessor gets a private copy.
  package var isOnCopy: Bool { entry == .copying }

  /// How the private copy is made; nil if it is initially empty, or there is none.
  package var copyMode: TreeCopy.Mode? { traits.copyMode }

  /// A verb with its object, for sentences.
  package var action: String { traits.action }

  private var traits: (entry: EntryName.Kind?, copyMode: TreeCopy.Mode?, action: String) {
    switch self {
    case .reading, .readingWithoutChanges: (nil, nil, "read the item")
    case .content, .merging: (.copying, .copy, "change the item")
    case .replacing: (.copying, nil, "replace the item")
    case .deleting: (.copying, .link, "delete the item")
    case .moving: (.inPlace, nil, "move the item")
    case .receiving: (.inPlace, nil, "replace the item")
    case .metadata: (.inPlace, nil, "change the item's attributes")
    case .locking: (.inPlace, nil, "lock the item")
    case .sharing: (nil, nil, "share the item")
    }
  }

  /// Whether it waits for accesses to the contents of the directory, and keeps them out.
  package var coversContents: Bool { [.deleting, .moving, .replacing, .receiving].contains(self) }

  /// Whether a symbolic link stands for its target.
  package var followsLink: Bool { self != .deleting && self != .moving }

  /// Whether it follows an item that is moved during the wait to its new place.
  var followsMoves: Bool { self != .replacing && self != .receiving }
}

/// The terms that all steps of one access share: its purpose, how long it waits, and how it ends.
package final class AccessTerms: Sendable {
  /// Accesses of the same purpose in this process do not exclude each other.
  let purpose: String
  /// The purposes of the accesses from whose accessors it was begun, which do not end before it.
  let enclosing: Set<String>
  /// How long the accessor may take.
  let term: Duration
  let deadline: ContinuousClock.Instant
  let durability: Durability
  /// Wakes the step that waits; only one waits at a time.
  let latch = WakeLatch()
  private let isCancelled = Atomic(false)
  private let companions: Atomic<Bool>
  /// Into or out of private copies: presenters are notified when the copies are published.
  let moves = Mutex<[(from: String, to: String)]>([])

  init(
    purpose: String, enclosing: Set<String> = [], hasCompanions: Bool = false, term: Duration,
    until deadline: ContinuousClock.Instant, durability: Durability = .standard
  ) {
    self.purpose = purpose
    self.enclosing = enclosing
    self.term = term
    self.deadline = deadline
    self.durability = durability
    companions = Atomic(hasCompanions)
  }

  /// How often a waiter looks again without an event: a process may be stopped, a call cancelled.
  static let interval: Duration = .milliseconds(50)

  /// Throws if the access was cancelled.
  func check(_ action: String, path: String) throws {
    guard isCancelled.load(ordering: .acquiring) else { return }
    throw WormholeError(
      .cancelled, action, path: path, reason: "the coordinator was asked to cancel it")
  }

  /// The check for long work at an item. Copying waits for no other access, so no deadline ends it.
  func check(_ access: ItemAccess) -> () throws -> Void {
    { try self.check(access.kind.action, path: access.location.text) }
  }

  func cancel() {
    isCancelled.store(true, ordering: .releasing)
    latch.raise()
  }

  /// Whether there may be another access of the same purpose at the same time. Such accesses do not
  /// wait for each other, so each finds out at publication whether the item is still the one that
  /// it copied.
  var hasCompanions: Bool { companions.load(ordering: .acquiring) }

  /// The same coordinator has begun another access.
  func meetCompanion() { companions.store(true, ordering: .releasing) }
}

/// Access to an item that has been granted.
package final class ItemAccess: Sendable {
  package let location: ItemPath
  package let kind: AccessKind
  package let entry: ItemEntry?
  /// The item's status when an access to a copy was granted; nil if there was none.
  let found: FileStatus?
  /// Readers share it; an access in place keeps them out with it.
  private let lock: Mutex<ItemLock?>

  init(
    _ location: ItemPath, _ kind: AccessKind, entry: ItemEntry?, found: FileStatus? = nil,
    lock: ItemLock? = nil
  ) {
    self.found = found
    self.location = location
    self.kind = kind
    self.entry = entry
    self.lock = Mutex(lock)
  }

  /// Ends the access; nothing is published after that. Blocks, as `ItemEntry.end`.
  package func end() {
    // The caller does not wait for an error here, and the next reading shows the current state.
    try? endReading()
    // Before others may have the lease.
    _ = takeLock()
    entry?.end()
  }

  /// What a program inherits that works on the item itself: the lock on it, or its lease.
  package var inheritance: (descriptor: Int32, file: FileStatus)? {
    get throws(Errno) {
      if let entry { return try entry.inheritance }
      return lock.withLock { $0.map { ($0.inheritance, $0.status) } }
    }
  }

  /// Keeps the copied item open, so that the publication locks it without opening it again.
  func keep(_ opened: ItemLock) { lock.withLock { $0 = opened } }

  func takeLock() -> ItemLock? { lock.withLock { $0.take() } }

  /// The reason for the loss of the access; nil if it was not taken over.
  ///
  /// - Throws: `WormholeError` if that is unknown.
  /// - Complexity: two system calls.
  package func loss() throws -> WormholeError? {
    guard let entry else { return nil }
    let isStanding = try reporting(kind.action, path: location.text) { try entry.isStanding() }
    return isStanding ? nil : entry.overtaken()
  }

  /// Like `loss()`, for when the program that inherited the access was killed: the process that
  /// kills it takes the access over a moment later.
  package func lossOfKilled() throws -> WormholeError? {
    if let loss = try loss() { return loss }
    guard let entry, entry.announced != nil else { return nil }
    return entry.overtaken()
  }

  /// A sign of life for processes that do not see this one: they take over an access that has given
  /// none for an hour.
  ///
  /// - Throws: `WormholeError` if the access was taken over, or if that is unknown.
  /// - Complexity: one rename.
  package func renew() throws {
    try reporting(kind.action, path: location.text) { try entry?.renew() }
  }

  /// Ends an access to the item itself.
  ///
  /// - Throws: `overtaken` if another process had it meanwhile.
  package func endInPlace() throws {
    // No process could take it over before its program had ended, and a later loss does not matter.
    let isSafe = entry?.isHandedOn ?? true
    let loss = isSafe ? nil : try loss()
    end()
    if let loss { throw loss }
  }

  /// Ends a reader's access.
  ///
  /// - Throws: `overtaken` for a directory that was replaced meanwhile, because the reader may have
  ///   seen parts of both. A file is whole however often it is replaced.
  package func endReading() throws {
    guard entry == nil, let lock = takeLock(), lock.status.kind == .directory else { return }
    guard try !lock.isAt(location) else { return }
    // The replaced directory was left to its reader, which had it locked; after an error the next
    // process removes the leftovers.
    Diagnostics.reporting {
      try lock.unlock()
      try ItemSite.open(location)?.leave()
    }
    throw WormholeError(
      .overtaken, kind.action, path: location.text,
      reason:
        "the directory was replaced while it was read, because this process was stopped, or by "
        + "a program that does not coordinate",
      remedy: "read it again")
  }
}

extension [ItemAccess] {
  /// The cause of an error: an accessor whose access was taken over fails with its own error,
  /// because its copy is gone.
  ///
  /// - Parameter isAny: whether an error of any kind can have that cause.
  package func lossBehind(_ error: any Error, isAny: Bool = false) -> any Error {
    guard isAny || (error as? WormholeError)?.code == .inputOutput,
      !(isAny ? LeaseFault.namingAccessorError : .namingMissingCopy).isActive
    else { return error }
    do {
      for access in self {
        if let loss = try access.loss() { return loss }
      }
    } catch let unknown {
      // Without an answer, the error is unchanged.
      Diagnostics.report(unknown)
    }
    return error
  }
}
