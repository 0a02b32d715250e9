import Synchronization
import Wormhole
import WormholeSystem
import WormholeToolkit

/// The monitor of a container in a directory: the kernel's events say which entries to look at, and
/// each is compared with what was seen before.
final class DirectoryMonitor: Watching {
  private let root: ContainerRoot
  /// Nil after the end.
  private let news = Mutex<[String: WatchNews]?>([:])
  private let queue = Blocking.queue()
  /// The queue alone uses it, so no thread waits for this lock.
  let scan: Mutex<DirectoryScan>

  init(
    of container: SharedContainer, isNew: Bool,
    _ hear: @escaping @Sendable (ContainerEvent) -> Void
  ) {
    root = container.root
    scan = Mutex(DirectoryScan(container, hear))
    queue.sync { scan.withLock { $0.begin(self, isNew: isNew) } }
    lookLater()
  }

  var detection: ChangeDetection { scan.withLock { $0.seen["."]?.watch.detection ?? .events } }

  /// The kernel does not report the removal of a directory while a process has it open, as this
  /// process does: so the path is compared with the container now and then.
  private func lookLater() {
    Timers.after(DirectoryScan.checkInterval) { [weak self] in
      guard let self, news.withLock({ $0 != nil }) else { return }
      queue.async { [weak self] in self?.look() }
      lookLater()
    }
  }

  func look() { scan.withLock { $0.look() } }

  func cancel() { news.withLock { $0 = nil } }

  /// Watches a directory without its parents, and in one lane: no observer of this process waits for a
  /// removal here, and each lane has a thread when all places are compared.
  fileprivate func watch(_ path: String) -> Watch {
    let isTop = path == "."
    return ChangeMonitor.shared.watch(
      path: isTop ? root.path : root.path + "/" + path, parents: [], way: isTop ? root.path : nil,
      lane: root.path + "/.", prepare: {}, hear: { [weak self] in self?.hear($0, of: path) })
  }

  fileprivate func hear(_ news: WatchNews, of path: String) {
    let isFirst = self.news.withLock { known in
      defer { known?[path, default: WatchNews()].merge(news) }
      return known?.isEmpty ?? false
    }
    if isFirst { queue.async { [weak self] in self?.look() } }
  }

  /// - Returns: Nil after the end.
  fileprivate func take() -> [String: WatchNews]? {
    news.withLock { news in
      defer { if news != nil { news = [:] } }
      return news
    }
  }
}

/// The scan of the directories of a container, each with its path in it; "." is the container's.
struct DirectoryScan {
  /// What the entries of a directory belong to.
  struct Owner {
    let kind: NameKind
    let name: String
    /// The directory of the name, and the parts of this one.
    let home: String
    let parts: [ContainerPart]
  }

  /// A watched directory.
  struct Seen {
    var watch: Watch
    let owner: Owner?
    /// The entries, with the versions of values, or why they cannot be read.
    var entries: [String: String] = [:]
    // Of the directory of a presence.
    var members: KnownMembers = [:]
    var checks: FollowUpChecks?
  }

  static let checkInterval: Duration = .seconds(1)
  private static let kinds = Dictionary(
    uniqueKeysWithValues: (NameKind.users + NameKind.owns).map { ($0.path, $0) })

  private let container: SharedContainer
  private let hear: @Sendable (ContainerEvent) -> Void
  private weak var monitor: DirectoryMonitor?
  /// Whether the findings predate the monitor.
  private var isBeginning = true
  /// The container's directory; nil if it cannot be opened now, so that nothing is seen.
  private var directory: ContainerRoot.Handle?
  private var checked = ContinuousClock.now
  private(set) var seen: [String: Seen] = [:]
  private var events: [ContainerEvent] = []

  init(_ container: SharedContainer, _ hear: @escaping @Sendable (ContainerEvent) -> Void) {
    (self.container, self.hear) = (container, hear)
  }

  mutating func begin(_ monitor: DirectoryMonitor, isNew: Bool) {
    (self.monitor, isBeginning) = (monitor, !isNew)
    seen["."] = Seen(watch: monitor.watch("."), owner: nil)
    findContainer()
    isBeginning = false
    reportEvents()
  }

  mutating func look() {
    if directory == nil || ContinuousClock.now - checked >= Self.checkInterval { findContainer() }
    guard let all = monitor?.take() else {
      seen = [:]
      return
    }
    for (path, news) in all {
      // The path may name another directory now.
      if news.isEverything, path == "." { findContainer() }
      if news.isEverything { lookAtAll(in: path) }
      for (name, events) in news.names { look(at: name.text, in: path, events) }
    }
    reportEvents()
  }

  /// Opens the container again if the path names another directory now.
  private mutating func findContainer() {
    let old = directory
    // It fails while there is no container; when there is one again, everything is examined.
    directory = try? container.root.refreshed(container.root.handle())
    checked = .now
    guard directory !== old, directory != nil else { return }
    let known = seen.keys.sorted()
    for path in known where path != "." {
      if let watch = monitor?.watch(path) { seen[path]?.watch = watch }
    }
    for path in known { lookAtAll(in: path) }
  }

  /// Reports events at the end of the look, when all directories that existed when they happened
  /// are watched: so no event is missed that a process causes because it waited for one of them.
  private mutating func reportEvents() {
    for event in exchange(&events, with: []) { hear(event) }
  }

  // MARK: Finding the way

  private mutating func lookAtAll(in path: String) {
    for name in Set(list(path)).union((seen[path]?.entries ?? [:]).keys).sorted() {
      look(at: name, in: path, [])
    }
    if let owner = seen[path]?.owner { lookAtMembers(owner) }
  }

  private mutating func look(at name: String, in path: String, _ events: WatchEvents) {
    let child = path == "." ? name : path + "/" + name
    if Self.kinds.keys.contains(where: { $0 == child || $0.hasPrefix(child + "/") }) {
      enter(child, nil, in: path, name)
    } else if let kind = Self.kinds[path] {
      var unreported = NameFaults()
      // An entry that cannot be read, or a long name that is being created, has none yet.
      let found = try? SharedContainer.identifier(
        of: FileName(name), kind, in: container.root, &unreported)
      let known = seen[child]?.owner?.name ?? found
      guard let known else { return }
      let parts = container.root.parts(of: kind.primitive)
      enter(child, Owner(kind: kind, name: known, home: child, parts: parts), in: path, name)
    } else if let owner = seen[path]?.owner {
      let part = owner.parts.first { $0.isNamed(FileName(name)) }
      guard let part, part.contains({ $0.role.isMonitored }) else { return }
      if let parts = part.parts {
        let inner = Owner(kind: owner.kind, name: owner.name, home: owner.home, parts: parts)
        enter(child, inner, in: path, name)
      } else if [.presence, .consumer].contains(owner.kind.primitive) {
        lookAtMembers(owner)
        if events.contains(.closedAfterWriting) { lookAgain(at: name, owner) }
      } else {
        // Entries may be sent and processed between two looks.
        look(at: child, name, in: path, part.role, owner, isNew: events.contains(.movedTo))
      }
    }
  }

  /// Watches a directory, and looks at all of its content if it is new, or gone.
  private mutating func enter(_ path: String, _ owner: Owner?, in parent: String, _ name: String) {
    let isThere = status(path)?.kind == .directory
    seen[parent]?.entries[name] = isThere ? "" : nil
    guard isThere == (seen[path] == nil), let monitor else { return }
    if isThere { seen[path] = Seen(watch: monitor.watch(path), owner: owner) }
    lookAtAll(in: path)
    if !isThere { seen[path] = nil }
  }

  private func status(_ path: String) -> FileStatus? {
    // A missing or invisible file has no content here.
    directory.flatMap { try? fileStatus(path, at: $0.descriptor.rawValue) }
  }

  private func list(_ path: String) -> [String] {
    guard let directory else { return [] }
    // A missing or invisible directory has no content here.
    let found = try? FileDescriptor.openBeneath(
      path, at: directory.descriptor.rawValue, [.readOnly, .directory]
    ).entries()
    return (found ?? []).map(\.name.text)
  }

  // MARK: Looking

  /// Looks at a value, a notification's state or post, entries of a queue, or a message of a log.
  private mutating func look(
    at path: String, _ name: String, in parent: String, _ role: ContainerPart.Role, _ owner: Owner,
    isNew: Bool
  ) {
    var new = status(path).map { _ in "" }
    if new != nil, role == .content {
      do {
        let value = PlainValue(container: container, identifier: owner.name, kind: owner.kind)
        new = try value.version()?.text
      } catch {
        new = "\(error)"
      }
    }
    let old = seen[parent]?.entries[name]
    seen[parent]?.entries[name] = new
    guard !isBeginning, new != old || isNew && old == nil && role == .waiting else { return }
    let change: ContainerEvent.Change? =
      switch role {
      // A log's content changes with each message.
      case .content where owner.kind.primitive == .log: nil
      case .content: new == nil ? .removed : .changed
      case .post: new == nil ? nil : .posted
      case .message: new == nil ? nil : .appended
      case .taken: new == nil ? .changed : nil
      default: .changed
      }
    guard let change else { return }
    // A file that cannot be read names no process.
    let content = try? directory.map {
      try FileDescriptor.readBeneath(
        path, at: $0.descriptor.rawValue, maximumBytes: SharedContainer.maximumFileBytes
      ) { _ in true }
    }
    let author = ContainerEvent.Author(senderOf: name) ?? .init(publisherOf: content ?? [])
    events.append(ContainerEvent(change, owner.kind, owner.name, by: author))
  }

  /// Briefly asks for each registration's lock, like any look at a presence.
  private mutating func lookAtMembers(_ owner: Owner) {
    guard [.presence, .consumer].contains(owner.kind.primitive) else { return }
    let presence = PresenceDirectory(container: container, name: owner.name, kind: owner.kind)
    do {
      let live = try presence.look(movesAside: false)?.live ?? []
      let members = KnownMembers(live.map { ($0.id, $0) }) { first, _ in first }
      let news = seen[owner.home]?.members.update(members, owner.kind, owner.name) ?? []
      if !isBeginning { events += news }
    } catch {
      // Too many files, or none that may be read: no arrival or departure is known.
    }
  }

  /// The kernel reports that a file was closed just before it frees its lock.
  private mutating func lookAgain(at name: String, _ owner: Owner) {
    var look = WatchNews()
    look.add(FileName(name))
    let checks =
      seen[owner.home]?.checks
      ?? FollowUpChecks { [weak monitor, look] in monitor?.hear(look, of: owner.home) }
    seen[owner.home]?.checks = checks
    checks.begin()
  }
}
