import Wormhole
import WormholeSystem

/// What is known of a presented item, and what a new look makes of it.
///
/// The item is what its path names; the descriptor of the file that was there last says where that
/// one is when the path names nothing any more (proc_pid_fd(5)). Editors and publishers leave
/// nothing at the path for a moment, so only a second look believes that an item was moved away.
struct ItemLook {
  /// A result, and after how many milliseconds to look again, if at all.
  struct Result {
    var notices: [PresenterNotice] = []
    var nextLook: Int?
  }

  /// How long a path may name nothing before the item counts as moved away or gone.
  static let absence = 20
  /// How long after the first event of a move the second may come.
  static let moveGap = 5

  private(set) var path: ItemPath?
  /// Nil when nothing is there.
  private var tree: ItemTree?
  /// Watches on the directories above an item: by their being moved or removed it is elsewhere or
  /// gone, and where nothing is at the path, the nearest existing directory reports the appearance.
  private var anchors: [Watch] = []
  private var isMissing = false
  private let hear: @Sendable (ItemTree.NodeID, WatchNews) -> Void

  init(hear: @escaping @Sendable (ItemTree.NodeID, WatchNews) -> Void) {
    self.hear = hear
  }

  /// Presents another item; what it is like now counts as known.
  mutating func present(_ path: ItemPath?) {
    self.path = path
    tree = nil
    isMissing = false
    if let path { _ = find(path) } else { anchors = [] }
  }

  /// The item was moved, as its mover reports.
  mutating func follow(to path: ItemPath) {
    self.path = path
    isMissing = false
    watchWay(to: path)
  }

  var isPresent: Bool { tree != nil }

  /// Where the tree keeps what it knows of a path in the directory.
  func place(of path: ItemPath) -> ItemTree.Place? {
    self.path?.components(to: path).flatMap { tree?.place(of: $0) }
  }

  /// What was there when it was looked at last; nil where nothing was.
  func known(_ path: ItemPath) -> FileStatus? {
    if path == self.path { return tree?.known.status }
    return place(of: path).flatMap { tree?.nodes[$0.node]?.entries[$0.name]?.known.status }
  }

  // MARK: Looking

  /// - Parameters:
  ///   - isLater: whether this is the look that a result asked for.
  ///   - isLast: whether what is gone is to be called gone at once.
  mutating func look(
    _ news: [ItemTree.NodeID: WatchNews], isLater: Bool = false, isLast: Bool = false
  ) -> Result {
    guard let path else { return Result() }
    var result = Result()
    let status = statusIfVisible(path.text)
    let own = news[ItemTree.rootID]?.own ?? []
    if let status, let tree, tree.known.status.isSameFile(as: status) {
      isMissing = false
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
    guard let place = placeOfFile(), let status = statusIfVisible(place.text) else {
      tree = nil
      // Back again already, or in the moment between: reported by the same notice.
      _ = find(path)
      return [.changed]
    }
    self.path = place
    watchWay(to: place)
    return [.moved(place)] + (isChanged(to: status, after: events) ? [.changed] : [])
  }

  /// Where the file is that was at the path last; nil when it has no name any more, or none that
  /// means anything to others.
  private func placeOfFile() -> ItemPath? {
    guard let tree,
      // Without /proc its new place is unknown: then it is gone from its old one.
      let target = try? linkTarget("/proc/self/fd/\(tree.root.descriptor.rawValue)"),
      let status = statusIfVisible(target), tree.known.status.isSameFile(as: status)
    else { return nil }
    let place = ItemPath(target)
    let isOurs = ([place] + place.ancestors).contains { ItemSite.isSite($0.name) }
    return isOurs ? nil : place
  }

  /// There is a different file at the path, or one for the first time.
  ///
  /// - Returns: whether that is a change of the item itself.
  private mutating func replace(_ path: ItemPath) -> Bool {
    let old = tree
    isMissing = false
    guard let status = find(path, old: old) else { return false }
    // The difference between two directories is what the tree finds.
    guard let old, old.isOfDirectory, tree?.isOfDirectory == true else { return true }
    return old.known.differsInAttributes(from: status)
  }

  // MARK: Finding

  /// Opens and watches what is at the path, or watches for it to appear.
  ///
  /// - Parameter old: what was there before; a directory's tree is kept for comparison.
  /// - Returns: nil when there is nothing.
  private mutating func find(_ path: ItemPath, old: ItemTree? = nil) -> FileStatus? {
    // Each round watches first and looks then; if the item is replaced all the time, a later look
    // reports it.
    for _ in 0..<10 {
      tree = openTree(path, old)
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
        tree.replaceRoot(by: file, status)
      } else {
        tree = ItemTree(file, status, hear: hear)
      }
      // Once more, because the attributes may have changed before the tree's watch was there.
      tree.known = EntryStatus(try file.descriptor.status())
      return tree
    } catch {
      // Gone again, or not ours to open: as if there were nothing.
      return nil
    }
  }

  /// Watches the way to a path; a former one's watches end after this.
  ///
  /// - Returns: false when a directory of the way was made at the same time as its watch: no event has
  ///   reported it, and no watch is in it, so the way has to be watched again.
  @discardableResult
  private mutating func watchWay(to path: ItemPath) -> Bool {
    let hear = hear
    var new: [Watch] = []
    var isStillMissing = true
    // An item that exists has its own watch, which reports the rest.
    var missing: FileName? = isPresent ? nil : path.name
    var isMissingWatched = isPresent
    for directory in path.ancestors {
      guard let open = open(directory) else {
        missing = directory.name
        isMissingWatched = false
        continue
      }
      var events: WatchEvents = [.selfMoved, .selfDeleted]
      let awaited = isMissingWatched ? nil : missing
      if awaited != nil { events.formUnion([.created, .movedTo, .attributes]) }
      let watch = ChangeMonitor.shared.watchOpen(open.descriptor, events) { news in
        guard let awaited, !news.isEverything, news.own.isEmpty else {
          return hear(ItemTree.wayID, news)
        }
        // Whatever else appears beside the way costs nothing more than this.
        if news.names[awaited] != nil { hear(ItemTree.wayID, news) }
      }
      // A directory above that may not be watched is not worth looking at all the time for it.
      if watch.detection == .events || awaited != nil { new.append(watch) }
      if let awaited { isStillMissing = self.open(directory.appending(awaited)) == nil }
      isMissingWatched = true
    }
    anchors = new
    return isStillMissing
  }

  private func open(_ directory: ItemPath) -> SharedDescriptor? {
    // Missing, or not open to this user: the directory above reports a change of that.
    try? SharedDescriptor(FileDescriptor.open(directory.text, [.pathOnly, .directory]))
  }
}
