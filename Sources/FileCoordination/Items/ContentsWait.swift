import AppGroup
import SystemCalls

/// Waits until nobody works on what is in a directory; the directory's contents are claimed already,
/// so that nobody new begins.
///
/// One walk through the directory finds those who are there: the sites of items with claims in them,
/// and items that readers have locked. Then only these are waited for, and one more walk confirms.
/// A claim of a process that is stopped or overdue is taken away, one of a dead process as well.
struct ContentsWait {
  /// Somebody who is there.
  struct Obstacle {
    let path: String
    let holder: LeaseHolder?
  }

  private let location: ItemLocation
  private let purpose: String
  private var found: [Found] = []
  /// Readers that are stopped, and will be told.
  private var passed: Set<String> = []

  private enum Place {
    case site(ItemSite, Others)
    case item(ItemLocation, ReadersWait)
  }

  private struct Found {
    let path: String
    var place: Place
  }

  init(_ location: ItemLocation, purpose: String) {
    self.location = location
    self.purpose = purpose
  }

  /// - Returns: nil when nobody is there.
  mutating func look() throws -> Obstacle? {
    while true {
      while let last = found.indices.last {
        if let obstacle = try look(at: &found[last]) { return obstacle }
        passed.insert(found[last].path)
        found.removeLast()
      }
      try walk()
      if found.isEmpty { return nil }
    }
  }

  private func look(at found: inout Found) throws -> Obstacle? {
    switch found.place {
    case .site(let site, var others):
      defer { found.place = .site(site, others) }
      while true {
        switch try others.look(at: site, purpose: purpose, { _ in true }) {
        case .nobody: return nil
        case .present(let name): return Obstacle(path: found.path, holder: name.holder)
        case .removable(let name, let isAlive):
          // Not merely passed by: it would publish into the old directory, and nobody see it.
          guard try site.takeAway(name, isAlive: isAlive) else {
            return Obstacle(path: found.path, holder: name.holder)
          }
        }
      }
    case .item(let item, var readers):
      defer { found.place = .item(item, readers) }
      guard case .present(let lock) = try readers.look(at: item) else { return nil }
      return Obstacle(path: found.path, holder: try lock.holder())
    }
  }

  mutating func watch(_ latch: WakeLatch) -> Bool {
    guard let last = found.indices.last else { return true }
    switch found[last].place {
    case .site(let site, var others):
      defer { found[last].place = .site(site, others) }
      return others.watch(latch)
    case .item(let item, var readers):
      defer { found[last].place = .item(item, readers) }
      return readers.watch(latch)
    }
  }

  private mutating func walk() throws {
    guard let status = try location.status(), status.kind == .directory else { return }
    let root: SharedDescriptor
    do throws(Errno) {
      root = SharedDescriptor(
        try FileDescriptor.open(location.path, [.readOnly, .directory, .noFollow]))
    } catch {
      // Without a look into it nobody of this user's can be seen there.
      guard error == .accessDenied || error == .noSuchFile else { throw error }
      return
    }
    var visitor = Visitor(
      root: location.path, locked: try LockTable.current().shared(on: status.device))
    var walk = TreeWalk<Visitor>("look through", root: root, path: TreePath())
    try walk.run(&visitor)
    for (path, isSite) in visitor.found where !passed.contains(path) {
      guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { continue }
      let name = String(path[path.utf8.index(after: slash)...])
      let parent = String(path[..<slash])
      if isSite {
        let item = String(name.dropFirst(ItemSite.prefix.count))
        guard let site = try Self.site(path, ItemLocation(parent: parent, name: item)) else {
          continue
        }
        found.append(Found(path: path, place: .site(site, Others())))
      } else {
        let item = ItemLocation(parent: parent, name: name)
        found.append(Found(path: path, place: .item(item, ReadersWait())))
      }
    }
  }

  private static func site(_ path: String, _ location: ItemLocation) throws -> ItemSite? {
    do {
      return try ItemSite.open(path, location)
    } catch let error as Errno where error == .accessDenied || error == .notDirectory {
      return nil
    } catch let error as FileCoordinationError where error.code == .unsafe {
      // Nobody of ours uses such a one; it came with a copy or an archive.
      return nil
    }
  }

  private struct Visitor: TreeVisitor {
    let root: String
    let locked: Set<UInt64>
    var found: [(path: String, isSite: Bool)] = []

    mutating func visit(_ entry: FileDescriptor.Entry, at place: TreePlace) throws -> Void? {
      let isSite = entry.name.hasPrefix(ItemSite.prefix)
      if isSite || locked.contains(entry.inode) {
        let below = place.path.appending(entry.name).text
        found.append((root + "/" + below, isSite))
      }
      guard !isSite else { return nil }
      if let isDirectory = entry.isDirectory { return isDirectory ? () : nil }
      return try fileStatus(entry.name, at: place.rawValue).kind == .directory ? () : nil
    }

    mutating func enter(
      _ name: FileName, _ mark: Void, at place: TreePlace
    ) throws -> SharedDescriptor? {
      do throws(Errno) {
        return SharedDescriptor(
          try FileDescriptor.open(name, at: place.rawValue, [.readOnly, .directory, .noFollow]))
      } catch {
        // Gone, or somebody else's: nobody of ours can be in there.
        guard [.noSuchFile, .notDirectory, .tooManyLinks, .accessDenied].contains(error) else {
          throw error
        }
        return nil
      }
    }

    mutating func leave(_ name: FileName, at place: TreePlace?) throws {}
  }
}
