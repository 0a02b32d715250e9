import Dispatch
import Synchronization
import Wormhole
import WormholePropertyLists
import WormholeSystem

/// A mailbox in a directory; see `MailboxDirectory` for its files.
///
/// A few small entries are read on the monitor's own thread, because each hop to another thread
/// costs more than reading them; many entries, large ones and complete scans go to a queue. A
/// separate thread waits for messages on the wire. One of these threads has the turn at a time.
///
/// **Order.** The thread that has the turn finds the names of files, and then takes messages from
/// the wire: so those sent before these files are among them. If a message's sender stored a file
/// before it that was not seen yet, the thread looks at all files first. What was found is
/// delivered by its order.
final class DirectoryMailbox: Mailbox {
  /// The largest number of entries that are read on the monitor's thread.
  private static let promptEntries = 8
  private static let promptBytes = 65_536

  private struct State {
    var directory: MailboxDirectory.LockedDirectory?
    /// The watch that reports the removal of the lock's file, and the directory of that file.
    var ownerWatch: (watch: Watch, directory: MailboxDirectory.LockedDirectory)?
    var isClosed = false
    var watch: Watch?
    /// Whether entries may be read on the monitor's thread: not on a network's file system.
    var isPrompt = false
    /// Whether a thread has the turn; it looks for more news before it stops.
    var isReading = false
    /// The threads that wait for the turn.
    var turns: ArraySlice<DispatchSemaphore> = []
    var news: WatchNews?
    var backlog = WireBacklog()
    /// Whether an entry could not be read, for example for lack of descriptors: until it is read,
    /// each look begins with it, so that no later entry overtakes it.
    var isBehind = false
    /// Whether another look is due because of it.
    var isLookDue = false
    /// Entries that were delivered but could not be unlinked, and are not to be delivered again.
    var stuck: Set<EntryFile> = []
    /// The threads that wait for the end of a complete scan that begins from now on.
    var waiting: [DispatchSemaphore] = []
  }

  private static let behindPause: Duration = .milliseconds(20)

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
      path: place.path, parents: [root.path, root.path + "/" + ContainerFormat.mailboxes],
      way: root.path, [.movedTo], prepare: { [weak self] in try self?.prepare() },
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
    directory?.wire?.end()
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
      guard isWanted else {
        try place.remove()
        throw Errno.noSuchFile
      }
      old?.wire?.end()
      if let wire = new.wire { listen(to: wire) }
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
    directory.wire?.end()
    ChangeMonitor.shared.noteRemoval(in: place.root.path)
    ChangeMonitor.shared.whenSettled(place.root.path, on: queue) { [weak self] in
      // Closed; or an error of the file system: the monitor tries again when the directory is gone.
      guard let self, (try? self.prepare()) != nil else { return }
      self.hear(.everything)
    }
  }

  // MARK: Reading

  private func listen(to wire: MailboxWire) {
    do throws(Errno) {
      try startThread(name: "wormhole.wire") { [weak self] in
        var isOn = true
        while isOn {
          isOn = wire.wait()
          // After its end, take what was sent before.
          guard let self else { return }
          read(from: wire)
        }
      }
    } catch {
      // No thread is left: senders use files.
      wire.end()
    }
  }

  func lead(for latch: WakeLatch, until deadline: ContinuousClock.Instant) {
    let wire = state.withLock(\.directory)?.wire
    let hasLed = wire?.lead(for: latch, until: deadline) { [self] in
      let isMine = state.withLock { state in
        // Not while a file cannot be read, because that takes a pause.
        guard !state.isReading, !state.isBehind else { return false }
        state.isReading = true
        return true
      }
      if isMine, let wire { deliver(from: wire) }
      return isMine
    }
    if hasLed != true { latch.block(until: deadline) }
  }

  /// Delivers what has come on the wire, when no other thread has the turn.
  private func read(from wire: MailboxWire) {
    let turn = DispatchSemaphore(value: 0)
    let isMine = state.withLock { state in
      defer { state.isReading = true }
      if state.isReading { state.turns.append(turn) }
      return !state.isReading
    }
    if !isMine { turn.wait() }
    deliver(from: wire)
  }

  /// Delivers what has come on the wire, and ends the turn.
  private func deliver(from wire: MailboxWire) {
    if state.withLock(\.isBehind) {
      // Until then the wire stays readable.
      pauseThread(Self.behindPause)
      lookAtEverything()
    } else {
      takeAll(from: wire) { () throws(Errno) in [] }
    }
    if !isDone() { queue.async { [weak self] in self?.readOn() } }
  }

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
      takeAll(mayList: false) { () throws(Errno) in prompt }
      guard !isDone() else { return }
    }
    queue.async { [weak self] in self?.readOn() }
  }

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
        return (news, exchange(&state.waiting, with: []))
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

  /// Ends a turn, if there is no more news or another thread waits for it.
  ///
  /// - Returns: Whether it has ended.
  private func isDone() -> Bool {
    let (next, isDone) = state.withLock { state -> (DispatchSemaphore?, Bool) in
      if let next = state.turns.popFirst() { return (next, true) }
      state.isReading = state.news != nil
      return (nil, !state.isReading)
    }
    next?.signal()
    return isDone
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
    return names.count > 1 ? names.ordered(by: <) : names
  }

  // Anything later than this scan has an event of its own.
  private func lookAtEverything() {
    watchOwner()
    guard let directory = state.withLock(\.directory) else { return }
    takeAll { () throws(Errno) in try all(directory) }
  }

  private func all(_ mailbox: MailboxDirectory.LockedDirectory) throws(Errno) -> [EntryFile] {
    try EntryFile.ordered { () throws(Errno) in (try entries(mailbox), false) }
  }

  /// Delivers files and messages in their order, up to a file that cannot be read now.
  ///
  /// - Parameters:
  ///   - wire: The one to read; by default that of the mailbox's directory.
  ///   - mayList: Whether this thread may wait for the file system.
  private func takeAll(
    from wire: MailboxWire? = nil, mayList: Bool = true, _ names: () throws(Errno) -> [EntryFile]
  ) {
    do throws(Errno) {
      try takeAll(names()[...], from: wire, mayList: mayList)
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

  private func takeAll(
    _ names: ArraySlice<EntryFile>, from wire: MailboxWire?, mayList: Bool
  ) throws(Errno) {
    var files = names
    let mailbox = state.withLock(\.directory)
    // After the names, each time.
    let wire = wire ?? mailbox?.wire
    if let wire { receive(wire) }
    while true {
      switch state.withLock({ $0.backlog.next(before: files.first) }) {
      case .deliver(let message): deliver(message)
      case .lookForFiles(let message):
        guard mayList, let mailbox else { return state.withLock { $0.news = .everything } }
        files = try all(mailbox)[...]
        if let wire { receive(wire) }
        state.withLock { $0.backlog.note(message.fileBefore, of: message.sender) }
      case .none:
        guard let file = files.popFirst() else { return state.withLock { $0.isBehind = false } }
        try take(file)
        state.withLock { $0.backlog.noteDelivered(file) }
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

  private func receive(_ wire: MailboxWire) {
    let found = wire.take(atMost: state.withLock(\.backlog.room))
    if !found.isEmpty { state.withLock { $0.backlog.add(found) } }
  }

  private func deliver(_ message: MailboxWire.Message) {
    // The fault is the sender's: it wrote no property list.
    guard let value = try? PropertyListValue(bytes: message.content),
      !state.withLock(\.isClosed)
    else { return }
    deliver(value)
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
        text, at: directory, beside: mailbox.status, maximumBytes: MailboxSender.maximumBytes)
      switch content {
      // Read already, or the whole mailbox is gone.
      case .missing: return
      case .foreign: try removeFile(text, at: directory)
      case .bytes(let bytes, _):
        // The reason does not matter: its sender wrote no property list, and it can be looked at there.
        guard let value = try? PropertyListValue(bytes: bytes) else {
          try Quarantine.take(FileName(text), at: directory, root: place.root)
          return
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
