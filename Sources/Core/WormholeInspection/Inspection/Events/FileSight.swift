import Dispatch
import Synchronization
import Wormhole
import WormholeSystem
import WormholeToolkit

final class FileSight: ContainerSight {
  private let tree = Mutex<DirectoryTree?>(nil)
  /// The monitor's queue alone uses it, so no thread waits for this lock.
  let looks: Mutex<DirectoryLooks>

  /// How often the path is compared with the container. The kernel does not report that a directory
  /// was removed as long as a process has it open, as this process does.
  static let checkInterval: Duration = .seconds(1)

  init(_ container: SharedContainer, _ hear: @escaping @Sendable (ContainerEvent) -> Void) {
    looks = Mutex(DirectoryLooks(container, hear))
  }

  var detection: ChangeDetection { tree.withLock { $0 }?.detection ?? .events }

  func begin(isNew: Bool, _ signal: @escaping @Sendable () -> Void) throws {
    let tree = looks.withLock { looks in
      let tree = DirectoryTree(looks.container.root, signal)
      looks.begin(in: tree, isNew: isNew)
      return tree
    }
    self.tree.withLock { $0 = tree }
    lookLater(signal)
  }

  private func lookLater(_ signal: @escaping @Sendable () -> Void) {
    Timers.after(Self.checkInterval) { [weak self] in
      guard let self, tree.withLock({ $0?.isCancelled == false }) else { return }
      signal()
      lookLater(signal)
    }
  }

  func look() { looks.withLock { $0.look() } }

  func cancel() { tree.withLock { $0 }?.cancel() }
}

struct KnownName {
  let identifier: String
  var content: ValueMark?
  var bells: Set<FileName> = []
  var followUp: FollowUpChecks?
  var batches: [String: QueuePlace] = [:]
  /// The order of the last batch of each sender that was seen in a queue.
  var newest: [String: UInt64] = [:]
  var notes: Set<String> = []
  var lastMessage = 0
  var takeover: Int64?
}

/// The looks at the names of a directory: each compares the entries with those of the last look,
/// and reports the difference.
struct DirectoryLooks {
  /// An entry of the container, by the primitive that it belongs to.
  struct Place {
    let kind: NameKind
    let identifier: String
    /// The directory of the name, relative to the container.
    let directory: String
    /// The parts of the path below that directory.
    let rest: ArraySlice<String>

    var file: String { rest.last ?? "" }

    /// Relative to the container.
    var path: String { ([directory] + rest).joined(separator: "/") }
  }

  /// The largest number of examined entries in one directory.
  static let maximumEntries = 200_000

  /// How often a look continues with later news before it reports its events.
  private static let rounds = 4

  let container: SharedContainer
  let hear: (ContainerEvent) -> Void
  /// Whether the findings existed before the monitor.
  private(set) var isBeginning = true
  private(set) var tree: DirectoryTree?
  /// The container's directory; nil if it cannot be opened now, so that nothing is seen.
  private var directory: ContainerRoot.Handle?
  private var seen: [ContainerEvent] = []
  private var checked = ContinuousClock.now
  /// The last seen state of each existing name, by its directory.
  var names: [String: KnownName] = [:]
  var members = KnownMembers()
  /// Makes messages visible that would go without a file.
  private var observation: MailboxObservation?
  /// The messages that were seen in each mailbox.
  var messages: [String: Set<String>] = [:]

  init(_ container: SharedContainer, _ hear: @escaping @Sendable (ContainerEvent) -> Void) {
    self.container = container
    self.hear = hear
  }

  mutating func begin(in tree: DirectoryTree, isNew: Bool) {
    self.tree = tree
    isBeginning = !isNew
    _ = tree.enter(DirectoryTree.top)
    findContainer()
    isBeginning = false
    reportSeen()
  }

  mutating func look() {
    if directory == nil || ContinuousClock.now - checked >= FileSight.checkInterval {
      findContainer()
    }
    for _ in 0..<Self.rounds {
      let all = tree?.take() ?? []
      if all.isEmpty { break }
      for (path, news) in all { look(at: news, in: path) }
    }
    reportSeen()
  }

  // Here and below in the order of the names: a message of a log that comes after a later one would be
  // taken for a known one.
  private mutating func look(at news: WatchNews, in path: String) {
    guard !news.isEverything else {
      // The path may name another directory now.
      if path == DirectoryTree.top { findContainer() }
      return lookAtAll(in: path)
    }
    let names = news.names.map { (name: $0.key.text, events: $0.value) }
    for (name, events) in names.sorted(by: { $0.name < $1.name }) {
      look(at: name, in: path, events)
    }
  }

  /// Opens the container again if the path names another directory now.
  private mutating func findContainer() {
    let old = directory
    do {
      directory = try container.root.refreshed(container.root.handle())
    } catch {
      // There is none now; when it exists again, everything is examined.
      directory = nil
    }
    checked = .now
    if directory !== old { observation = nil }
    // Another monitor may have ended.
    observation = observation ?? MailboxObservation(of: container.root)
    guard directory !== old else { return }
    tree?.leaveAll()
    if directory != nil { lookAtAll(in: DirectoryTree.top) }
  }

  /// Reports an event at the end of the look, when all directories are watched that existed when it
  /// happened: then a process that waited for the event causes none that is missed.
  mutating func report(_ event: ContainerEvent) {
    guard !isBeginning || event.change == .known else { return }
    seen.append(event)
  }

  private mutating func reportSeen() {
    for event in seen { hear(event) }
    seen = []
  }

  func status(_ path: String) -> FileStatus? {
    // A missing or invisible file has no content here.
    directory.flatMap { try? fileStatus(path, at: $0.descriptor.rawValue) }
  }

  /// Returns the names of a directory's entries; none if it does not exist.
  func list(_ path: String) -> [String] {
    guard let directory else { return [] }
    var names: [String] = []
    do throws(Errno) {
      let open = try FileDescriptor.openBeneath(
        path, at: directory.descriptor.rawValue, [.readOnly, .directory])
      while names.count < Self.maximumEntries,
        try open.nextEntries({ names.append($0.name.text) })
      {}
    } catch {
      // Gone meanwhile: the part that was read counts.
      return names
    }
    return names
  }

  /// Returns the content of a file; nil if there is none, or it is not the container's.
  func read(_ path: String, maximumBytes: Int) -> [UInt8]? {
    guard let directory else { return nil }
    // An unreadable file is gone, or was put there by another program.
    return try? FileDescriptor.readBeneath(
      path, at: directory.descriptor.rawValue, maximumBytes: maximumBytes
    ) { _ in true }
  }

  // MARK: Finding the way

  /// Watches a directory, and examines all of its content if it is new.
  private mutating func enter(_ path: String) {
    if path != DirectoryTree.top, status(path)?.kind != .directory {
      tree?.leave(path)
    } else if tree?.enter(path) == true {
      lookAtAll(in: path)
    }
  }

  private mutating func lookAtAll(in path: String) {
    var found = Set(list(path))
    // Names that are gone; parts of a name are examined below.
    if Self.kinds.contains(path) {
      for known in names.keys where known.hasPrefix(path + "/") {
        found.insert(String(known.dropFirst(path.count + 1)))
      }
    }
    for name in found.sorted() { look(at: name, in: path, []) }
    if let place = place(of: path) { lookAtMissing(place) }
  }

  private mutating func look(at name: String, in directory: String, _ events: WatchEvents) {
    let path = directory == DirectoryTree.top ? name : directory + "/" + name
    let parts = path.split(separator: "/").map(String.init)
    let depth = parts.count - (parts.first == NameKind.own ? 1 : 0)
    switch depth {
    case 0: enter(path)
    case 1:
      if path == Self.mailboxes || Self.kinds.contains(path) { enter(path) }
    default:
      if parts[0] == Self.mailboxes {
        guard parts.count == 2 else { return lookAtMailbox(parts[1], at: path, events) }
        enter(path)
        if status(path) == nil { messages[parts[1]] = nil }
      } else if let place = place(of: path) {
        if place.rest.isEmpty { enterName(place) } else { lookAtPart(of: place, events) }
      }
    }
  }

  var parts: ContainerParts { container.root.parts }
  private static let mailboxes = ContainerFormat.mailboxes
  private static let kinds = Set((NameKind.users + NameKind.owns).map(\.path))

  private mutating func enterName(_ place: Place) {
    enter(place.directory)
    guard status(place.directory) == nil else { return }
    lookAtMissing(place)
    names[place.directory] = nil
  }

  /// - Returns: Nil for an entry that does not belong to a name.
  private mutating func place(of path: String) -> Place? {
    let parts = path.split(separator: "/").map(String.init)
    let isOwn = parts.first == NameKind.own
    let depth = isOwn ? 2 : 1
    guard parts.count > depth, let primitive = NameKind.Primitive(rawValue: parts[depth - 1])
    else { return nil }
    let kind = NameKind(primitive, isOwn: isOwn)
    let directory = parts[...depth].joined(separator: "/")
    guard let identifier = identifier(of: directory, FileName(parts[depth]), kind) else {
      return nil
    }
    return Place(
      kind: kind, identifier: identifier, directory: directory, rest: parts[(depth + 1)...])
  }

  private mutating func identifier(
    of directory: String, _ name: FileName, _ kind: NameKind
  ) -> String? {
    if let known = names[directory] { return known.identifier }
    // Late news of a missing entry: if remembered, it would never be forgotten.
    guard self.directory != nil, status(directory) != nil else { return nil }
    var unreported = NameFaults()
    // An entry that cannot be read now is reported by the next look at it.
    let found = try? SharedContainer.identifier(of: name, kind, in: container.root, &unreported)
    // A long name that is being created has none yet.
    if let found { names[directory] = KnownName(identifier: found) }
    return found
  }

  private mutating func lookAtPart(of place: Place, _ events: WatchEvents) {
    guard let part = parts.part(at: place.rest, of: place.kind.primitive) else { return }
    if part.parts != nil {
      if part.contains({ $0.role.isMonitored }) { enter(place.path) }
      return
    }
    switch part.role {
    case .content where place.kind.primitive == .value: lookAtValue(place)
    case .content where place.kind.primitive == .notification: lookAtNotification(place)
    case .bell: lookAtNotification(place)
    case .content, .last, .registration:
      if [.presence, .consumer].contains(place.kind.primitive) { lookAtPresence(place, events) }
    case .waiting: lookAtBatch(place, isNew: events.contains(.movedTo))
    case .taken: lookAtBatch(place)
    case .deliveries: lookAtDeliveries(place)
    case .outcome, .failure: lookAtNote(place, isOutcome: part.role == .outcome)
    case .message: lookAtMessage(place)
    case .takeover: lookAtTakeover(place)
    default: return
    }
  }

  /// Looks for entries that may have disappeared without their own event.
  private mutating func lookAtMissing(_ place: Place) {
    switch place.kind.primitive {
    case .value: if place.rest.isEmpty { lookAtValue(place) }
    case .notification: if place.rest.isEmpty { lookAtNotification(place) }
    case .presence, .consumer: lookAtPresence(place, [])
    case .queue: lookAtBatches(place)
    case .log: break
    }
  }
}
