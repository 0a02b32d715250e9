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
      The lines are the events of a file presenter:
      'changed': content or attributes changed, or the item appeared
      'removed': the item is gone
      'moved PATH': the item is at PATH now
      'relinquish reader': a coordinated reader is about to use the item
      'reacquire reader': and has ended
      'relinquish writer': a coordinated writer is about to use the item
      'reacquire writer': and has ended
      'save': write what is not written yet
      'deleting': a coordinated writer is about to delete or replace the item

      For a directory there are also 'appeared PATH', 'changed PATH', 'removed PATH', 'deleting PATH' and \
      'moved PATH<tab>PATH', at any depth, with paths relative to it.

      Changes by any program are noticed; several may be printed as one 'changed'. Names that are not UTF-8 \
      are left out. Coordinators find the command in its user's data, so it needs HOME or XDG_DATA_HOME. It prints \
      'listening' on standard error; from then on it misses nothing. It delays nobody: it answers \
      every question at once.
      """,
    arguments: [
      .operand("file", .file, help: "A file or directory; it need not exist yet."),
      .count, .timeout, .readyDescriptor,
      .flag("json", help: "Print lines of JSON: {\"event\": ..., \"subitem\": ..., \"to\": ...}."),
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
    try arguments.handleEach(of: backlog.next, until: deadline) { event in
      try environment.print(arguments, json: event.propertyList, text: event.line)
      return .done
    }
  }
}

/// The presenter of `wormhole watch`: it answers every question at once, and adds it to a backlog.
final class PrintingPresenter: FilePresenter {
  let presentedItemQueue = DispatchQueue(label: "wormhole.watch")
  private let place: Mutex<URL>
  private let backlog: Backlog<PresenterEvent>

  /// - Throws: `Errno` when the directories above the item may not be searched.
  init(_ file: String, _ backlog: Backlog<PresenterEvent>) throws(Errno) {
    place = Mutex(try Self.resolved(file))
    self.backlog = backlog
  }

  var presentedItemURL: URL? { place.withLock { $0 } }

  /// The item by the path that the kernel gives it, so that paths within it can be made relative. A
  /// link is followed, and an item that does not exist yet keeps the path of the command line.
  private static func resolved(_ file: String) throws(Errno) -> URL {
    let url = URL(filePath: file)
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

  /// A path within the item; absolute if it is not.
  private func relative(_ url: URL) -> String {
    let prefix = place.withLock { $0.path } + "/"
    return url.path.hasPrefix(prefix) ? String(url.path.dropFirst(prefix.count)) : url.path
  }

  // MARK: Questions

  func relinquishPresentedItem(
    toReader reader: @escaping @Sendable (_ reacquirer: (@Sendable () -> Void)?) -> Void
  ) {
    backlog.add(.init(word: "relinquish", other: "reader"))
    reader { [backlog] in backlog.add(.init(word: "reacquire", other: "reader")) }
  }

  func relinquishPresentedItem(
    toWriter writer: @escaping @Sendable (_ reacquirer: (@Sendable () -> Void)?) -> Void
  ) {
    backlog.add(.init(word: "relinquish", other: "writer"))
    writer { [backlog] in backlog.add(.init(word: "reacquire", other: "writer")) }
  }

  func savePresentedItemChanges(completionHandler: @escaping @Sendable ((any Error)?) -> Void) {
    backlog.add(.init(word: "save"))
    completionHandler(nil)
  }

  func accommodatePresentedItemDeletion(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) {
    backlog.add(.init(word: "deleting"))
    completionHandler(nil)
  }

  func accommodatePresentedSubitemDeletion(
    at url: URL, completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) {
    backlog.add(.init(word: "deleting", subitem: relative(url)))
    completionHandler(nil)
  }

  // MARK: Events

  func presentedItemDidMove(to newURL: URL) {
    place.withLock { $0 = newURL }
    backlog.add(.init(word: "moved", to: newURL.path))
  }

  /// The word for a change: the item may be gone.
  private func word(at url: URL) -> String {
    // An item that cannot be looked at is there.
    (try? exists(url.path, at: Directory.current)) ?? true ? "changed" : "removed"
  }

  func presentedItemDidChange() { backlog.add(.init(word: word(at: place.withLock { $0 }))) }

  func presentedSubitemDidAppear(at url: URL) {
    backlog.add(.init(word: "appeared", subitem: relative(url)))
  }

  func presentedSubitem(at oldURL: URL, didMoveTo newURL: URL) {
    backlog.add(.init(word: "moved", subitem: relative(oldURL), to: relative(newURL)))
  }

  func presentedSubitemDidChange(at url: URL) {
    backlog.add(.init(word: word(at: url), subitem: relative(url)))
  }
}

/// An event of a file presenter, as `wormhole watch` prints it: a word, and fields after it.
struct PresenterEvent: Sendable, Hashable {
  let word: String
  /// The other side of a question: "reader" or "writer".
  var other: String?
  var subitem: String?
  var to: String?

  /// `moved old<TAB>new`: paths may contain spaces, and their control characters are escaped.
  var line: String {
    let fields = [other, subitem, to].compactMap { $0?.onOneLine }
    return fields.isEmpty ? word : word + " " + fields.joined(separator: "\t")
  }

  /// `{"event":"moved","subitem":"old","to":"new"}`.
  var propertyList: PropertyListValue {
    .object(["event": word, "other": other, "subitem": subitem, "to": to])
  }

  /// Events that have not been printed yet. Beyond `capacity` all waiting events become one
  /// `changed`: a slow reader of our output delays no other process, because the presenter has
  /// answered already, and costs no more memory than this.
  static func backlog(capacity: Int = 10_000) -> Backlog<PresenterEvent> {
    Backlog { events, event in
      if events.count >= capacity { events = [.init(word: "changed")] }
      events.append(event)
    }
  }
}
