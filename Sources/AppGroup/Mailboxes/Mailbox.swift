import Dispatch
package import PropertyLists
import Synchronization
import SystemCalls

/// A queue of one process that ends with it: requests and replies between processes that live. See
/// `MailboxDirectory` for what lies on the disk. Thread-safe.
///
/// Each entry is delivered once at most, those of one sender in their order. A few small entries are
/// read on the monitor's own thread, for each hop to another one costs more than that; more of them,
/// large ones, and looks at everything go to a queue.
package final class Mailbox: Sendable {
  /// By what others post into it: hex digits and "-".
  package let address: String

  /// The largest entry.
  package static let maximumBytes = 16 << 20
  /// What is read on the monitor's thread, at most.
  private static let promptEntries = 8
  private static let promptBytes = 65_536
  /// More names than this are planted: the rest is looked at when these are gone.
  private static let maximumNames = 100_000

  private struct State {
    var watch: Watch?
    /// Whether entries may be read on the monitor's thread: not on a network's file system.
    var isPrompt = false
    /// Somebody reads, and will look for more news before it stops.
    var isReading = false
    var news: WatchNews?
    /// What was delivered and could not be unlinked: not to be delivered again.
    var stuck: Set<MailboxEntryName> = []
    /// Who waits for the end of a look at everything that begins from now on.
    var waiting: [DispatchSemaphore] = []
  }

  private struct House {
    var home: MailboxDirectory.Home?
    var isClosed = false
    /// Tells that the lock's file was removed; its home.
    var ownerWatch: (watch: Watch, home: MailboxDirectory.Home)?
  }

  /// An entry, and the chance to go on with it at once.
  package struct Delivery: Sendable {
    package let value: PropertyListValue
    /// Whether this is the monitor's thread.
    let isPrompt: Bool

    /// Goes on on this thread as soon as everybody else is told of what has happened.
    ///
    /// - Parameter body: may take as long as it likes.
    /// - Returns: false where that cannot be: then it is for another thread.
    package func goOn(with body: @escaping @Sendable () -> Void) -> Bool {
      isPrompt && ChangeMonitor.shared.goOn(with: body)
    }
  }

  private let place: MailboxDirectory
  private let deliver: @Sendable (Delivery) -> Void
  private let state = Mutex(State())
  private let house = Mutex(House())
  private let making = Mutex(())
  private let queue = Blocking.queue()

  /// Makes a mailbox; it ends with `close()`, when it is forgotten, or with the process.
  ///
  /// - Parameter deliver: called with each entry, one at a time, perhaps on the monitor's thread: it
  ///   must be short.
  package init(
    in container: SharedContainer, deliver: @escaping @Sendable (Delivery) -> Void
  ) throws {
    // The process number as well: a forked child would count on from its parent's nonces.
    address = String(ProcessIdentity.current.processID, radix: 16) + "-" + Nonce.next()
    place = MailboxDirectory(root: container.root, address: address)
    self.deliver = deliver
    try reporting("make a mailbox", path: place.path) { try prepare() }
    let root = container.root
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

  deinit { close() }

  /// Ends it: what was not delivered is gone, and who posts is refused. Once is enough.
  package func close() {
    let watch = state.withLock { state in
      defer { state.watch = nil }
      return state.watch
    }
    watch?.cancel()
    let old = house.withLock { house in
      defer {
        house.home = nil
        house.ownerWatch = nil
        // Excludes: the monitor making it again after this.
        house.isClosed = true
      }
      return house
    }
    old.ownerWatch?.watch.cancel()
    guard old.home != nil else { return }
    do {
      try place.remove()
    } catch {
      // Whatever is in the way: its lock ends now, and whoever sweeps next tries again.
      return
    }
  }

  /// Makes the directory where it is missing, under the address that others know.
  private func prepare() throws {
    // Excludes: two that make it at once. Who reads does not take this lock, so that the monitor's
    // thread does not wait for a file system that does not answer.
    try making.withLock { _ in
      let (isClosed, home) = house.withLock { ($0.isClosed, $0.home) }
      guard !isClosed else { throw Errno.noSuchFile }
      if let home, isThere(home) { return }
      let new = try place.make()
      let isWanted = house.withLock { house in
        guard !house.isClosed else { return false }
        house.home = new
        return true
      }
      guard !isWanted else { return }
      try place.remove()
      throw Errno.noSuchFile
    }
  }

  private func isThere(_ home: MailboxDirectory.Home) -> Bool {
    do throws(Errno) {
      return try fileStatus(place.path).isSameFile(as: home.status)
    } catch {
      return false
    }
  }

  // A directory that is open, or a file in it, tells of its own removal only when it is closed
  // (inotify(7), IN_DELETE_SELF); the lock's file tells at once that it has a name less.
  private func watchOwner() {
    guard let home = house.withLock(\.home) else { return }
    guard house.withLock({ $0.ownerWatch?.home !== home }) else { return }
    let queue = queue
    let look: @Sendable () -> Void = { [weak self] in self?.leaveIfRemoved(home) }
    let watch = ChangeMonitor.shared.watchOpen(home.owner, [.attributes]) { _ in
      queue.async(execute: look)
    }
    let old = house.withLock { house in
      defer { house.ownerWatch = house.isClosed ? nil : (watch, home) }
      return house.ownerWatch
    }
    old?.watch.cancel()
    leaveIfRemoved(home)
  }

  private func leaveIfRemoved(_ home: MailboxDirectory.Home) {
    guard home.isRemoved else { return }
    let old = house.withLock { house -> House? in
      guard house.home === home else { return nil }
      defer {
        house.home = nil
        house.ownerWatch = nil
      }
      return house
    }
    old?.ownerWatch?.watch.cancel()
    ChangeMonitor.shared.noteRemoval(in: place.root.path)
    makeAgainLater()
  }

  private func makeAgainLater() {
    queue.asyncAfter(deadline: .now() + ChangeMonitor.pollInterval.dispatchInterval) {
      [weak self] in self?.makeAgain()
    }
  }

  private func makeAgain() {
    guard ChangeMonitor.shared.isSettled(place.root.path) else { return makeAgainLater() }
    do {
      try prepare()
      hear(.everything)
    } catch {
      // Closed; or the file system refuses: the monitor tries again when the directory is gone.
      return
    }
  }

  // MARK: Reading

  func hear(_ news: WatchNews) {
    let (mustRead, isPrompt) = state.withLock { state in
      // Excludes: two readers at once, of whom the second could overtake the first.
      guard !state.isReading else {
        state.news =
          state.news.map { old in
            var both = old
            both.merge(news)
            return both
          } ?? news
        return (false, false)
      }
      state.isReading = true
      return (true, state.isPrompt)
    }
    guard mustRead else { return }
    if isPrompt, let names = promptNames(news) {
      for name in names { take(name, isPrompt: true) }
      guard !isDone() else { return }
    } else {
      state.withLock { $0.news = news }
    }
    queue.async { [weak self] in self?.readOn() }
  }

  /// Returns when all that was posted before this call is delivered; blocks.
  ///
  /// For who learns in another way that nothing more will come: the news of that may be faster.
  package func catchUp() {
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
      if news.isEverything || !news.own.isEmpty {
        lookAtEverything()
      } else {
        for name in news.names.keys.compactMap({ MailboxEntryName($0) }).sorted() { take(name) }
      }
    }
  }

  /// Whether there is no more news; then nobody reads from now on.
  private func isDone() -> Bool {
    state.withLock { state in
      state.isReading = state.news != nil
      return !state.isReading
    }
  }

  private func promptNames(_ news: WatchNews) -> [MailboxEntryName]? {
    guard !news.isEverything, news.own.isEmpty, news.names.count <= Self.promptEntries else {
      return nil
    }
    let names = news.names.keys.compactMap { MailboxEntryName($0) }
    guard names.reduce(0, { $0 + $1.bytes }) <= Self.promptBytes else { return nil }
    return names.count > 1 ? names.sorted() : names
  }

  // A listing is no snapshot while others post: an entry may be in it without one of the same sender
  // that came before. The next listing has that one. What comes later has its own event.
  private func lookAtEverything() {
    watchOwner()
    do {
      guard let home = house.withLock(\.home) else { return }
      let first = try entries(home)
      guard !first.isEmpty else { return }
      var last: [String: UInt64] = [:]
      for name in first { last[name.sender] = max(last[name.sender] ?? 0, name.stamp) }
      let both = try Set(first).union(entries(home))
      for name in both.sorted() where name.stamp <= last[name.sender] ?? 0 { take(name) }
    } catch {
      // For want of descriptors, perhaps: it may pass.
      Blocking.timers.asyncAfter(deadline: .now() + ChangeMonitor.pollInterval.dispatchInterval) {
        [weak self] in self?.hear(.everything)
      }
    }
  }

  private func entries(_ home: MailboxDirectory.Home) throws(Errno) -> [MailboxEntryName] {
    let open = try FileDescriptor.open(
      ".", at: home.directory.rawValue, [.readOnly, .directory])
    var names: [MailboxEntryName] = []
    var staged: [FileName] = []
    var more = true
    while more, names.count < Self.maximumNames, staged.count < Self.maximumNames {
      more = try open.nextEntries { entry in
        if let name = MailboxEntryName(entry.name) { names.append(name) }
        if entry.name.hasPrefix(MailboxDirectory.stagedPrefix) { staged.append(entry.name) }
      }
    }
    try sweep(staged, at: home.directory.rawValue)
    if more { state.withLock { $0.news = .everything } }
    return names
  }

  private func sweep(_ staged: [FileName], at directory: Int32) throws(Errno) {
    let stale = realTime().seconds - ContainerInspection.staleAge
    for name in staged {
      do throws(Errno) {
        guard try fileStatus(name.text, at: directory).modifiedSeconds <= stale else { continue }
        try removeFile(name, at: directory)
      } catch {
        // It has its own name by now.
        guard error == .noSuchFile else { throw error }
      }
    }
  }

  // MARK: One entry

  private func take(_ name: MailboxEntryName, isPrompt: Bool = false) {
    guard let home = house.withLock(\.home), !state.withLock({ $0.stuck.contains(name) }) else {
      return
    }
    let text = name.text
    let directory = home.directory.rawValue
    do throws(Errno) {
      guard let bytes = try read(text, home) else {
        return try removeFile(text, at: directory)
      }
      if let value = parse(bytes) {
        // Before the unlinking, which nobody needs to wait for: if this process dies in between, so
        // does the mailbox, and whoever was told.
        deliver(Delivery(value: value, isPrompt: isPrompt))
        try removeFile(text, at: directory)
      } else {
        try Quarantine.take(FileName(text), at: directory, root: place.root)
      }
    } catch {
      // Read already; or all of the mailbox is gone.
      guard error != .noSuchFile else { return }
      state.withLock { _ = $0.stuck.insert(name) }
    }
  }

  /// - Returns: nil for what is none of ours.
  private func read(_ name: String, _ home: MailboxDirectory.Home) throws(Errno) -> [UInt8]? {
    do throws(Errno) {
      let file = try FileDescriptor.openBeneath(
        name, at: home.directory.rawValue, [.readOnly, .nonBlocking])
      let status = try file.status()
      guard status.kind == .regular, place.root.access.trusts(status, in: home.status) else {
        return nil
      }
      return try file.readToEnd(
        expectedBytes: Int(status.size), maximumBytes: Self.maximumBytes)
    } catch {
      switch error {
      case .tooManyLinks, .noSuchDevice, .fileTooLarge, .isDirectory: return nil
      default: throw error
      }
    }
  }

  private func parse(_ bytes: [UInt8]) -> PropertyListValue? {
    do throws(PropertyListError) {
      return try PropertyListValue(bytes: bytes)
    } catch {
      return nil
    }
  }
}
