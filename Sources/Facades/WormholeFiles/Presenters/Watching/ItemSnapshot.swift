import Wormhole
import WormholeSystem
import WormholeToolkit

/// The known state of a presented item, and how a new look changes it.
///
/// The item is the entry that its path names. If the path names nothing, the descriptor of the last
/// file there shows that file's place (proc_pid_fd(5)). If a link on the way is pointed elsewhere,
/// the item is what the path that the user named leads to now, as with `tail -F`. Editors and
/// publishers leave the path empty briefly: only a second look shows that an item was moved away.
struct ItemSnapshot {
  /// A result, and after how many milliseconds to look again, if needed.
  struct Result {
    var notices: [PresenterNotice] = []
    var nextLook: Int?
  }

  /// How long a path may name nothing before the item counts as moved away or gone.
  static let absence = 20
  /// The maximum time between the two events of a move.
  static let moveGap = 5

  /// Where the item is, without links.
  private(set) var path: ItemPath?
  /// The path that the user named; nil after a move, unless it has links.
  private(set) var named: String?
  /// Whether the item was moved away from there.
  private var hasMoved = false
  /// Where the tree was found.
  private var place: ItemPath?
  /// Nil if there is no entry.
  private var tree: ItemTree?
  /// Watches on the directories above an item: if one is moved or removed, the item is elsewhere or
  /// gone; if the path is empty, the nearest existing directory reports the appearance.
  private var anchors: [Watch] = []
  private var isMissing = false
  private let hear: @Sendable (ItemTree.NodeID, WatchNews) -> Void

  init(hear: @escaping @Sendable (ItemTree.NodeID, WatchNews) -> Void) {
    self.hear = hear
  }

  /// Presents another item; its current state counts as known.
  ///
  /// - Parameters:
  ///   - path: Its place.
  ///   - named: The absolute path that leads there.
  mutating func present(_ path: ItemPath?, named: String?) {
    self.path = path
    self.named = named
    hasMoved = false
    tree = nil
    isMissing = false
    if let path { _ = find(path) } else { anchors = [] }
  }

  /// The item was moved, as its mover reports.
  mutating func follow(to path: ItemPath) {
    self.path = path
    place = path
    isMissing = false
    hasMoved = true
    if way == nil { named = nil }
    watchWay(to: path)
  }

  /// The way by the path that the user named; nil without links, where that is the way to the item.
  private var way: PathWay? {
    guard let named, named.hasPrefix("/") else { return nil }
    let way = PathWay(to: named)
    return way.entries.contains(where: \.isLink) ? way : nil
  }

  /// Where the user's path leads now, if that is elsewhere. An item that was moved is followed until
  /// the path leads to an item again.
  private func elsewhere(than path: ItemPath) -> ItemPath? {
    // If a directory on the way can no longer be looked at, the item is watched as before.
    guard let named, let now = try? ItemPath.canonical(named, followingLink: true), now != path,
      !hasMoved || statusIfVisible(now.text) != nil
    else { return nil }
    return now
  }

  var isPresent: Bool { tree != nil }

  /// The place in the tree of a path in the directory.
  func place(of path: ItemPath) -> ItemTree.Place? {
    self.path?.components(to: path).flatMap { tree?.place(of: $0) }
  }

  /// The status at the last look; nil if there was no entry.
  func known(_ path: ItemPath) -> FileStatus? {
    if path == self.path { return tree?.known.status }
    return place(of: path).flatMap { tree?.nodes[$0.node]?.entries[$0.name]?.known.status }
  }

  // MARK: Looking

  /// - Parameters:
  ///   - isLater: whether this is the look that a result asked for.
  ///   - isLast: whether a missing entry is reported as gone at once.
  mutating func look(
    _ news: [ItemTree.NodeID: WatchNews], isLater: Bool = false, isLast: Bool = false
  ) -> Result {
    guard var path else { return Result() }
    if news[ItemTree.wayID] != nil || isMissing, let now = elsewhere(than: path) {
      path = now
      self.path = now
      hasMoved = false
    }
    var result = Result()
    let status = statusIfVisible(path.text)
    let own = news[ItemTree.rootID]?.own ?? []
    if let status, let tree, tree.known.status.isSameFile(as: status) {
      isMissing = false
      place = path
      if news[ItemTree.wayID] != nil { watchWay(to: path) }
      if isChanged(to: status, after: own) { result.notices.append(.changed) }
    } else if status == nil, tree != nil {
      guard isMissing || isLast else {
        isMissing = true
        return Result(nextLook: Self.absence)
      }
      result.notices = lose(path, after: own)
    } else if replace(path) {
      result.notices.append(.changed)
    }
    guard let path = self.path else { return result }
    var news = news
    if tree?.isReplaced == true { news[ItemTree.rootID] = .everything }
    result.notices += tree?.look(news, at: path, isLater: isLater, isLast: isLast) ?? []
    if tree?.mustLookAgain == true { result.nextLook = Self.moveGap }
    return result
  }

  private mutating func isChanged(to status: FileStatus, after events: WatchEvents) -> Bool {
    defer { tree?.known = EntryStatus(status) }
    return tree?.known.differs(from: status, after: events, writing: .modified) ?? false
  }

  /// The path names nothing: the item is elsewhere, or gone.
  private mutating func lose(_ path: ItemPath, after events: WatchEvents) -> [PresenterNotice] {
    isMissing = false
    guard let new = placeOfFile(), new != place, let status = statusIfVisible(new.text) else {
      tree = nil
      // It is already back, or was back in between: reported by the same notice.
      _ = find(path)
      return [.changed]
    }
    follow(to: new)
    return [.moved(new)] + (isChanged(to: status, after: events) ? [.changed] : [])
  }

  /// The current place of the last file at the path; nil if it has no name, or none that others can
  /// use.
  private func placeOfFile() -> ItemPath? {
    guard let tree,
      // Without /proc its new place is unknown: it is then gone from its old one.
      let target = try? linkTarget("/proc/self/fd/\(tree.root.descriptor.rawValue)"),
      let status = statusIfVisible(target), tree.known.status.isSameFile(as: status)
    else { return nil }
    let place = ItemPath(target)
    return place.isInSite ? nil : place
  }

  /// A different file is at the path, or one for the first time.
  ///
  /// - Returns: whether that is a change of the item itself.
  private mutating func replace(_ path: ItemPath) -> Bool {
    let old = tree
    isMissing = false
    guard let status = find(path, old: old) else { return false }
    // The tree finds the difference between two directories.
    guard let old, old.isOfDirectory, tree?.isOfDirectory == true else { return true }
    return old.known.differsInAttributes(from: status)
  }

  // MARK: Finding

  /// Opens and watches the entry at the path, or watches for it to appear.
  ///
  /// - Parameter old: the previous entry; a directory's tree is kept for comparison.
  /// - Returns: nil if there is no entry.
  private mutating func find(_ path: ItemPath, old: ItemTree? = nil) -> FileStatus? {
    // Each round watches first and then looks; if the item is constantly replaced, a later look
    // reports it.
    for _ in 0..<10 {
      tree = openTree(path, old)
      place = path
      let isWatched = watchWay(to: path)
      let now = statusIfVisible(path.text)
      switch (tree?.known.status, now) {
      case (nil, nil) where isWatched: return nil
      case (let known?, let now?) where known.isSameFile(as: now): return known
      default: continue
      }
    }
    return tree?.known.status
  }

  private func openTree(_ path: ItemPath, _ old: ItemTree?) -> ItemTree? {
    do throws(Errno) {
      let file = SharedDescriptor(
        try FileDescriptor.open(path.text, [.pathOnly, .noFollow]))
      let status = try file.descriptor.status()
      var tree: ItemTree
      if let old, old.isOfDirectory, status.kind == .directory {
        tree = old
        tree.replaceRoot(by: file)
      } else {
        tree = ItemTree(file, status, hear: hear)
      }
      // Again, because the attributes may have changed before the tree was watched.
      tree.known = EntryStatus(try file.descriptor.status())
      return tree
    } catch {
      // Gone again, or not ours to open: treated as missing.
      return nil
    }
  }

  /// Watches the way to a path; the watches of an earlier way end after this.
  ///
  /// - Returns: false if a directory on the way was made or removed while its watch was made: no
  ///   event reported it, so the way has to be watched again.
  @discardableResult
  private mutating func watchWay(to path: ItemPath) -> Bool {
    let hear = hear
    var new: [Watch] = []
    var isComplete = true
    // The entry below the directory, on the way. An item that exists has its own watch.
    var below = path.name
    var isAwaited = !isPresent
    // Whether it is the lowest directory that exists, and is removed before all others. It reports
    // that itself only once no process has it open.
    var isLowest = tree?.isOfDirectory ?? false
    for directory in path.ancestors {
      let entry = below
      below = directory.name
      guard let open = open(directory) else {
        (isAwaited, isLowest) = (true, false)
        continue
      }
      var events: WatchEvents = [.selfMoved, .selfDeleted]
      if isAwaited {
        events.formUnion([.created, .movedTo, .attributes])
      } else if isLowest {
        events.formUnion(.deleted)
      }
      let watch = ChangeMonitor.shared.watchOpen(open.descriptor, events) { news in
        // Other entries beside the way cost no more than this.
        if news.isEverything || !news.own.isEmpty || news.names[entry] != nil {
          hear(ItemTree.wayID, news)
        }
      }
      // A directory above without a watch is not worth constant looks.
      if watch.detection == .events || isAwaited { new.append(watch) }
      if isAwaited || isLowest {
        let isThere = self.open(directory.appending(entry)) != nil
        isComplete = isComplete && isThere == isLowest
      }
      isLowest = isAwaited
      isAwaited = false
    }
    let way = way
    for entry in way?.entries ?? [] where entry.isLink || entry.status.kind == .directory {
      new.append(
        ChangeMonitor.shared.watchOpen(entry.file.descriptor, entry.events) {
          hear(ItemTree.wayID, $0)
        })
    }
    anchors = new
    // Pointed elsewhere before it was watched, so there was no event.
    if way != nil, elsewhere(than: path) != nil { hear(ItemTree.wayID, .everything) }
    return isComplete
  }

  private func open(_ directory: ItemPath) -> SharedDescriptor? {
    // Missing, or not open to this user: the directory above reports a change of that.
    try? SharedDescriptor(FileDescriptor.open(directory.text, [.pathOnly, .directory]))
  }
}

/// An entry's status at the last look.
struct EntryStatus: Sendable {
  let status: FileStatus
  /// Whether it had just been written.
  let isFresh: Bool

  init(_ status: FileStatus) {
    self.status = status
    isFresh = status.isJustWritten
  }

  /// Whether content or attributes differ. The contents of a directory do not count.
  func differs(from new: FileStatus) -> Bool {
    !status.isUnwritten(in: new) || differsInAttributes(from: new)
  }

  func differsInAttributes(from new: FileStatus) -> Bool {
    status.kind != new.kind || status.permissions != new.permissions
      || status.owner != new.owner || status.group != new.group
  }

  /// Whether it differs now, or may differ although it looks the same.
  ///
  /// - Parameter writing: the events that report a write.
  func differs(from new: FileStatus, after events: WatchEvents, writing: WatchEvents) -> Bool {
    if differs(from: new) || (isFresh && !events.isDisjoint(with: writing)) { return true }
    // Extended attributes and access lists leave their only trace in this time. So does adding or
    // removing a hard link to the file, which does not matter.
    return events.contains(.attributes) && status.kind != .directory && status.links == new.links
      && (status.changedSeconds, status.changedNanoseconds)
        != (new.changedSeconds, new.changedNanoseconds)
  }
}

extension FileStatus {
  /// Whether a later look found the same file, not written since. A directory's contents do not
  /// count.
  func isUnwritten(in new: FileStatus) -> Bool {
    kind == .directory ? isSameFile(as: new) : Version(self) == Version(new)
  }
}

/// The status of a path; nil if there is no entry, or this user may not see it.
func statusIfVisible(
  _ path: some PathText, at directory: Int32 = Directory.current
) -> FileStatus? {
  // An entry that cannot be seen cannot be shown either: for a presenter it does not exist.
  try? fileStatus(path, at: directory)
}
