import Dispatch
import Synchronization
import WormholePropertyLists
import WormholeSystem

/// A mailbox in a directory; see `MailboxDirectory` for its files.
///
/// A few small entries are read on the monitor's own thread, because each hop to another thread costs
/// more than reading them; many entries, large ones and complete scans go to a queue.
final class DirectoryMailbox: Mailbox {
  /// How many entries are read on the monitor's thread at most.
  private static let promptEntries = 8
  private static let promptBytes = 65_536

  private struct State {
    var directory: MailboxDirectory.LockedDirectory?
    /// The watch that reports the removal of the lock's file, and the directory that the file is
    /// in.
    var ownerWatch: (watch: Watch, directory: MailboxDirectory.LockedDirectory)?
    var isClosed = false
    var watch: Watch?
    /// Whether entries may be read on the monitor's thread: not on a network's file system.
    var isPrompt = false
    /// Whether a thread is reading; it looks for more news before it stops.
    var isReading = false
    var news: WatchNews?
    /// Whether an entry could not be read, for a lack of descriptors for example: until it is read,
    /// each look begins with it, so that no later entry overtakes it.
    var isBehind = false
    /// Whether another look is due because of it.
    var isLookDue = false
    /// Entries that were delivered but could not be unlinked, and are not to be delivered again.
    var stuck: Set<EntryFile> = []
    /// The threads that wait for the end of a complete scan that begins from now on.
    var waiting: [DispatchSemaphore] = []
  }

  var address: String { place.address }
  private let place: MailboxDirectory
  private let deliver: @Sendable (PropertyListValue) -> Void
  private let state = Mutex(State())
  private let making = Mutex(())
  private let queue = Blocking.queue()

  init(
    _ place: MailboxDirectory, deliver: @escaping @Sendable (PropertyListValue) -> Void
  ) throws {
    self.place = place
    self.deliver = deliver
    try reporting("make a mailbox", path: place.path) { try prepare() }
    let root = place.root
    let watch = ChangeMonitor.shared.watch(
      path: place.path, parents: [root.path, root.path + "/" + MailboxDirectory.kind],
      [.movedTo], prepare: { [weak self] in try self?.prepare() },
      hear: { [weak self] in self?.hear($0) })
    state.withLock { state in
      state.watch = watch
      state.isPrompt = watch.detection == .events
    }
    watchOwner()
  }

  deinit { end(asDeath: false) }

  func end(asDeath: Bool) {
    let (watch, ownerWatch, directory) = state.withLock { state in
      // Excludes: the monitor recreating it after this.
      state.isClosed = true
      return (state.watch.take(), state.ownerWatch.take(), state.directory.take())
    }
    watch?.cancel()
    ownerWatch?.watch.cancel()
    guard directory != nil, !asDeath else { return }
    // Its lock ends now in any case, and the next sweep tries again.
    try? place.remove()
  }

  /// Creates the directory if it is missing, under the address that others know.
  private func prepare() throws {
    // Excludes: two threads creating it at once. Reading does not take this lock, so that the
    // monitor's thread does not wait for a file system that does not respond.
    try making.withLock { _ in
      let (isClosed, old) = state.withLock { ($0.isClosed, $0.directory) }
      guard !isClosed else { throw Errno.noSuchFile }
      if let directory = old {
        // A directory that cannot be examined counts as missing.
        let found = try? fileStatus(place.path)
        if found?.isSameFile(as: directory.status) == true { return }
      }
      let new = try place.make()
      let isWanted = state.withLock { state in
        if !state.isClosed { state.directory = new }
        return !state.isClosed
      }
      if isWanted { return }
      try place.remove()
      throw Errno.noSuchFile
    }
  }

  // An open directory, or a file in it, reports its own removal only when it is closed (inotify(7),
  // IN_DELETE_SELF); the lock's file reports at once that it has lost a name.
  private func watchOwner() {
    let (current, watched) = state.withLock { ($0.directory, $0.ownerWatch?.directory) }
    guard let current, watched !== current else { return }
    let queue = queue
    let look: @Sendable () -> Void = { [weak self] in self?.leaveIfRemoved(current) }
    let watch = ChangeMonitor.shared.watchOpen(current.owner, [.attributes]) { _ in
      queue.async(execute: look)
    }
    let old = state.withLock { state in
      exchange(&state.ownerWatch, with: state.isClosed ? nil : (watch, current))
    }
    old?.watch.cancel()
    leaveIfRemoved(current)
  }

  private func leaveIfRemoved(_ directory: MailboxDirectory.LockedDirectory) {
    guard directory.isRemoved else { return }
    let old = state.withLock { state in
      guard state.directory === directory else { return nil as Watch? }
      state.directory = nil
      return state.ownerWatch.take()?.watch
    }
    old?.cancel()
    ChangeMonitor.shared.noteRemoval(in: place.root.path)
    ChangeMonitor.shared.whenSettled(place.root.path, on: queue) { [weak self] in
      self?.makeAgain()
    }
  }

  private func makeAgain() {
    // Closed; or an error of the file system: the monitor tries again when the directory is gone.
    guard (try? prepare()) != nil else { return }
    hear(.everything)
  }

  // MARK: Reading

  private func hear(_ news: WatchNews) {
    let (mustRead, prompt) = state.withLock { state -> (Bool, [EntryFile]?) in
      // Excludes: two readers at once, because the second could overtake the first.
      guard !state.isReading else {
        state.news = state.news ?? WatchNews()
        state.news?.merge(news)
        return (false, nil)
      }
      state.isReading = true
      let prompt = state.isPrompt && !state.isBehind ? Self.promptNames(news) : nil
      // Under the same lock, so that it replaces no news that comes meanwhile.
      if prompt == nil { state.news = news }
      return (true, prompt)
    }
    guard mustRead else { return }
    if let prompt {
      takeAll { () throws(Errno) in prompt }
      guard !isDone() else { return }
    }
    queue.async { [weak self] in self?.readOn() }
  }

  func lookAgain() { hear(.everything) }

  func catchUp() {
    let look = DispatchSemaphore(value: 0)
    state.withLock { $0.waiting.append(look) }
    hear(.everything)
    look.wait()
  }

  private func readOn() {
    while !isDone() {
      let (found, waiting) = state.withLock { state in
        let news = state.news.take()
        guard news?.isEverything == true else { return (news, [DispatchSemaphore]()) }
        defer { state.waiting = [] }
        return (news, state.waiting)
      }
      defer { for look in waiting { look.signal() } }
      guard let news = found else { continue }
      if news.isEverything || !news.own.isEmpty || state.withLock(\.isBehind) {
        lookAtEverything()
      } else {
        takeAll { () throws(Errno) in Self.entries(in: news) }
      }
    }
  }

  /// Returns whether there is no more news; if so, no thread is reading from now on.
  private func isDone() -> Bool {
    state.withLock { state in
      state.isReading = state.news != nil
      return !state.isReading
    }
  }

  private static func promptNames(_ news: WatchNews) -> [EntryFile]? {
    guard !news.isEverything, news.own.isEmpty, news.names.count <= promptEntries else {
      return nil
    }
    let names = entries(in: news)
    return names.reduce(0) { $0 + $1.bytes } <= promptBytes ? names : nil
  }

  /// The entries that have come, in their order.
  private static func entries(in news: WatchNews) -> [EntryFile] {
    let names = news.names.keys.compactMap { EntryFile(bytes: $0.bytes) }
    return names.count > 1 ? names.sorted() : names
  }

  // Anything later than this scan has an event of its own.
  private func lookAtEverything() {
    watchOwner()
    guard let directory = state.withLock(\.directory) else { return }
    takeAll { () throws(Errno) in
      try EntryFile.ordered { () throws(Errno) in (try entries(directory), false) }
    }
  }

  /// Takes entries in their order, up to one that cannot be read now.
  private func takeAll(_ names: () throws(Errno) -> [EntryFile]) {
    do throws(Errno) {
      for name in try names() { try take(name) }
      state.withLock { $0.isBehind = false }
    } catch {
      let isFirst = state.withLock { state in
        state.isBehind = true
        return !exchange(&state.isLookDue, with: true)
      }
      guard isFirst else { return }
      Blocking.retry { [weak self] in
        self?.state.withLock { $0.isLookDue = false }
        self?.hear(.everything)
      }
    }
  }

  private func entries(_ mailbox: MailboxDirectory.LockedDirectory) throws(Errno) -> [EntryFile] {
    let directory = mailbox.directory.rawValue
    let names = try SharedContainer.entries(".", at: directory)?.map(\.name) ?? []
    for name in names where name.hasPrefix(MailboxDirectory.stagedPrefix) {
      ContainerRoot.sweepStaged(name.text, at: directory)
    }
    return names.compactMap { EntryFile(bytes: $0.bytes) }
  }

  // MARK: One entry

  private func take(_ name: EntryFile) throws(Errno) {
    guard let mailbox = state.withLock(\.directory),
      !state.withLock({ $0.stuck.contains(name) })
    else { return }
    let text = name.text
    let directory = mailbox.directory.rawValue
    do throws(Errno) {
      let content = try place.root.readEntry(
        text, at: directory, beside: mailbox.status, maximumBytes: MailboxOutlet.maximumBytes)
      switch content {
      // Read already, or the whole mailbox is gone.
      case .missing: return
      case .foreign: try removeFile(text, at: directory)
      case .bytes(let bytes, _):
        // The reason does not matter: its sender wrote no property list, and it can be looked at there.
        guard let value = try? PropertyListValue(bytes: bytes) else {
          return try Quarantine.take(FileName(text), at: directory, root: place.root)
        }
        // Before the unlink, because no thread needs to wait for it: if this process dies in
        // between, the mailbox dies with it, and so does the receiver of the entry.
        deliver(value)
        try removeFile(text, at: directory)
      }
    } catch {
      guard error != .noSuchFile else { return }
      guard !error.isLackOfDescriptors else { throw error }
      state.withLock { _ = $0.stuck.insert(name) }
    }
  }
}
