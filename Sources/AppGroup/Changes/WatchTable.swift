import Synchronization
import SystemCalls

/// All watches of the process: which inode each is for, and what is to be done next.
///
/// A pure decision maker but for the inotify calls, which must not be torn apart from the table:
/// between a removal and an addition of the same inode another thread's entry would lose its watch.
struct WatchTable {
  typealias ID = UInt64
  typealias Signal = @Sendable () -> Void

  private final class Descriptors: Sendable {
    let events: SharedDescriptor?
    let wakeUp: SharedDescriptor?
    let failure: Errno?

    init() {
      var failure: Errno?
      do throws(Errno) {
        events = SharedDescriptor(try FileDescriptor.eventQueue())
      } catch {
        events = nil
        failure = error
      }
      do throws(Errno) {
        wakeUp = SharedDescriptor(try FileDescriptor.wakeUpCounter())
      } catch {
        wakeUp = nil
        failure = error
      }
      self.failure = failure
    }
  }

  private var entries: [ID: WatchEntry] = [:]
  private var byNumber: [Int32: Set<ID>] = [:]
  /// Directories above watched ones, watched for their own removal only, with the number of users.
  private var parents: [String: (number: Int32, users: Int)] = [:]
  private var parentNumbers: Set<Int32> = []
  /// The watches for which somebody wants names.
  private var hearing: Set<Int32> = []
  private var timed: Set<ID> = []
  private var nextID: ID = 0
  private var descriptors: Descriptors?
  private var hasThread = false
  private var nextCheck: ContinuousClock.Instant?
  /// What is to be called after the next taking of events.
  private var afterEvents: [Signal] = []
  private(set) var wakeUps = 0

  var count: Int { entries.count }

  mutating func startThread() -> Bool {
    guard !hasThread else { return false }
    hasThread = true
    return true
  }

  func detection(of id: ID) -> ChangeMonitor.Detection {
    entries[id]?.detection ?? .events
  }

  // MARK: Adding and removing

  mutating func insert(_ entry: WatchEntry) -> ID {
    nextID += 1
    if descriptors?.events == nil { descriptors = Descriptors() }
    entries[nextID] = entry
    if case .path(_, let above, _) = entry.target {
      for parent in above { addParent(parent) }
    }
    establish(nextID, now: .now)
    return nextID
  }

  mutating func remove(_ id: ID) {
    guard let entry = entries.removeValue(forKey: id) else { return }
    timed.remove(id)
    release(id, entry.number)
    if case .path(_, let above, _) = entry.target {
      for parent in above { removeParent(parent) }
    }
  }

  private mutating func release(_ id: ID, _ number: Int32?) {
    guard let number, byNumber[number] != nil else { return }
    byNumber[number]?.remove(id)
    guard byNumber[number]?.isEmpty == true else { return }
    byNumber[number] = nil
    hearing.remove(number)
    endWatch(number)
  }

  private mutating func endWatch(_ number: Int32) {
    guard byNumber[number] == nil, !parentNumbers.contains(number) else { return }
    do throws(Errno) {
      try descriptors?.events?.descriptor.removeWatch(number)
    } catch {
      // The directory is gone, and its watch with it (inotify_rm_watch(2), EINVAL).
      return
    }
  }

  private mutating func addParent(_ path: String) {
    if let parent = parents[path] {
      parents[path] = (parent.number, parent.users + 1)
      return
    }
    parents[path] = (watchParent(path), 1)
  }

  private mutating func watchParent(_ path: String) -> Int32 {
    do throws(Errno) {
      guard let queue = descriptors?.events else { return -1 }
      let number = try queue.descriptor.addWatch(
        path, [.selfDeleted, .selfMoved, .onlyDirectory, .doNotFollow, .addToExisting])
      parentNumbers.insert(number)
      return number
    } catch {
      // Not there yet, or no watch left: tried again with what lies in it.
      return -1
    }
  }

  // Whoever replaces a directory may leave nothing at its path for a moment, in which its watch
  // cannot be renewed. Before the look at what lies in it: replaced after that, it tells.
  private mutating func watchMissingParents(_ above: [String]) {
    for path in above {
      guard let parent = parents[path], parent.number == -1 else { continue }
      parents[path] = (watchParent(path), parent.users)
    }
  }

  private mutating func removeParent(_ path: String) {
    guard let parent = parents[path] else { return }
    guard parent.users == 1 else {
      parents[path] = (parent.number, parent.users - 1)
      return
    }
    parents[path] = nil
    guard !parents.values.contains(where: { $0.number == parent.number }) else { return }
    parentNumbers.remove(parent.number)
    endWatch(parent.number)
  }

  // MARK: Establishing

  /// Gives an entry its watch, or notes when to try again.
  private mutating func establish(_ id: ID, now: ContinuousClock.Instant) {
    guard var entry = entries[id] else { return }
    entry.nextLook = nil
    switch entry.target {
    case .open(let descriptor):
      let path = "/proc/self/fd/\(descriptor)"
      watch(&entry, id, path, entry.events, now: now)
      if entry.hear != nil { noteNetwork(&entry, path, now: now) }
    case .path(let path, let above, let prepare):
      do {
        try prepare()
        watchMissingParents(above)
        entry.watched = try fileStatus(path)
        watch(&entry, id, path, entry.events, now: now)
        noteNetwork(&entry, path, now: now)
      } catch {
        entry.watched = nil
        let reason = (error as? Errno)?.description ?? "\(error)"
        poll(&entry, "\(path): \(reason)", now: now)
      }
    }
    if entry.nextLook != nil { timed.insert(id) } else { timed.remove(id) }
    entries[id] = entry
  }

  private mutating func watch(
    _ entry: inout WatchEntry, _ id: ID, _ path: String, _ events: WatchEvents,
    now: ContinuousClock.Instant
  ) {
    guard let queue = descriptors?.events else {
      let reason = descriptors?.failure?.description ?? "no event queue"
      return poll(&entry, "inotify: \(reason)", now: now)
    }
    do throws(Errno) {
      // Several entries may watch one inode: their masks add up.
      let number = try queue.descriptor.addWatch(path, events.union(.addToExisting))
      entry.number = number
      entry.detection = .events
      byNumber[number, default: []].insert(id)
      if entry.hear != nil { hearing.insert(number) }
    } catch {
      let advice = error == .noSpace ? " (fs.inotify.max_user_watches)" : ""
      poll(&entry, "inotify: \(error)\(advice)", now: now)
    }
  }

  private func poll(_ entry: inout WatchEntry, _ reason: String, now: ContinuousClock.Instant) {
    entry.detection = .polling(reason: reason)
    entry.nextLook = now.advanced(by: ChangeMonitor.pollInterval)
  }

  private func noteNetwork(_ entry: inout WatchEntry, _ path: String, now: ContinuousClock.Instant)
  {
    do throws(Errno) {
      let file = try FileDescriptor.open(path, .pathOnly)
      guard let network = try file.fileSystem().networkName else { return }
      poll(&entry, "\(network) is a network file system", now: now)
    } catch {
      // Gone again: the watch, if there is one, will say so.
      return
    }
  }

  // MARK: The thread's turn

  mutating func whatToWaitFor(
    now: ContinuousClock.Instant
  ) -> ([Int32], ContinuousClock.Instant?) {
    var deadline = timed.compactMap { entries[$0]?.nextLook }.min()
    let mustCheck = entries.values.contains { if case .path = $0.target { true } else { false } }
    if mustCheck {
      let check = nextCheck ?? now.advanced(by: ChangeMonitor.checkInterval)
      nextCheck = check
      deadline = min(deadline ?? check, check)
    } else {
      nextCheck = nil
    }
    let open = [descriptors?.events, descriptors?.wakeUp].compactMap { $0?.descriptor.rawValue }
    // Without a counter to wake it the thread must look by itself whether there is something new.
    if descriptors?.wakeUp == nil {
      deadline = min(
        deadline ?? .now + ChangeMonitor.pollInterval, now + ChangeMonitor.pollInterval)
    }
    return (open, deadline)
  }

  /// A new entry may have to be looked at earlier than the thread plans to wake up.
  mutating func wakeIfTimed() {
    guard !timed.isEmpty || nextCheck == nil else { return }
    wake()
  }

  mutating func add(afterEvents body: @escaping Signal) {
    if descriptors?.events == nil { descriptors = Descriptors() }
    afterEvents.append(body)
    wake()
  }

  private func wake() {
    do throws(Errno) {
      try descriptors?.wakeUp?.descriptor.raiseCounter()
    } catch {
      // The counter is full, so the thread is about to wake up anyway (eventfd(2), EAGAIN).
      return
    }
  }

  mutating func handle(ready: [Bool], now: ContinuousClock.Instant) -> [Signal] {
    wakeUps += 1
    var signalled: Set<ID> = []
    var lost: Set<ID> = []
    var news: [ID: WatchNews] = [:]
    let after = afterEvents
    afterEvents = []
    if ready.contains(true) || !after.isEmpty {
      // Whoever wants to be called after them may have come later than what is ready was found out.
      takeEvents(ready, mustTake: !after.isEmpty, &signalled, &lost, &news)
    }
    if let check = nextCheck, check <= now {
      nextCheck = nil
      lost.formUnion(replaced())
    }
    for id in timed where entries[id].map({ ($0.nextLook ?? now) <= now }) ?? false {
      signalled.insert(id)
      if isBroken(id) {
        lost.insert(id)
      } else {
        entries[id]?.nextLook = now + ChangeMonitor.pollInterval
      }
    }
    for id in lost { reestablish(id, now: now, isFirstLook: !timed.contains(id)) }
    signalled.formUnion(lost)
    let signals = signalled.compactMap { id -> Signal? in
      guard let entry = entries[id] else { return nil }
      guard let hear = entry.hear else { return entry.signal }
      // In another directory than before everything is new.
      let heard = lost.contains(id) ? .everything : news[id] ?? .everything
      return { hear(heard) }
    }
    return signals + after
  }

  private func isBroken(_ id: ID) -> Bool {
    guard let entry = entries[id], case .path = entry.target else { return false }
    return entry.number == nil
  }

  private mutating func takeEvents(
    _ ready: [Bool], mustTake: Bool, _ signalled: inout Set<ID>, _ lost: inout Set<ID>,
    _ news: inout [ID: WatchNews]
  ) {
    var overflowed = false
    var raised: [(Int32, WatchEvents, FileName?)] = []
    let hearing = hearing
    do throws(Errno) {
      // The event queue comes first in `whatToWaitFor`; reading what is not ready costs a call.
      if ready.last == true { try descriptors?.wakeUp?.descriptor.lowerCounter() }
      if ready.first == true || mustTake, let queue = descriptors?.events {
        let take: (Int32, WatchEvents, UnsafeRawBufferPointer) -> Void = { number, events, name in
          raised.append((number, events, hearing.contains(number) ? FileName(event: name) : nil))
        }
        while try queue.descriptor.takeNamedEvents(take) {}
      }
    } catch {
      // Whatever was lost with them, a look at everything finds it.
      overflowed = true
    }
    let ends: WatchEvents = [.selfDeleted, .selfMoved, .ignored, .unmounted]
    for (number, events, name) in raised {
      if events.contains(.overflowed) { overflowed = true }
      let users = byNumber[number] ?? []
      if hearing.contains(number) {
        signalled.formUnion(tell(users, events, name, &news))
      } else {
        signalled.formUnion(users)
      }
      if !events.isDisjoint(with: ends) { lost.formUnion(users.filter(isReplaceable)) }
      if parentNumbers.contains(number), !events.isDisjoint(with: ends) {
        renewParents(number)
        lost.formUnion(replaced())
      }
    }
    if overflowed {
      news = [:]
      signalled.formUnion(entries.keys)
      lost.formUnion(replaced())
    }
  }

  /// Notes the news of those who want names; returns who of the users is concerned at all.
  private func tell(
    _ users: Set<ID>, _ events: WatchEvents, _ name: FileName?, _ news: inout [ID: WatchNews]
  ) -> [ID] {
    users.filter { id in
      guard let entry = entries[id], entry.hear != nil else { return true }
      guard entry.wants(events) else { return false }
      news[id, default: WatchNews()].note(events, of: name)
      return true
    }
  }

  private func isReplaceable(_ id: ID) -> Bool {
    if case .path = entries[id]?.target { true } else { false }
  }

  private mutating func renewParents(_ number: Int32) {
    parentNumbers.remove(number)
    // One that was moved away is still watched, under its old number.
    endWatch(number)
    for (path, parent) in parents where parent.number == number {
      parents[path] = (watchParent(path), parent.users)
    }
  }

  /// The entries whose path does not name the watched directory any more.
  private func replaced() -> [ID] {
    entries.compactMap { id, entry in
      guard case .path(let path, _, _) = entry.target, let watched = entry.watched else {
        return nil
      }
      do throws(Errno) {
        return try fileStatus(path).isSameFile(as: watched) ? nil : id
      } catch {
        return id
      }
    }
  }

  private mutating func reestablish(
    _ id: ID, now: ContinuousClock.Instant, isFirstLook: Bool
  ) {
    if let number = entries[id]?.number {
      entries[id]?.number = nil
      release(id, number)
    }
    // Whoever removes a directory may be about to remove the one above it: made again at once, it
    // would be in the way (`rm -r` fails).
    if isFirstLook, case .path(let path, _, _) = entries[id]?.target, !exists(path) {
      entries[id]?.watched = nil
      entries[id]?.nextLook = now.advanced(by: ChangeMonitor.pollInterval)
      timed.insert(id)
      return
    }
    establish(id, now: now)
  }

  private func exists(_ path: String) -> Bool {
    do throws(Errno) {
      _ = try fileStatus(path)
      return true
    } catch {
      // Whatever else is wrong with it, establishing the watch will say.
      return error != .noSuchFile
    }
  }
}
