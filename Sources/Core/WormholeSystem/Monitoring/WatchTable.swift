/// All watches of the process: their inodes, and the pending work.
///
/// The table decides, under the monitor's lock, and calls no file system: it hands out pending
/// looks (`nextLook`), and their findings are entered afterwards. Its system calls concern only the
/// process's own inotify instance and counter, and never wait.
struct WatchTable {
  typealias ID = UInt64
  typealias Call = @Sendable () -> Void

  /// The consequences of events and of the time.
  struct Actions {
    /// Calls to make outside the lock.
    var calls: [Call] = []
    /// Lanes that need a thread.
    var lanes: [String] = []
    /// Polled open files.
    var compared: [(ID, WatchEntry, SharedDescriptor)] = []
  }

  /// The findings from the events of an iteration.
  private struct Events {
    var news: [ID: WatchNews]
    /// The entries to look for.
    var sought: Set<ID> = []
    var haveOverflowed = false
  }

  private let checkInterval: Duration
  private(set) var entries: [ID: WatchEntry] = [:]
  /// The number of entries with each target.
  private(set) var targets: [String: Int] = [:]
  /// The users of each of the kernel's watches.
  private var users: [Int32: Set<ID>] = [:]
  var parents: [String: Parent] = [:]
  var parentsByNumber: [Int32: Set<String>] = [:]
  var ways: [String: Way] = [:]
  var waysByNumber: [Int32: Set<String>] = [:]
  private var timed: Set<ID> = []
  /// The pending looks; a thread works in each lane.
  private var lanes: [String: [ID]] = [:]
  /// The time of the last found removal, by lane.
  private var removals: [String: ContinuousClock.Instant] = [:]
  /// News for the thread's next iteration.
  private var found: [ID: WatchNews] = [:]
  private var nextID: ID = 0
  /// The inotify instance.
  private var queue: SharedDescriptor?
  /// The counter that wakes the thread.
  private var counter: SharedDescriptor?
  private var failure: Errno?
  /// The descriptors that the thread waits for; the queue comes first.
  private var sources: [Int32] = []
  private var hasThread = false
  private var nextCheck: ContinuousClock.Instant?
  /// Calls to make after the events were taken next time.
  private var afterEvents: [Call] = []
  private(set) var wakeUps = 0
  /// The number of the kernel's watches that were ended.
  private(set) var endings = 0

  /// - Parameter hasThread: Whether there are threads for the iterations.
  init(checkInterval: Duration, hasThread: Bool) {
    self.checkInterval = checkInterval
    self.hasThread = hasThread
  }

  var count: Int { entries.count }
  /// For tests: the number of containers with a look under way.
  var lanesAtWork: Int { lanes.count }
  /// For tests: the lanes of the targets below a directory.
  func lanes(below directory: String) -> Set<String> {
    Set(entries.values.compactMap(\.target).filter { $0.path.hasPrefix(directory) }.map(\.lane))
  }
  /// For tests: whether an entry waits for a missing directory.
  func isAwaiting(_ path: String) -> Bool {
    entries.values.contains { $0.target?.path == path && $0.awaited != nil }
  }

  mutating func startThread() -> Bool { !exchange(&hasThread, with: true) }

  func detection(of id: ID) -> ChangeDetection {
    entries[id]?.detection ?? .events
  }

  /// Returns the queue to which watches are added.
  func eventQueue() throws(Errno) -> SharedDescriptor {
    guard let queue else { throw failure ?? .noSuchDevice }
    return queue
  }

  /// If there is no queue, tries to open it, and the counter if it is missing.
  private mutating func openDescriptors() {
    guard queue == nil else { return }
    let hadCounter = counter != nil
    queue = opened(FileDescriptor.eventQueue)
    if !hadCounter { counter = opened(FileDescriptor.wakeUpCounter) }
    sources = [queue, counter].compactMap { $0?.descriptor.rawValue }
    // The thread may wait for the counter alone.
    if hadCounter { wake() }
  }

  private mutating func opened(
    _ open: () throws(Errno) -> FileDescriptor
  ) -> SharedDescriptor? {
    do throws(Errno) {
      return SharedDescriptor(try open())
    } catch {
      failure = error
      return nil
    }
  }

  // MARK: Adding and removing

  /// Adds an entry, which its user's thread looks for at once.
  mutating func insert(_ entry: WatchEntry) -> ID {
    nextID += 1
    openDescriptors()
    entries[nextID] = entry
    entries[nextID]?.lookState = .underWay
    if let target = entry.target { targets[target.path, default: 0] += 1 }
    for parent in entry.target?.parents ?? [] { parents[parent, default: Parent()].users += 1 }
    if let way = entry.target?.way { ways[way, default: Way()].users += 1 }
    return nextID
  }

  /// - Returns: The removed entry, to be released outside the lock, because its release may end
  ///   another watch.
  mutating func remove(_ id: ID) -> WatchEntry? {
    guard let entry = entries[id] else { return nil }
    lose(id)
    entries[id] = nil
    timed.remove(id)
    found[id] = nil
    if let path = entry.target?.path {
      targets[path] = targets[path].flatMap { $0 > 1 ? $0 - 1 : nil }
    }
    for path in entry.target?.parents ?? [] {
      parents[path]?.users -= 1
      guard parents[path]?.users == 0 else { continue }
      lose(parent: path)
      parents[path] = nil
    }
    if let way = entry.target?.way {
      ways[way]?.users -= 1
      if ways[way]?.users == 0 {
        lose(way: way)
        ways[way] = nil
      }
    }
    return entry
  }

  /// Releases an entry's watch.
  mutating func lose(_ id: ID) {
    entries[id]?.watched = nil
    entries[id]?.awaited = nil
    guard let number = entries[id]?.number else { return }
    entries[id]?.number = nil
    users[number]?.remove(id)
    if users[number]?.isEmpty == true { users[number] = nil }
    endIfUnused(number)
  }

  mutating func endIfUnused(_ number: Int32) {
    guard !isUsed(number) else { return }
    endings += 1
    // It fails if the directory is gone, and its watch with it (inotify_rm_watch(2), EINVAL).
    try? queue?.descriptor.removeWatch(number)
  }

  func isUsed(_ number: Int32) -> Bool {
    users[number] != nil || parentsByNumber[number] != nil || waysByNumber[number] != nil
  }

  /// Enters the kernel's watch for an entry. If the entry was removed meanwhile, the watch ends.
  ///
  /// - Parameter awaited: The entry that has to appear, if it is a parent's watch.
  mutating func enter(
    _ number: Int32, _ status: FileStatus?, for id: ID, awaiting awaited: FileName? = nil
  ) {
    guard entries[id] != nil else { return endIfUnused(number) }
    lose(id)
    entries[id]?.number = number
    entries[id]?.watched = status?.identity
    entries[id]?.awaited = awaited
    users[number, default: []].insert(id)
  }

  // MARK: Looks

  /// Requests a look at a target.
  ///
  /// - Returns: Its lane if that needs a thread.
  private mutating func seek(_ id: ID) -> String? {
    guard let entry = entries[id], let target = entry.target else { return nil }
    // The next look of a polled one is known: nothing new, and the thread need not be woken after it.
    if entry.seen == nil {
      timed.remove(id)
      entries[id]?.nextLook = nil
    }
    switch entry.lookState {
    case .awaited, .underWayAndAwaited: return nil
    case .underWay:
      entries[id]?.lookState = .underWayAndAwaited
      return nil
    case .none:
      entries[id]?.lookState = .awaited
      defer { lanes[target.lane, default: []].append(id) }
      return lanes[target.lane] == nil ? target.lane : nil
    }
  }

  /// Returns the next look of the lane's thread, or nil if none is left and the thread ends.
  mutating func nextLook(in lane: String) -> (ID, WatchEntry)? {
    while let id = lanes[lane]?.popLast() {
      entries[id]?.lookState = .underWay
      if let entry = entries[id] { return (id, entry) }
    }
    lanes[lane] = nil
    return nil
  }

  /// Enters the finding of a look.
  ///
  /// - Parameter mustTell: False for the first look, after which its user reads anyway.
  /// - Returns: The lane that needs a thread for another look.
  mutating func endLook(
    _ id: ID, _ finding: ChangeMonitor.Finding, mustTell: Bool, now: ContinuousClock.Instant
  ) -> String? {
    guard let lookState = entries[id]?.lookState else { return nil }
    entries[id]?.lookState = .none
    if case .unchanged = finding { return lookState == .underWayAndAwaited ? seek(id) : nil }
    if entries[id]?.seen != nil {
      entries[id]?.seen = nil
      entries[id]?.nextLook = nil
      timed.remove(id)
    }
    switch finding {
    case .same:
      if entries[id]?.isPolled == true { setNextLook(id, now: now) }
    case .watched(let network):
      entries[id]?.detection = .events
      entries[id]?.planned = nil
      if let network { poll(id, "\(network) is a network file system", now: now) }
    case .missing: setNextLook(id, now: now)
    case .unchanged: break
    case .failed(let reason, let seen):
      entries[id]?.seen = seen
      poll(id, reason, now: now)
    }
    if case .same = finding {} else if mustTell { found[id] = .everything }
    let lane = lookState == .underWayAndAwaited ? seek(id) : nil
    wakeIfTimed()
    return lane
  }

  /// Keeps the open file of an entry that no event can report.
  mutating func keep(_ file: SharedDescriptor, for id: ID) { entries[id]?.file = file }

  mutating func noteRemoval(in lane: String, now: ContinuousClock.Instant) {
    removals[lane] = now
  }

  /// Returns whether there was no removal for some time.
  mutating func isSettled(_ lane: String, now: ContinuousClock.Instant) -> Bool {
    guard let last = removals[lane] else { return true }
    guard now - last >= ChangeMonitor.settleInterval else { return false }
    removals[lane] = nil
    return true
  }

  private mutating func poll(_ id: ID, _ reason: String, now: ContinuousClock.Instant) {
    entries[id]?.detection = .polling(reason: reason)
    setNextLook(id, now: now)
  }

  private mutating func setNextLook(_ id: ID, now: ContinuousClock.Instant) {
    entries[id]?.planLook(now: now)
    timed.insert(id)
  }

  // MARK: The thread's iteration

  mutating func whatToWaitFor(now: ContinuousClock.Instant) -> ([Int32], ContinuousClock.Instant?) {
    var deadline = timed.compactMap { entries[$0]?.nextLook }.min()
    if !targets.isEmpty {
      let check = nextCheck ?? now.advanced(by: checkInterval)
      nextCheck = check
      deadline = min(deadline ?? check, check)
    } else {
      nextCheck = nil
    }
    // Without a counter to wake it, the thread must check for work by itself.
    if counter == nil {
      deadline = min(
        deadline ?? .now + ChangeMonitor.pollInterval, now + ChangeMonitor.pollInterval)
    }
    return (sources, deadline)
  }

  /// Wakes the thread, because an entry may need a signal or a look earlier than the thread plans
  /// to wake up.
  mutating func wakeIfTimed() {
    guard !timed.isEmpty || !found.isEmpty || nextCheck == nil else { return }
    wake()
  }

  mutating func add(afterEvents body: @escaping Call) {
    openDescriptors()
    afterEvents.append(body)
    wake()
  }

  func wake() {
    // It fails if the counter is full: then the thread is about to wake up anyway (eventfd(2), EAGAIN).
    try? counter?.descriptor.raiseCounter()
  }

  mutating func handle(ready: [Bool], now: ContinuousClock.Instant) -> Actions {
    wakeUps += 1
    var events = Events(news: exchange(&found, with: [:]))
    let after = exchange(&afterEvents, with: [])
    if ready.contains(true) || !after.isEmpty {
      // A request to be called after events may have come after the ready descriptors were
      // determined.
      takeEvents(ready, mustTake: !after.isEmpty, now: now, &events)
    }
    if let check = nextCheck, check <= now {
      nextCheck = nil
      events.sought.formUnion(entries.keys)
    }
    var actions = Actions()
    for id in timed where entries[id]?.isDue(now) == true {
      guard let entry = entries[id],
        entry.target == nil || entry.isPolled && entry.number != nil && entry.awaited == nil
      else {
        events.sought.insert(id)
        if entries[id]?.seen != nil { setNextLook(id, now: now) }
        continue
      }
      if let file = entry.file {
        actions.compared.append((id, entry, file))
        setNextLook(id, now: now)
        continue
      }
      events.news[id] = .everything
      setNextLook(id, now: now)
    }
    actions.lanes = events.sought.compactMap { seek($0) }
    for (id, news) in events.news {
      guard let hear = entries[id]?.hear else { continue }
      actions.calls.append { hear(news) }
    }
    actions.calls += after
    return actions
  }

  private mutating func takeEvents(
    _ ready: [Bool], mustTake: Bool, now: ContinuousClock.Instant, _ events: inout Events
  ) {
    do throws(Errno) {
      // The event queue comes first in `whatToWaitFor`; reading an unready counter costs a call.
      if ready.last == true { try counter?.descriptor.lowerCounter() }
      if ready.first == true || mustTake, let queue {
        var capacity = 1_024
        while try queue.descriptor.takeNamedEvents(
          capacity: capacity, { note($1, of: $0, $2, now: now, events: &events) })
        {
          capacity = 16_384
        }
      }
    } catch {
      // A look at everything finds the changes of the lost events.
      events.haveOverflowed = true
    }
    guard events.haveOverflowed else { return }
    for path in Array(parents.keys) { lose(parent: path) }
    for path in Array(ways.keys) { lose(way: path) }
    // The lost events may include the end of a directory whose inode number was reused since.
    for id in Array(entries.keys) where entries[id]?.target != nil { lose(id) }
    events.sought.formUnion(entries.keys)
    events.news = entries.mapValues { _ in .everything }
  }

  private mutating func note(
    _ raised: WatchEvents, of number: Int32, _ name: UnsafeRawBufferPointer,
    now: ContinuousClock.Instant, events: inout Events
  ) {
    if raised.contains(.overflowed) { events.haveOverflowed = true }
    let isEnd = !raised.isDisjoint(with: .ends)
    for id in users[number] ?? [] {
      guard let entry = entries[id], entry.wants(raised) else { continue }
      // The directory itself may follow. That causes no event while a process has it open.
      if raised.contains(.deleted), !entry.hasWatchedParent, entry.nextLook == nil {
        setNextLook(id, now: now)
      }
      if let awaited = entry.awaited, !isEnd {
        if FileName(event: name) == awaited { events.sought.insert(id) }
        continue
      }
      if isEnd, let target = entry.target {
        noteRemoval(in: target.lane, now: now)
        // Reported after the look, because in another directory everything is new.
        events.news[id] = nil
        lose(id)
        events.sought.insert(id)
      } else {
        events.news[id, default: WatchNews()].note(
          raised, of: entry.readsNames ? FileName(event: name) : nil)
      }
    }
    if let passing = waysByNumber[number], isEnd || raised.contains(.attributes) {
      events.sought.formUnion(sought(afterChangeOf: passing))
    }
    guard let parent = parentsByNumber[number] else { return }
    if isEnd {
      events.sought.formUnion(sought(afterLossOf: parent, now: now))
    } else if raised.contains(.deleted), let name = FileName(event: name) {
      let paths = Set(parent.map { $0 + "/" + name.text })
      events.sought.formUnion(sought(afterLossOf: paths, now: now))
    }
  }
}
