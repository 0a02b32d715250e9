import Wormhole
import WormholeSystem

/// What one access knows of the others in its way: the holder of each item, and each item's readers.
///
/// Leases and items stay open between looks, because closing them would wake all others that wait for
/// their end.
struct AccessSurvey {
  /// A process working on an item in a directory, for a waiting process's error sentence.
  typealias Obstacle = (holder: LeaseHolder?, what: String)

  /// The purpose of the access; this process's accesses of the same purpose are not in its way.
  private let purpose: String
  private var holders: [ItemPath: HolderSurvey] = [:]
  private var readers: [ItemPath: ReadersWait] = [:]
  /// In a directory whose contents are kept: the sites in it, and the items that readers have locked,
  /// without a site.
  private var inside: [(path: ItemPath, site: ItemSite?)] = []
  /// Stopped readers; they notice it when they continue.
  private var passed: Set<ItemPath> = []

  init(purpose: String) {
    self.purpose = purpose
  }

  /// Looks for a holder of an item's lease that is in the way.
  mutating func look(
    at site: ItemSite, _ concerns: (EntryName) -> Bool
  ) throws(Errno) -> HolderSurvey.Finding? {
    try holders[site.location, default: HolderSurvey()].look(at: site) { name in
      concerns(name) && LeaseShare.purpose(of: name) != purpose
    }
  }

  /// - Parameters:
  ///   - found: As in `ReadersWait.look`.
  ///   - opened: As in `ReadersWait.look`.
  /// - Returns: the lock that an item's readers hold; nil if there are none.
  mutating func lookForReaders(
    of location: ItemPath, found: FileStatus? = nil, opened: ItemLock? = nil
  ) throws(Errno) -> ItemLock? {
    try readers[location, default: ReadersWait()].look(
      at: location, found: found, opened: opened, for: purpose)
  }

  /// Whether the last look passed over readers of the same purpose, so no lock keeps new ones out.
  func passesOwnReaders(of location: ItemPath) -> Bool { readers[location]?.passesOwn ?? false }

  /// Takes the lock that keeps new readers of an item out, if the last look found none.
  mutating func takeLock(of location: ItemPath) -> ItemLock? {
    readers.removeValue(forKey: location)?.held
  }

  /// Waits for the end of something that was found, or until the next look is due.
  ///
  /// - Parameters:
  ///   - latch: what wakes the access.
  ///   - deadline: how long to wait.
  ///   - timeout: the error after that.
  mutating func wait<Outcome>(
    with latch: WakeLatch, until deadline: ContinuousClock.Instant,
    else timeout: @autoclosure () throws -> WormholeError
  ) throws -> WaitingStep<Outcome> {
    guard ContinuousClock.now < deadline else { throw try timeout() }
    guard watch(latch) else { return .again }
    return .wait(for: latch, until: min(deadline, .now + AccessTerms.interval))
  }

  /// - Returns: whether everything was already watched: then wait, otherwise look again.
  private mutating func watch(_ latch: WakeLatch) -> Bool {
    var wasComplete = true
    for item in Array(holders.keys) {
      wasComplete = holders[item]?.watch(latch) ?? true && wasComplete
    }
    for item in Array(readers.keys) {
      wasComplete = readers[item]?.watch(latch) ?? true && wasComplete
    }
    return wasComplete
  }

  /// Closes the lease in a site.
  mutating func forgetHolder(at site: ItemSite) { holders[site.location] = nil }

  /// Forgets what holds only under the lease: that there are no readers, and what is in a directory.
  mutating func forgetFindings() {
    for (_, site) in inside { if let site { forgetHolder(at: site) } }
    (readers, inside, passed) = ([:], [], [])
  }
}

/// Waits until no process works on the contents of a directory; the contents are already kept, so no
/// new access begins.
///
/// One walk through the directory finds the sites of items, and the items that readers have locked. The
/// access then waits for these only, and another walk confirms. The lease of an overdue process is
/// taken over.
extension AccessSurvey {
  /// - Returns: nil if no process works there.
  mutating func lookInside(_ location: ItemPath) throws -> Obstacle? {
    while true {
      while let (path, site) = inside.last {
        if let obstacle = try look(path, site) { return obstacle }
        passed.insert(path)
        readers[path] = nil
        if let site { forgetHolder(at: site) }
        inside.removeLast()
      }
      try walk(location)
      if inside.isEmpty { return nil }
    }
  }

  private mutating func look(_ path: ItemPath, _ site: ItemSite?) throws -> Obstacle? {
    let what = path.text
    guard let site else { return try lookForReaders(of: path).map { (try $0.holder(), what) } }
    while true {
      switch try look(at: site, { _ in true }) {
      case nil: return nil
      case .present(let name): return (name.holder, what)
      case .overdue(let name):
        // Not just passed by: it would publish into the old directory, where no process sees it.
        guard try holders[site.location]?.takeOver(at: site) ?? true else {
          return (name.holder, what)
        }
        forgetHolder(at: site)
      }
    }
  }

  private mutating func walk(_ location: ItemPath) throws {
    guard let status = try location.status(), status.kind == .directory else { return }
    // No process of this user can be found there without looking into it.
    guard
      let root = try tolerating(
        [.accessDenied, .noSuchFile],
        SharedDescriptor(
          FileDescriptor.open(location.text, [.readOnly, .directory, .noFollow])))
    else { return }
    var visitor = Visitor(
      root: location, locked: try LockTable.current().shared(on: status.device))
    try visitor.walk("look through", through: root, path: TreePath())
    for (path, isSite) in visitor.found where !passed.contains(path) {
      let site = isSite ? try site(at: path) : nil
      if !isSite || site != nil { inside.append((path, site)) }
    }
  }

  private func site(at path: ItemPath) throws -> ItemSite? {
    let name = FileName(bytes: Array(path.name.bytes.dropFirst(ItemSite.prefix.utf8.count)))
    let item = path.parent.appending(name)
    return try ItemSite.openIfPermitted(item, at: path.text, isOwn: true)
  }

  private struct Visitor: TreeVisitor {
    let root: ItemPath
    let locked: Set<UInt64>
    var found: [(path: ItemPath, isSite: Bool)] = []

    mutating func visit(_ entry: FileDescriptor.Entry, at place: TreePosition) throws -> Void? {
      let isSite = ItemSite.isSite(entry.name)
      if isSite || locked.contains(entry.inode) {
        let below = FileName(bytes: place.path.appending(entry.name).bytes)
        found.append((root.appending(below), isSite))
      }
      guard !isSite else { return nil }
      if let isDirectory = entry.isDirectory { return isDirectory ? () : nil }
      return try ifPresent(fileStatus(entry.name, at: place.rawValue))?.kind == .directory
        ? () : nil
    }

    mutating func enter(
      _ name: FileName, _ mark: Void, at place: TreePosition
    ) throws -> SharedDescriptor? {
      // Gone, or another user's: no process of this user can be in it.
      try tolerating(
        [.noSuchFile, .notDirectory, .tooManyLinks, .accessDenied],
        SharedDescriptor(openDirectory(name, at: place.rawValue)))
    }
  }
}

/// The directories that contain an item. An access that deletes, moves or replaces one of them, or
/// is about to publish it, keeps its contents, and then no access to them begins.
///
/// Both sides announce themselves first and then look for each other, so at least one of them sees
/// the other; the inner one gives way.
extension AccessSurvey {
  /// - Returns: a holder that keeps the contents of one of the directories.
  /// - Complexity: one look at each directory between the item and the root, or one at all of them
  ///   (`DirectoriesAbove.current`).
  mutating func lookAbove(
    _ location: ItemPath
  ) throws -> (holder: EntryName, directory: ItemPath)? {
    let sites = DirectoriesAbove.current(location)?.sites ?? location.coordinatedAncestors
    for directory in sites {
      guard let site = try ItemSite.openIfPermitted(directory, isOwn: true) else {
        holders[directory] = nil
        continue
      }
      switch try look(at: site, { $0.coversContents }) {
      case nil: continue
      case .present(let name): return (name, directory)
      case .overdue(let name):
        // A holder with a copy is passed by, because it looks for this access again before it publishes.
        // One that works in place does not look again: it is taken over. Another user's cannot be.
        guard name.kind == .inPlace else { continue }
        let isOver = try tolerating(
          [.accessDenied, .notPermitted], holders[directory]?.takeOver(at: site) ?? true)
        if isOver == false { return (name, directory) }
        forgetHolder(at: site)
      }
    }
    return nil
  }
}
