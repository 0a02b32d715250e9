import Wormhole
import WormholeSystem

/// Waits until no process works on the contents of a directory; the contents are already claimed,
/// so no new access begins.
///
/// One walk through the directory finds the sites of items with claims in them, and the items that
/// readers have locked. Then the access waits for these only, and another walk confirms. A claim of
/// a stopped, overdue or dead process is taken over.
struct ContentsWait {
  /// A process that works on an item in the directory.
  struct Obstacle {
    let path: ItemPath
    let holder: LeaseHolder?

    /// For the error sentence of a waiting process.
    var what: String { "works on \(path.text)" }
  }

  private var found: [Found] = []
  /// Stopped readers; they notice it when they continue.
  private var passed: Set<ItemPath> = []

  private struct Found {
    let path: ItemPath
    /// Nil for an item that readers have locked.
    let site: ItemSite?
    var others = ClaimSurvey()
    var readers = ReadersWait()
  }

  /// - Returns: nil when no process works there.
  mutating func look(in location: ItemPath, purpose: String) throws -> Obstacle? {
    while true {
      while let last = found.indices.last {
        if let obstacle = try look(at: &found[last], purpose) { return obstacle }
        passed.insert(found[last].path)
        found.removeLast()
      }
      try walk(location)
      if found.isEmpty { return nil }
    }
  }

  private func look(at found: inout Found, _ purpose: String) throws -> Obstacle? {
    guard let site = found.site else {
      guard let lock = try found.readers.look(at: found.path) else { return nil }
      return Obstacle(path: found.path, holder: try lock.holder())
    }
    while true {
      switch try found.others.look(at: site, purpose: purpose, { _ in true }) {
      case .nobody: return nil
      case .present(let name): return Obstacle(path: found.path, holder: name.holder)
      case .removable(let name, let isAlive):
        // Not merely ignored: it would publish into the old directory, where no process sees it.
        guard try site.takeOver(name, isAlive: isAlive) else {
          return Obstacle(path: found.path, holder: name.holder)
        }
      }
    }
  }

  mutating func watch(_ latch: WakeLatch) -> Bool {
    guard let last = found.indices.last else { return true }
    return found[last].site == nil
      ? found[last].readers.watch(latch) : found[last].others.watch(latch)
  }

  private mutating func walk(_ location: ItemPath) throws {
    guard let status = try location.status(), status.kind == .directory else { return }
    // No process of this user can be found there without a look into it.
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
      guard isSite else {
        found.append(Found(path: path, site: nil))
        continue
      }
      let name = FileName(bytes: Array(path.name.bytes.dropFirst(ItemSite.prefix.utf8.count)))
      let item = path.parent.appending(name)
      guard let site = try ItemSite.openIfOwn(item, at: path.text) else { continue }
      found.append(Found(path: path, site: site))
    }
  }

  private struct Visitor: TreeVisitor {
    let root: ItemPath
    let locked: Set<UInt64>
    var found: [(path: ItemPath, isSite: Bool)] = []

    mutating func visit(_ entry: FileDescriptor.Entry, at place: TreePlace) throws -> Void? {
      let isSite = ItemSite.isSite(entry.name)
      if isSite || locked.contains(entry.inode) {
        let below = FileName(bytes: place.path.appending(entry.name).bytes)
        found.append((root.appending(below), isSite))
      }
      guard !isSite else { return nil }
      if let isDirectory = entry.isDirectory { return isDirectory ? () : nil }
      return try fileStatus(entry.name, at: place.rawValue).kind == .directory ? () : nil
    }

    mutating func enter(
      _ name: FileName, _ mark: Void, at place: TreePlace
    ) throws -> SharedDescriptor? {
      // Gone, or of another user: no process of this user can be in it.
      try tolerating(
        [.noSuchFile, .notDirectory, .tooManyLinks, .accessDenied],
        SharedDescriptor(openDirectory(name, at: place.rawValue)))
    }
  }
}

/// The directories that contain an item. An access that deletes, moves or replaces one of them, or
/// is about to publish it, claims its contents, and then no access to them begins.
///
/// Both sides announce themselves first and then look for each other, so at least one of them sees
/// the other; the inner one gives way.
struct Containing {
  private var others: [ItemPath: ClaimSurvey] = [:]

  /// - Returns: a claim of the contents of one of the directories.
  /// - Complexity: one look at each directory between the item and the root.
  mutating func look(
    _ location: ItemPath, purpose: String, now: ContinuousClock.Instant = .now
  ) throws -> (claim: ClaimName, directory: ItemPath)? {
    let directories = location.coordinatedAncestors
    if !others.isEmpty { others = others.filter { directories.contains($0.key) } }
    for directory in directories {
      guard let site = try ItemSite.openIfOwn(directory) else {
        others[directory] = nil
        continue
      }
      let finding = try others[directory, default: ClaimSurvey()].look(
        at: site, purpose: purpose, now: now
      ) { $0.coversContents }
      // No access waits for a dead or overdue claim; the next access to the directory removes it.
      if case .present(let name) = finding { return (name, directory) }
    }
    return nil
  }

  mutating func watch(_ latch: WakeLatch) -> Bool {
    var wasComplete = true
    for directory in Array(others.keys) {
      wasComplete = others[directory]?.watch(latch) ?? true && wasComplete
    }
    return wasComplete
  }
}
