import Wormhole
import WormholeSystem

/// What is known of a presented item, and what a new look makes of it.
///
/// The item is what its path names; the descriptor of the file that was there last says where that
/// one is when the path names nothing any more (proc_pid_fd(5)). Editors and publishers leave
/// nothing at the path for a moment, so only a second look believes that an item was moved away.
struct ItemLook {
  struct Item {
    let file: SharedDescriptor
    var known: EntryStatus
    /// For a file; a directory is watched by its tree.
    var watch: Watch?
    var tree: ItemTree?
  }

  /// A result, and after how many milliseconds to look again, if at all.
  struct Result {
    var notices: [PresenterNotice] = []
    var nextLook: Int?
  }

  static let fileEvents: WatchEvents = [
    .attributes, .modified, .closedAfterWriting, .selfDeleted, .selfMoved,
  ]
  /// How long a path may name nothing before the item counts as moved away or gone.
  static let absence = 20
  /// How long after the first event of a move the second may come.
  static let moveGap = 5

  private(set) var path: ItemPath?
  private var item: Item?
  private var anchors = PathAnchors()
  private var isMissing = false
  private let hear: @Sendable (WatchSource, WatchNews) -> Void

  init(hear: @escaping @Sendable (WatchSource, WatchNews) -> Void) {
    self.hear = hear
  }

  /// Presents another item; what it is like now counts as known.
  mutating func present(_ path: ItemPath?) {
    self.path = path
    item = nil
    isMissing = false
    guard let path else {
      anchors = PathAnchors()
      return
    }
    _ = find(path)
  }

  /// The item was moved, as its mover reports.
  mutating func follow(to path: ItemPath) {
    self.path = path
    isMissing = false
    anchors.set(path, isPresent: item != nil, hear)
  }

  var isPresent: Bool { item != nil }

  /// Where the tree keeps what it knows of a path in the directory.
  func source(of path: ItemPath) -> (WatchSource, FileName)? {
    guard let components = self.path?.components(to: path),
      let place = item?.tree?.place(of: components)
    else { return nil }
    return (.node(place.node), place.name)
  }

  /// What was there when it was looked at last; nil where nothing was.
  func known(_ path: ItemPath) -> FileStatus? {
    if path == self.path { return item?.known.status }
    guard let tree = item?.tree, let place = self.path?.components(to: path).flatMap(tree.place)
    else { return nil }
    return tree.nodes[place.node]?.entries[place.name]?.known.status
  }

  // MARK: Looking

  /// - Parameters:
  ///   - isLater: whether this is the look that a result asked for.
  ///   - isLast: whether what is gone is to be called gone at once.
  mutating func look(
    _ news: [WatchSource: WatchNews], isLater: Bool = false, isLast: Bool = false
  ) -> Result {
    guard let path else { return Result() }
    var result = Result()
    let status = statusIfVisible(path.text)
    if let status, let item, item.known.status.isSameFile(as: status) {
      isMissing = false
      if news[.way] != nil { anchors.set(path, isPresent: true, hear) }
      lookAtSame(status, news, path, &result)
    } else if status == nil, item != nil {
      guard isMissing || isLast else {
        isMissing = true
        return Result(nextLook: Self.absence)
      }
      lose(path, news, &result)
    } else {
      replace(path, &result)
    }
    lookIntoTree(news, isLater: isLater, isLast: isLast, &result)
    return result
  }

  private mutating func lookAtSame(
    _ status: FileStatus, _ news: [WatchSource: WatchNews], _ path: ItemPath,
    _ result: inout Result
  ) {
    guard let known = item?.known else { return }
    let events = news[.node(ItemTree.rootID)]?.own ?? []
    item?.known = EntryStatus(status)
    if known.differs(from: status, after: events, writing: .modified) {
      result.notices.append(.changed)
    }
  }

  /// The path names nothing: the item is elsewhere, or gone.
  private mutating func lose(
    _ path: ItemPath, _ news: [WatchSource: WatchNews], _ result: inout Result
  ) {
    isMissing = false
    if let place = placeOfFile(), let status = statusIfVisible(place.text) {
      self.path = place
      anchors.set(place, isPresent: true, hear)
      result.notices.append(.moved(place))
      lookAtSame(status, news, place, &result)
      return
    }
    item = nil
    result.notices.append(.changed)
    // Back again already, or in the moment between: reported by the same notice.
    _ = find(path)
  }

  /// Where the file is that was at the path last; nil when it has no name any more, or none that
  /// means anything to others.
  private func placeOfFile() -> ItemPath? {
    guard let item,
      // Without /proc its new place is unknown: then it is gone from its old one.
      let target = try? linkTarget("/proc/self/fd/\(item.file.descriptor.rawValue)"),
      let status = statusIfVisible(target), item.known.status.isSameFile(as: status)
    else { return nil }
    let place = ItemPath(target)
    let isOurs = ([place] + place.ancestors).contains { $0.name.hasPrefix(ItemSite.prefix) }
    return isOurs ? nil : place
  }

  /// There is a different file at the path, or one for the first time.
  private mutating func replace(_ path: ItemPath, _ result: inout Result) {
    let old = item
    isMissing = false
    guard let status = find(path, old: old) else { return }
    if let old, old.tree != nil, item?.tree != nil {
      // The difference between the directories is what the tree finds.
      if old.known.differsInAttributes(from: status) { result.notices.append(.changed) }
    } else {
      result.notices.append(.changed)
    }
  }

  private mutating func lookIntoTree(
    _ news: [WatchSource: WatchNews], isLater: Bool, isLast: Bool, _ result: inout Result
  ) {
    guard let path, item?.tree != nil else { return }
    var ofNodes: [ItemTree.NodeID: WatchNews] = [:]
    for case (.node(let id), let news) in news { ofNodes[id] = news }
    if item?.tree?.isReplaced == true { ofNodes[ItemTree.rootID] = .everything }
    result.notices +=
      item?.tree?.look(ofNodes, at: path, isLater: isLater, isLast: isLast) ?? []
    if item?.tree?.mustLookAgain == true { result.nextLook = Self.moveGap }
  }

  // MARK: Finding

  /// Opens and watches what is at the path, or watches for it to appear.
  ///
  /// - Parameter old: what was there before; a directory's tree is kept for comparison.
  /// - Returns: nil when there is nothing.
  private mutating func find(_ path: ItemPath, old: Item? = nil) -> FileStatus? {
    // Each round watches first and looks then; if the item is replaced all the time, a later look
    // reports it.
    for _ in 0..<10 {
      item = openItem(path, old)
      let isWatched = anchors.set(path, isPresent: item != nil, hear)
      let now = statusIfVisible(path.text)
      switch (item, now) {
      case (nil, nil) where isWatched: return nil
      case (let item?, let now?) where item.known.status.isSameFile(as: now):
        return item.known.status
      default: continue
      }
    }
    return item?.known.status
  }

  private func openItem(_ path: ItemPath, _ old: Item?) -> Item? {
    do throws(Errno) {
      let file = SharedDescriptor(
        try FileDescriptor.open(path.text, [.pathOnly, .noFollow]))
      let hear = hear
      let status = try file.descriptor.status()
      guard status.kind == .directory else {
        let watch = ChangeMonitor.shared.watchOpen(file.descriptor, Self.fileEvents) {
          hear(.node(ItemTree.rootID), $0)
        }
        return Item(file: file, known: EntryStatus(try file.descriptor.status()), watch: watch)
      }
      var tree = old?.tree
      if tree != nil {
        tree?.replaceRoot(by: file, status)
      } else {
        tree = ItemTree(file, status) { hear(.node($0), $1) }
      }
      // Once more, because the attributes may have changed before the tree's watch was there.
      return Item(file: file, known: EntryStatus(try file.descriptor.status()), tree: tree)
    } catch {
      // Gone again, or not ours to open: as if there were nothing.
      return nil
    }
  }
}

/// Where news come from: the way to the item, or a directory of its tree (or the file itself).
enum WatchSource: Hashable, Sendable {
  case way
  case node(ItemTree.NodeID)
}

/// Watches on the directories above an item: by their being moved or removed it is elsewhere or
/// gone, and where nothing is at the path, the nearest existing directory reports the appearance.
struct PathAnchors {
  private var watches: [Watch] = []

  /// Watches the way to a path; a former one's watches end after this.
  ///
  /// - Parameter isPresent: whether the item exists, so that its own watch reports the rest.
  /// - Returns: false when a directory of the way was made at the same time as its watch: no event has
  ///   reported it, and no watch is in it, so the way has to be watched again.
  @discardableResult
  mutating func set(
    _ path: ItemPath, isPresent: Bool,
    _ hear: @escaping @Sendable (WatchSource, WatchNews) -> Void
  ) -> Bool {
    var new: [Watch] = []
    var isStillMissing = true
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
        guard let awaited, !news.isEverything, news.own.isEmpty else { return hear(.way, news) }
        // Whatever else appears beside the way costs nothing more than this.
        if news.names[awaited] != nil { hear(.way, news) }
      }
      // A directory above that may not be watched is not worth looking at all the time for it.
      if watch.detection == .events || awaited != nil { new.append(watch) }
      if let awaited { isStillMissing = self.open(directory.appending(awaited)) == nil }
      isMissingWatched = true
    }
    watches = new
    return isStillMissing
  }

  private func open(_ directory: ItemPath) -> SharedDescriptor? {
    // Missing, or not open to this user: the directory above reports a change of that.
    try? SharedDescriptor(FileDescriptor.open(directory.text, [.pathOnly, .directory]))
  }
}
