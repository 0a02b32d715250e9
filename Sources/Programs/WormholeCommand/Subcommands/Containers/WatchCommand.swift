import Dispatch
import FoundationEssentials
import Synchronization
import WormholeFiles
import WormholePropertyLists
import WormholeSystem

extension CommandDescription {
  static let watch = CommandDescription(
    name: "watch",
    abstract: "Print the events of a file or directory, one line each.",
    discussion: """
      A line has the words of inotifywait(1): the path, an event, and for a directory the name of the entry in it:
      'MODIFY': content or attributes changed
      'CREATE': it appeared
      'DELETE_SELF', 'DELETE': the item, or an entry, is gone
      'MOVE_SELF': the item is at the path that follows now
      'MOVED_FROM', 'MOVED_TO': the two lines of an entry that has another name or place in the directory
      'Q_OVERFLOW': events were left out, because nobody read the lines in time

      For a directory the entries are those at any depth, and the path is that of the entry's directory.

      FILE is followed by its name: if a link on its path is pointed elsewhere, 'MODIFY' is printed, or the \
      differences of two directories, and from then on the events of the new item.

      Changes by any program are noticed; several may be printed as one. A change under \
      '\(ProgramName.called) lock' is printed once, when the lock has ended. Names that are not UTF-8 \
      are left out. Coordinators find the command in its user's data, so it needs HOME or XDG_DATA_HOME. It prints \
      'listening' on standard error; from then on it misses nothing. It delays nobody: it answers \
      every question at once.

      \(eachCommand) Its environment has WORMHOLE_IDENTIFIER, the path of what has changed, and WORMHOLE_TIME.
      """,
    arguments: [
      .operand("file", .file, help: "A file or directory; it need not exist yet."),
      .count, .timeout, .readyDescriptor,
      .flag(
        "json",
        help: "Print lines of JSON: {\"event\": ..., \"path\": ..., \"subitem\": ..., \"to\": ...}."
      ),
      .command(forEach: "line"),
    ],
    needsContainer: false
  ) { arguments, environment in
    let deadline = arguments.deadline()
    let file = arguments.requiredText("file")
    let backlog = PresenterEvent.backlog()
    let presenter = try reporting(cannot: "watch \(file)", PrintingPresenter(file, backlog))
    try FileCoordinator.addFilePresenter(presenter)
    defer { FileCoordinator.removeFilePresenter(presenter) }
    environment.reportListening()
    try arguments.handleEach(of: { backlog.settled(until: $0) }, until: deadline) { event in
      let path = event.subitem.map { "\(event.path)/\($0)" } ?? event.path
      return try arguments.hand(
        event, text: event.line, titled: path.quoted, environment,
        variables: CommandVariable.common(identifier: path, time: Date(), sender: nil))
    }
  }
}

/// The presenter of `wormhole watch`: it answers every question at once, and adds events to a backlog.
final class PrintingPresenter: FilePresenter {
  let presentedItemQueue = DispatchQueue(label: "wormhole.watch")
  private struct State {
    var place: URL
    /// The path in the lines: that of the command line, until the item is moved.
    var path: String
    /// The item, as it was last reported; nil if there was none.
    var seen: [Int64]?
    /// The coordinated writers that have not ended: their change is one, and reported at its end.
    var writers = 0
  }

  private let state: Mutex<State>
  /// The paths of the item without links, the last one first: what it contains is reported by them.
  private let paths: Mutex<[String]>
  private let backlog: Backlog<PresenterEvent>

  /// - Throws: `Errno` if the directories above the item may not be searched.
  init(_ file: String, _ backlog: Backlog<PresenterEvent>) throws(Errno) {
    let url = URL(filePath: file)
    state = Mutex(State(place: url, path: file, seen: Self.look(url)))
    paths = Mutex([try Self.resolved(url).path])
    self.backlog = backlog
  }

  var presentedItemURL: URL? { state.withLock { $0.place } }

  /// The item's identity and attributes, and a file's times: a directory's entries are reported
  /// themselves.
  private static func look(_ place: URL) -> [Int64]? {
    // After an error it counts as missing: there is nothing whose change could be reported.
    guard let status = try? fileStatus(place.path, followingLinks: true) else { return nil }
    let permissions = [status.permissions, status.owner, status.group].map(Int64.init)
    let identity = [status.device, status.inode].map { Int64(bitPattern: $0) } + permissions
    guard status.kind != .directory else { return identity }
    return identity + [
      status.size, status.modifiedSeconds, status.modifiedNanoseconds, status.changedSeconds,
      status.changedNanoseconds,
    ]
  }

  private func add(_ word: String, subitem: String? = nil, to: String? = nil) {
    backlog.add(.init(word: word, path: state.withLock { $0.path }, subitem: subitem, to: to))
  }

  /// The item by the kernel's path for it. A link is followed, and an item that does not exist yet
  /// keeps the path of the command line.
  private static func resolved(_ url: URL) throws(Errno) -> URL {
    if let directory = try place(ofDirectory: url) { return directory }
    let parent = try place(ofDirectory: url.deletingLastPathComponent())
    return parent?.appending(component: url.lastPathComponent) ?? url
  }

  /// - Returns: nil if there is no directory.
  private static func place(ofDirectory url: URL) throws(Errno) -> URL? {
    let path = url.path.isEmpty ? "." : url.path
    let open = try tolerating(
      [.noSuchFile, .notDirectory], FileDescriptor.open(path, [.pathOnly, .directory]))
    guard let open else { return nil }
    return URL(filePath: try linkTarget("/proc/self/fd/\(open.rawValue)"))
  }

  /// The last paths of the item, the current one first; an event may be older than the current one.
  private func lastPaths() -> [String] {
    let now = FileCoordinator.itemPath(of: self)
    return paths.withLock { paths in
      if let now, now != paths.first { paths = [now] + paths.prefix(8) }
      return paths
    }
  }

  /// A path within the item; absolute if it is not.
  private func relative(_ url: URL) -> String {
    let prefix = lastPaths().map { $0 + "/" }.first { url.path.hasPrefix($0) }
    return String(url.path.dropFirst(prefix?.count ?? 0))
  }

  // MARK: Events

  func relinquishPresentedItem(
    toWriter writer: @escaping @Sendable (_ reacquirer: (@Sendable () -> Void)?) -> Void
  ) {
    state.withLock { $0.writers += 1 }
    writer { [self] in
      state.withLock { $0.writers -= 1 }
      presentedItemDidChange()
    }
  }

  func presentedItemDidMove(to newURL: URL) {
    add("MOVE_SELF", to: newURL.path)
    state.withLock { ($0.place, $0.path, $0.seen) = (newURL, newURL.path, Self.look(newURL)) }
  }

  func presentedItemDidChange() {
    let word = state.withLock { state -> String? in
      guard state.writers == 0 else { return nil }
      let (old, new) = (state.seen, Self.look(state.place))
      state.seen = new
      return old == new ? nil : new == nil ? "DELETE_SELF" : old == nil ? "CREATE" : "MODIFY"
    }
    if let word { add(word) }
  }

  func presentedSubitemDidAppear(at url: URL) { add("CREATE", subitem: relative(url)) }

  func presentedSubitem(at oldURL: URL, didMoveTo newURL: URL) {
    add("MOVED_FROM", subitem: relative(oldURL), to: relative(newURL))
    add("MOVED_TO", subitem: relative(newURL))
  }

  func presentedSubitemDidChange(at url: URL) {
    // An item that cannot be looked at counts as present.
    let isThere = (try? exists(url.path, at: Directory.current)) ?? true
    add(isThere ? "MODIFY" : "DELETE", subitem: relative(url))
  }
}

/// An event of a file presenter, as `wormhole watch` prints it.
struct PresenterEvent: Sendable, Hashable, Encodable {
  let word: String
  /// The path of the watched item.
  let path: String
  /// The path of an entry, relative to it.
  var subitem: String?
  /// The new path of what was moved.
  var to: String?

  /// `{"event":"MOVED_FROM","path":"films","subitem":"old","to":"new"}`.
  private enum CodingKeys: String, CodingKey {
    case path, subitem, to
    case word = "event"
  }

  /// `film.json MODIFY`, `films/old/ CREATE 1.json`: control characters in paths are escaped.
  var line: String {
    guard let subitem else {
      return [path.onOneLine, word, to?.onOneLine].compactMap(\.self).joined(separator: " ")
    }
    let whole = path.hasSuffix("/") ? path + subitem : "\(path)/\(subitem)"
    let end = whole.lastIndex(of: "/").map(whole.index(after:)) ?? whole.startIndex
    return "\(String(whole[..<end]).onOneLine) \(word) \(String(whole[end...]).onOneLine)"
  }

  /// Events that have not been printed yet; one that is the same as the last of them says nothing new.
  /// Beyond `capacity` all of them become one: a slow reader of our output delays no other process,
  /// because the presenter has already answered, and costs no more memory than this.
  static func backlog(capacity: Int = 10_000) -> Backlog<PresenterEvent> {
    Backlog { events, event in
      guard events.last != event else { return }
      if events.count >= capacity { events = [.init(word: "Q_OVERFLOW", path: event.path)] }
      events.append(event)
    }
  }
}
