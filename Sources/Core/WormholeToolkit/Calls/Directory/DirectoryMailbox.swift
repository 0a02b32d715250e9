import Synchronization
import Wormhole
import WormholePropertyLists
import WormholeSystem

/// A mailbox in a directory; see `MailboxDirectory` for its files.
///
/// A thread of its own waits for messages on the wire, and a queue reads files. One thread
/// delivers at a time.
///
/// **Order.** The thread that delivers finds the names of files, and then takes messages from
/// the wire: so those sent before these files are among them. If a message's sender stored a file
/// before it that was not seen yet, the thread looks at all files first. What was found is
/// delivered by its order.
final class DirectoryMailbox: Mailbox {
  private struct State {
    var directory: MailboxDirectory.LockedDirectory?
    var isClosed = false
    var watch: Watch?
    /// What is to be read on the queue.
    var news: WatchNews?
    var backlog = WireBacklog()
    /// Whether an entry could not be read, for example for lack of descriptors: until it is read,
    /// each look begins with it, so that no later entry overtakes it.
    var isBehind = false
    /// Whether another look is due because of it.
    var isLookDue = false
    /// Entries that were delivered but could not be unlinked, and are not to be delivered again.
    var stuck: Set<EntryFile> = []
  }

  private static let behindPause: Duration = .milliseconds(20)

  var address: String { place.address }
  private let place: MailboxDirectory
  private let deliver: @Sendable (PropertyListValue) -> Void
  private let state = Mutex(State())
  private let making = Mutex(())
  /// Excludes: two readers at once, because the second could overtake the first.
  private let delivering = Mutex(())
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
    state.withLock { $0.watch = watch }
  }

  deinit { end(asDeath: false) }

  func end(asDeath: Bool) {
    let (watch, directory) = state.withLock { state in
      // Excludes: the monitor recreating it after this.
      state.isClosed = true
      return (state.watch.take(), state.directory.take())
    }
    watch?.cancel()
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
      // Not while a file cannot be read, because that takes a pause.
      guard let wire, !state.withLock(\.isBehind) else { return false }
      return delivering.withLockIfAvailable { _ in takeAll(from: wire) } != nil
    }
    if hasLed != true { latch.block(until: deadline) }
  }

  /// Delivers what has come on the wire.
  private func read(from wire: MailboxWire) {
    delivering.withLock { _ in
      guard state.withLock(\.isBehind) else { return takeAll(from: wire) }
      // Until then the wire stays readable.
      pauseThread(Self.behindPause)
      lookAtEverything()
    }
  }

  private func hear(_ news: WatchNews) {
    let mustRead = state.withLock { state in
      let isFirst = state.news == nil
      state.news = state.news ?? WatchNews()
      state.news?.merge(news)
      return isFirst
    }
    if mustRead { queue.async { [weak self] in self?.readNews() } }
  }

  private func readNews() {
    guard let news = state.withLock({ $0.news.take() }) else { return }
    delivering.withLock { _ in
      if news.isEverything || !news.own.isEmpty || state.withLock(\.isBehind) {
        lookAtEverything()
      } else {
        let names = news.names.keys.compactMap { EntryFile(bytes: $0.bytes) }
        takeAll { () throws(Errno) in names.count > 1 ? names.ordered(by: <) : names }
      }
    }
  }

  func catchUp() { delivering.withLock { _ in lookAtEverything() } }

  // Anything later than this scan has an event of its own.
  private func lookAtEverything() {
    guard let directory = state.withLock(\.directory) else { return }
    takeAll { () throws(Errno) in try all(directory) }
  }

  private func all(_ mailbox: MailboxDirectory.LockedDirectory) throws(Errno) -> [EntryFile] {
    try EntryFile.ordered { () throws(Errno) in (try entries(mailbox), false) }
  }

  /// Delivers files and messages in their order, up to a file that cannot be read now.
  ///
  /// - Parameter wire: The one to read; by default that of the mailbox's directory.
  private func takeAll(
    from wire: MailboxWire? = nil,
    _ names: () throws(Errno) -> [EntryFile] = { () throws(Errno) in [] }
  ) {
    do throws(Errno) {
      var files = try names()[...]
      let mailbox = state.withLock(\.directory)
      // After the names, each time.
      let wire = wire ?? mailbox?.wire
      if let wire { receive(wire) }
      while true {
        switch state.withLock({ $0.backlog.next(before: files.first) }) {
        case .deliver(let message): deliver(message)
        case .lookForFiles(let message):
          guard let mailbox else { return }
          files = try all(mailbox)[...]
          if let wire { receive(wire) }
          state.withLock { $0.backlog.note(message.fileBefore, of: message.sender) }
        case .none:
          guard let file = files.popFirst() else { return state.withLock { $0.isBehind = false } }
          try take(file)
          state.withLock { $0.backlog.noteDelivered(file) }
        }
      }
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
    let names = try ContainerRoot.entries(".", at: directory)?.map(\.name) ?? []
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
        text, at: directory, beside: mailbox.status, maximumBytes: MailboxAddress.maximumEntryBytes)
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
