import AppGroup
import FileTrees
import SystemCalls

/// Waits until no process works on the contents of a directory; the contents are claimed already, so
/// that no new access begins.
///
/// One walk through the directory finds the sites of items with claims in them, and the items that
/// readers have locked. Then only these are waited for, and one more walk confirms. A claim of a
/// process that is stopped, overdue or dead is taken over.
struct ContentsWait {
  /// A process that works on something in the directory.
  struct Obstacle {
    let path: String
    let holder: LeaseHolder?
  }

  private let location: ItemLocation
  private let purpose: String
  private var found: [Found] = []
  /// Readers that are stopped; they will find out when they are continued.
  private var passed: Set<String> = []

  private enum Place {
    case site(ItemSite, ClaimSurvey)
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

  /// - Returns: nil when no process is there.
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
          // Not merely passed by: it would publish into the old directory, where no process sees it.
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
      // No process of this user can be seen there without a look into it.
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
        found.append(Found(path: path, place: .site(site, ClaimSurvey())))
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
      // No process of this user uses such a site; it came with a copy or an archive.
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
        // Gone, or of another user: no process of this user can be in it.
        guard [.noSuchFile, .notDirectory, .tooManyLinks, .accessDenied].contains(error) else {
          throw error
        }
        return nil
      }
    }

    mutating func leave(_ name: FileName, at place: TreePlace?) throws {}
  }
}
