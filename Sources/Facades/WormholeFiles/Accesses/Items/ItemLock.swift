import Synchronization
import Wormhole
import WormholeSystem
import WormholeToolkit

/// A `flock` on the item itself: readers share it for as long as they have access, and an access that
/// publishes or works in place waits for them and keeps new ones out for that moment.
///
/// It leaves no files, costs next to nothing, works in a directory that this user may not write to,
/// and is the lock that `flock(1)` takes. A stopped reader is passed by after the grace, because the
/// file that it has open does not change.
final class ItemLock: Sendable {
  private let file: FileDescriptor
  let status: FileStatus
  /// For a program that shares the item.
  var inheritance: Int32 { file.rawValue }
  /// What this process does under it.
  private let reading = Mutex<OwnReaders.Reading?>(nil)

  private init(_ file: consuming FileDescriptor) throws(Errno) {
    status = try file.status()
    self.file = file
  }

  // A child being started at this moment shares the open file, and would keep the lock until it
  // runs its program.
  deinit {
    if let reading = reading.withLock({ $0 }) { OwnReaders.end(reading) }
    // Closing the descriptor, which comes next, also ends the lock.
    try? file.unlock()
  }

  /// Opens the item at a location to lock it.
  ///
  /// - Parameter found: the item's status, if the caller has just read it.
  /// - Returns: nil if it is missing, is of a kind without locks, or may not be read by this user.
  static func open(
    _ location: ItemPath, found: FileStatus? = nil
  ) throws(Errno) -> ItemLock? {
    let refusals: [Errno] = [.noSuchFile, .accessDenied, .tooManyLinks, .noSuchDevice]
    var found = found
    if found == nil { found = try tolerating(refusals, location.status()) ?? nil }
    guard let found, [.regular, .directory].contains(found.kind) else { return nil }
    return try tolerating(
      refusals,
      ItemLock(FileDescriptor.open(location.text, [.readOnly, .noFollow, .nonBlocking])))
  }

  /// Opens and locks a file to read it if one look finds nothing in the way, as for most files: no
  /// site and no holder above. An acquisition finds out the rest.
  ///
  /// In the order of `ItemAcquisition`: a process that is not seen after the file is locked finds
  /// the lock (Tests/Models/files.pml, LOOK_FIRST).
  ///
  /// - Returns: nil unless this access can begin at once; with the containers whose presenters
  ///   would have to be asked.
  /// - Complexity: eight system calls, and two for the end.
  static func undisturbed(
    _ item: ItemPath
  ) throws(Errno) -> (lock: ItemLock, containers: [ItemPath])? {
    guard let above = DirectoriesAbove.known(item), above.sites.isEmpty,
      // Opening a file of another kind may have effects.
      try fileStatus(item.text).kind == .regular
    else { return nil }
    let lock = try ItemLock(.openWithoutLinks(item.text, [.readOnly, .nonBlocking]))
    guard try lock.tryLock(.shared), try !exists(above.site, at: Directory.current),
      above.isCurrent, try lock.isAt(item)
    else { return nil }
    let beside = DirectoriesAbove.isMark(above.containerBeside) ? [item.parent] : []
    return (lock, beside + above.containers)
  }

  /// Copies the content of a regular file, which must not have been read before.
  func copy(
    with copy: inout EntryCopy, to name: FileName, at directory: Int32
  ) throws {
    try copy.copy(file, status, to: name, at: directory, path: TreePath(name))
  }

  /// - Returns: false when others hold it; also true if the file system has no such locks.
  func tryLock(_ mode: LockMode) throws(Errno) -> Bool {
    try tolerating([.unsupported, .invalidArgument, .noFunction, .noLocks], file.tryLock(mode))
      ?? true
  }

  /// Notes what this process uses the item for; its own accesses of the purpose are not kept out.
  func isUsed(for purpose: String) {
    reading.withLock { $0 = $0 ?? OwnReaders.begin(status, for: purpose) }
  }

  func unlock() throws(Errno) { try file.unlock() }

  /// Whether the location still names the opened item.
  func isAt(_ location: ItemPath) throws(Errno) -> Bool {
    try location.status()?.isSameFile(as: status) ?? false
  }

  func watch(_ latch: WakeLatch) -> Watch {
    ChangeMonitor.shared.watchOpen(
      file, [.closedWithoutWriting, .closedAfterWriting, .attributes, .selfMoved, .selfDeleted]
    ) { _ in latch.raise() }
  }

  /// A process that holds it, for an error sentence.
  func holder() throws(Errno) -> LeaseHolder? {
    try LockTable.current().holders(of: status).first.map { LeaseHolder(visible: $0, held: nil) }
  }
}

/// Waits until no process reads an item, except stopped ones.
struct ReadersWait {
  /// After a look that found no readers, their lock: new readers wait as long as it is held. Nil if
  /// there was nothing to lock, or all readers are stopped.
  private(set) var held: ItemLock?
  /// Whether the last look found readers of the same purpose in this process, and no others.
  private(set) var passesOwn = false
  private var lock: ItemLock?
  private var watch: Watch?
  private var observed = Observed()

  /// - Parameters:
  ///   - found: The item's status, if the caller has just read it.
  ///   - opened: The lock to take at the first look, if it is the item's.
  /// - Returns: the lock that readers hold; nil if there are none.
  mutating func look(
    at location: ItemPath, found: FileStatus? = nil, opened: ItemLock? = nil,
    for purpose: String, now: ContinuousClock.Instant = .now
  ) throws(Errno) -> ItemLock? {
    lock = lock ?? opened
    if let lock {
      let isCurrent =
        if let found { found.isSameFile(as: lock.status) } else { try lock.isAt(location) }
      if !isCurrent { self = ReadersWait() }
    }
    held = nil
    passesOwn = false
    if lock == nil { lock = try ItemLock.open(location, found: found) }
    guard let lock else { return nil }
    guard try !lock.tryLock(.exclusive) else {
      held = lock
      return nil
    }
    passesOwn = try OwnReaders.alone(lock: lock.status, for: purpose)
    if passesOwn { return nil }
    return try observed.readersAreOverdue(lock.status, now: now) ? nil : lock
  }

  /// Watches for the end of the readers; see `AccessSurvey.watch`.
  mutating func watch(_ latch: WakeLatch) -> Bool {
    // Without a lock there is nothing that could end.
    guard watch == nil, let lock else { return true }
    watch = lock.watch(latch)
    return false
  }
}
