import Wormhole
import WormholeSystem
import WormholeToolkit

/// The known state of a presented item: the item itself, and for a directory every entry at any
/// depth, as of the last look.
///
/// Each directory has a watch, whose events name the entries to look at again; the difference from
/// the known state is what has happened. A directory is watched first and then listed. If events
/// were lost, all names in a directory are compared, so that no lasting change is missed.
///
/// A missing name may appear elsewhere a moment later, because a move's two events are separate
/// (inotify(7)). So it is reported as gone at a later look, which leaves time for the second.
struct ItemTree {
  typealias NodeID = Int

  struct Entry {
    var known: EntryStatus
    /// Its own node, for a directory.
    var node: NodeID?
  }

  struct Node {
    /// Nil for the item itself.
    var place: Place?
    var entries: [FileName: Entry] = [:]
    var watch: Watch?
  }

  /// An entry that has left its place.
  struct Vanished {
    let path: ItemPath
    let entry: Entry
    var isOld = false
  }

  /// A name in a directory.
  struct Place: Equatable {
    let node: NodeID
    let name: FileName
  }

  /// The item itself.
  static let rootID: NodeID = 0
  /// The directories above it: their events do not belong to the tree.
  static let wayID: NodeID = -1
  static let events: WatchEvents = [
    .attributes, .closedAfterWriting, .created, .deleted, .movedFrom, .movedTo, .selfDeleted,
    .selfMoved,
  ]
  /// For an item that is not a directory.
  static let fileEvents: WatchEvents = [
    .attributes, .modified, .closedAfterWriting, .selfDeleted, .selfMoved,
  ]

  var nodes: [NodeID: Node] = [:]
  var vanished: [FileStatus.Identity: Vanished] = [:]
  /// The last known place of each file: a move may report the new place before the old one.
  var places: [FileStatus.Identity: Place] = [:]
  /// News of directories that are missing from their places: they are being moved.
  var postponed: [NodeID: (news: WatchNews, isOld: Bool)] = [:]
  var lastID = Self.rootID
  private(set) var root: SharedDescriptor
  /// The last known status of the item itself.
  var known: EntryStatus
  let hear: @Sendable (NodeID, WatchNews) -> Void

  // The findings of the current look, and its remaining work.
  private var path = ItemPath("/")
  private var notices: [PresenterNotice] = []
  private var appeared: [(place: Place, status: FileStatus)] = []
  private var waiting: [(key: NodeID, value: WatchNews)] = []

  /// Watches the item, and lists it if it is a directory.
  ///
  /// - Complexity: one look at each entry at any depth, and one watch for each directory.
  init(
    _ root: SharedDescriptor, _ status: FileStatus,
    hear: @escaping @Sendable (NodeID, WatchNews) -> Void
  ) {
    self.root = root
    self.hear = hear
    known = EntryStatus(status)
    nodes[Self.rootID] = Node()
    if isOfDirectory {
      _ = look([Self.rootID: .everything], at: path, isLast: true)
    } else {
      watch(Self.rootID, root.descriptor, for: Self.fileEvents)
    }
  }

  var isOfDirectory: Bool { known.status.kind == .directory }

  /// Whether a second look, a moment later, is needed to decide.
  var mustLookAgain: Bool { !vanished.isEmpty || postponed.values.contains { !$0.isOld } }

  /// The directory was replaced by another one: the next look at everything finds the differences.
  mutating func replaceRoot(by root: SharedDescriptor) {
    self.root = root
    nodes[Self.rootID]?.watch = nil
  }

  /// Whether the directory itself has not been looked into since it was replaced.
  var isReplaced: Bool { nodes[Self.rootID]?.watch == nil }

  // MARK: Looking

  /// Looks where the news point, and returns what has happened.
  ///
  /// - Parameters:
  ///   - path: the current path of the directory.
  ///   - isLater: whether this is the second look, made a moment later. Other looks, for news of
  ///     other directories, may come between a move's two events.
  ///   - isLast: whether a missing entry is reported as gone at once.
  mutating func look(
    _ news: [NodeID: WatchNews], at path: ItemPath, isLater: Bool = false, isLast: Bool
  ) -> [PresenterNotice] {
    guard isOfDirectory else { return [] }
    self.path = path
    var news = news
    for (id, old) in postponed {
      news[id, default: WatchNews()].merge(old.news)
      postponed[id]?.isOld = true
    }
    // From the top, so that a replaced directory is known before its contents.
    waiting = news.sorted { $0.key > $1.key }
    while true {
      if let (id, news) = waiting.popLast() {
        examine(id, after: news)
      } else if let (place, status) = appeared.popLast() {
        appear(status, at: place)
      } else {
        break
      }
    }
    settle(isLater: isLater, isLast: isLast)
    return exchange(&notices, with: [])
  }

  private mutating func examine(_ id: NodeID, after news: WatchNews) {
    // Removed, and perhaps made again with the same number: the current entry is not watched.
    if !news.own.isDisjoint(with: [.selfDeleted, .ignored]) { nodes[id]?.watch = nil }
    guard let isWatched = nodes[id].map({ $0.watch != nil }),
      !isWatched || news.isEverything || !news.names.isEmpty
    else { return }
    guard let directory = open(id) else {
      // Moved or replaced, and its parent reports it, now or in a moment; or not ours to read.
      if id != Self.rootID { postponed[id] = (news, postponed[id]?.isOld ?? false) }
      return
    }
    postponed[id] = nil
    var names = Set(news.names.keys)
    if !isWatched || news.isEverything {
      // Watched first, then listed.
      if !isWatched { watch(id, directory.descriptor, for: Self.events) }
      if let known = nodes[id]?.entries.keys { names.formUnion(known) }
      // It was just removed: its known entries are found to be gone, name by name.
      names.formUnion(((try? directory.descriptor.entries()) ?? []).map(\.name))
    }
    let path = path(of: id)
    // The node itself is looked up for each name: a copy of it in a variable would make the first
    // change copy all its entries.
    for name in names where !isOwn(name, in: directory) {
      compare(
        Place(node: id, name: name), in: directory, at: path, after: news.names[name] ?? [])
    }
  }

  private mutating func compare(
    _ place: Place, in directory: SharedDescriptor, at path: ItemPath, after events: WatchEvents
  ) {
    let now = statusIfVisible(place.name.text, at: directory.descriptor.rawValue)
    switch (nodes[place.node]?.entries[place.name], now) {
    case (nil, nil): return
    case (nil, let now?):
      appeared.append((place, now))
    case (let old?, nil): vanish(old, from: place, at: path.appending(place.name))
    case (let old?, let now?):
      guard old.known.differs(from: now, after: events, writing: .closedAfterWriting) else {
        return
      }
      notices.append(.subitemChanged(path.appending(place.name)))
      update(old, at: place, to: now)
    }
  }

  private func isOwn(_ name: FileName, in directory: SharedDescriptor) -> Bool {
    if ItemSite.isSite(name) { return true }
    // The meeting place of presenters and coordinators in a container: changes there concern them.
    guard [NameKind.own, ContainerFormat.mailboxes].contains(name.text) else { return false }
    let status = statusIfVisible("container.plist", at: directory.descriptor.rawValue)
    return status?.kind == .regular
  }

  private mutating func update(_ old: Entry, at place: Place, to now: FileStatus) {
    var entry = Entry(known: EntryStatus(now), node: old.node)
    if now.kind != .directory, let node = old.node {
      drop(node)
      entry.node = nil
    }
    if now.kind == .directory, old.node == nil {
      entry.node = makeNode(at: place)
    }
    set(entry, at: place, insteadOf: old)
    guard let node = entry.node else { return }
    let isReplaced = !old.known.status.isSameFile(as: now)
    guard isReplaced || nodes[node]?.watch == nil else { return }
    nodes[node]?.watch = nil
    waiting.append((node, .everything))
  }
}

/// Distinguishes moved entries from new and removed ones.
extension ItemTree {
  private mutating func vanish(_ entry: Entry, from place: Place, at path: ItemPath) {
    set(nil, at: place, insteadOf: entry)
    let identity = entry.known.status.identity
    guard vanished[identity] != nil else {
      vanished[identity] = Vanished(path: path, entry: entry)
      return
    }
    // Another name of a file that is already gone, or its number given to the next file.
    if let node = entry.node { drop(node) }
    notices.append(.subitemChanged(path))
  }

  /// Looks at the old place of a file that has appeared elsewhere.
  private mutating func lookForOld(_ identity: FileStatus.Identity) {
    guard let place = places[identity], let directory = open(place.node),
      let entry = nodes[place.node]?.entries[place.name],
      statusIfVisible(place.name.text, at: directory.descriptor.rawValue) == nil
    else { return }
    vanish(entry, from: place, at: path(of: place.node).appending(place.name))
  }

  private mutating func appear(_ status: FileStatus, at place: Place) {
    let path = path(of: place.node).appending(place.name)
    let identity = status.identity
    var entry = Entry(known: EntryStatus(status))
    if vanished[identity] == nil { lookForOld(identity) }
    if let old = vanished[identity], isMoved(old, to: status, at: path) {
      vanished[identity] = nil
      notices.append(.subitemMoved(old.path, path))
      entry.node = old.entry.node
      if let node = entry.node { nodes[node]?.place = place }
    } else {
      notices.append(.subitemAppeared(path))
      if status.kind == .directory {
        let node = makeNode(at: place)
        entry.node = node
        waiting.append((node, .everything))
      }
    }
    set(entry, at: place, insteadOf: nil)
  }

  // An inode number alone proves little, because a file system gives a removed file's number to the
  // next new one.
  private func isMoved(_ old: Vanished, to new: FileStatus, at path: ItemPath) -> Bool {
    let known = old.entry.known.status
    guard known.isUnwritten(in: new), known.kind == new.kind, old.path != path else { return false }
    // Of a removed directory only its number is left, which a new one may have.
    guard let node = old.entry.node else { return true }
    return nodes[node]?.watch != nil
  }

  private mutating func settle(isLater: Bool, isLast: Bool) {
    for (identity, gone) in vanished {
      guard isLast || (isLater && gone.isOld) else {
        vanished[identity]?.isOld = true
        continue
      }
      vanished[identity] = nil
      if let node = gone.entry.node { drop(node) }
      notices.append(.subitemChanged(gone.path))
    }
  }
}

/// The directories of the tree and their contents.
extension ItemTree {
  mutating func set(_ entry: Entry?, at place: Place, insteadOf old: Entry?) {
    if let old { forget(old.known.status.identity, at: place) }
    nodes[place.node]?.entries[place.name] = entry
    if let entry { places[entry.known.status.identity] = place }
  }

  private mutating func forget(_ identity: FileStatus.Identity, at place: Place) {
    // For a file with several names, another name may be the last one seen.
    if places[identity] == place { places[identity] = nil }
  }

  mutating func makeNode(at place: Place) -> NodeID {
    lastID += 1
    nodes[lastID] = Node(place: place)
    return lastID
  }

  mutating func drop(_ id: NodeID) {
    var waiting = [id]
    while let next = waiting.popLast() {
      guard let node = nodes.removeValue(forKey: next) else { continue }
      postponed[next] = nil
      for (name, entry) in node.entries {
        forget(entry.known.status.identity, at: Place(node: next, name: name))
        if let node = entry.node { waiting.append(node) }
      }
    }
  }

  private mutating func watch(
    _ id: NodeID, _ file: borrowing FileDescriptor, for events: WatchEvents
  ) {
    let hear = hear
    nodes[id]?.watch = ChangeMonitor.shared.watchOpen(file, events) { hear(id, $0) }
  }

  /// - Returns: nil when the directory is not at its place, or may not be read.
  func open(_ id: NodeID) -> SharedDescriptor? {
    guard let node = nodes[id] else { return nil }
    let names = names(to: id).map(\.text)
    let path = names.isEmpty ? "." : names.joined(separator: "/")
    do throws(Errno) {
      let directory = try FileDescriptor.openBeneath(
        path, at: root.descriptor.rawValue, [.readOnly, .directory])
      if let place = node.place {
        // Another node may now have the name.
        guard let entry = nodes[place.node]?.entries[place.name], entry.node == id,
          try directory.status().isSameFile(as: entry.known.status)
        else { return nil }
      }
      return SharedDescriptor(directory)
    } catch {
      return nil
    }
  }

  private func names(to id: NodeID) -> [FileName] {
    var names: [FileName] = []
    var next = id
    while let place = nodes[next]?.place {
      names.append(place.name)
      next = place.node
    }
    return names.reversed()
  }

  private func path(of id: NodeID) -> ItemPath { names(to: id).reduce(path) { $0.appending($1) } }

  /// The directory that knows of a path below it, and the name there; nil if there is none.
  func place(of components: [FileName]) -> Place? {
    guard let name = components.last else { return nil }
    var id = Self.rootID
    for component in components.dropLast() {
      guard let next = nodes[id]?.entries[component]?.node else { return nil }
      id = next
    }
    return Place(node: id, name: name)
  }
}
