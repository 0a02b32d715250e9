import Dispatch
import Synchronization
import WormholeSystem

/// One consumer's looks at others, on a thread of their own, from its joining to its end: even
/// while its program handles an entry, because perhaps no other consumer looks at them.
///
/// The workers of a queue are a ring, in the order of their names. Each looks only at the next one,
/// and past those that do not look themselves: dead or stopped ones, and ones in another namespace,
/// which may be stopped. So the cost of a queue grows with the number of its workers, not with its
/// square. What a dead or stopped one has taken is given back to all, as a directory without an
/// owner.
///
/// | change | how it is noticed |
/// |---|---|
/// | the next one ends | by an event of its registration's file |
/// | it is stopped | by a look every three seconds; none is needed in the same process |
/// | another one joins | it touches the directory of the one before it, which is an event there |
/// | an event was missed | by a look at all names from time to time |
final class ConsumerRing: Cancelling {
  private struct State {
    var others: OtherConsumers
    var ring = OtherConsumers.Ring(of: "", among: [])
    /// Whether the names in `taken/` may have changed.
    var readsNames = true
    var watches: [String: Watch] = [:]
    /// When the watched registrations can be relied on: an event comes before its lock is free.
    var quietFrom = ContinuousClock.now
    var namesDue = ContinuousClock.now
    /// Whether the last look found all that it saw running, and events or the next look at all names
    /// report the rest.
    var isCalm = false
    /// Whether an event reports the end of each that it saw.
    var hasEvents = true
  }

  /// How often a consumer checks whether the next one is stopped, which causes no event.
  private static let lookInterval: Duration = .seconds(3)
  /// How often it reads all names, with events and without.
  private static let namesInterval: (Duration, polled: Duration) = (.seconds(30), .seconds(10))
  /// How long after an event a lock may still be held.
  private static let unrest: Duration = .seconds(5)

  private let directory: OpenQueue
  private let own: String
  private let names: TakenNames
  /// Taken for as long as a look lasts, by one thread at a time except at the beginning.
  private let state: Mutex<State>
  private let queue = Blocking.queue()
  private let latch = WakeLatch()
  private let looks = FollowUpChecks()
  private let end = CancelMark()
  private let hasBegun = Atomic(false)
  private let news = News()

  /// What may have changed since the last look.
  private final class News: Sendable {
    /// The names in `taken/`.
    let names = Atomic(true)
    /// The registrations that are watched.
    let members = Atomic(false)
  }

  /// - Parameter own: the name of the consumer's directory.
  init(
    _ directory: OpenQueue, _ own: String, _ names: TakenNames, _ others: OtherConsumers
  ) {
    self.directory = directory
    self.own = own
    self.names = names
    state = Mutex(State(others: others))
    latch.call { [weak self] in
      guard let self, !findsCalm() else { return }
      queue.async { [weak self] in self?.look() }
    }
    looks.use { [latch] in latch.raise() }
  }

  func cancel() {
    end.cancel()
    looks.cancel()
  }

  /// Begins to look after a pause: a consumer that ends soon needs no thread.
  func begin(after pause: Duration) {
    Timers.after(pause) { [weak self] in self?.begin() }
  }

  /// Begins to look; once.
  func begin() {
    guard !hasBegun.exchange(true, ordering: .sequentiallyConsistent) else { return }
    latch.raise()
  }

  /// Another consumer may have joined.
  ///
  /// - Parameter isEvent: Whether something shows that; otherwise the next look is soon enough.
  func noteNames(isEvent: Bool) {
    news.names.store(true, ordering: .sequentiallyConsistent)
    guard hasBegun.load(ordering: .sequentiallyConsistent) else { return }
    if isEvent { latch.raise() } else { latch.raise(at: .now + Self.lookInterval) }
  }

  /// Looks once, at the beginning, and tells those that have to look at this consumer.
  ///
  /// - Returns: The directories without an owner.
  func join(at place: QueueDirectory) throws -> [String] {
    try state.withLock { state in
      let names = try names.read(at: place)
      state.ring = .init(of: own, among: names)
      for name in state.ring.watchers {
        // It is gone, or another user's: then it finds the new name when it reads all names.
        try? place.touch(QueueDirectory.takenPath(name))
      }
      let findings = try state.others.look(around: state.ring)
      return try names.filter(QueueDirectory.isFree) + giveBack(findings, at: { place })
    }
  }

  /// The usual look, on the timers' thread because it waits for no file system: whether nothing has
  /// happened and no process is stopped.
  private func findsCalm() -> Bool {
    guard !news.names.load(ordering: .sequentiallyConsistent),
      !news.members.load(ordering: .sequentiallyConsistent), !end.isCancelled
    else { return false }
    let isCalm = state.withLockIfAvailable {
      $0.isCalm && .now < $0.namesDue && $0.others.areRunning
    }
    guard isCalm == true else { return false }
    latch.raise(at: .now + Self.lookInterval)
    return true
  }

  private func look() {
    guard !end.isCancelled else { return }
    do {
      let next = try state.withLock { try look(&$0) }
      if let next { latch.raise(at: next) }
    } catch {
      // A lack of descriptors passes. If the queue was removed, its consumer finds that, and ends this.
      news.names.store(true, ordering: .sequentiallyConsistent)
      news.members.store(true, ordering: .sequentiallyConsistent)
      latch.raise(at: .now + Self.lookInterval)
    }
  }

  /// - Returns: When to look again; nil if it is alone.
  private func look(_ state: inout State) throws -> ContinuousClock.Instant? {
    state.isCalm = false
    if news.members.exchange(false, ordering: .sequentiallyConsistent) {
      state.others.watched = [:]
      state.quietFrom = .now + Self.unrest
    }
    if news.names.exchange(false, ordering: .sequentiallyConsistent) || state.namesDue <= .now {
      state.readsNames = true
      if !state.hasEvents { state.others.watched = [:] }
    }
    let place = { [directory] in try directory.openForConsumer(waitsForCopies: false) }
    var findings = OtherConsumers.Findings()
    repeat {
      if state.readsNames {
        state.namesDue = .now + Self.namesInterval.0
        state.ring = .init(of: own, among: try names.read(at: place()))
      }
      findings = try state.others.look(around: state.ring)
      state.readsNames = !findings.abandoned.isEmpty
      _ = try giveBack(findings, at: place)
      // First the watch, then the look.
    } while try watch(findings.living, &state) || state.readsNames
    guard !findings.living.isEmpty || findings.hasHidden else {
      return state.ring.isEmpty ? nil : state.namesDue
    }
    if findings.hasStopped { return .now + LeaseRequest.grace }
    let isSure = !findings.hasHidden && state.quietFrom <= .now
    if isSure {
      // One without a watch has left since the look.
      let watched = findings.living.filter { state.watches[$0.id] != nil }
      state.others.watched = Dictionary(
        watched.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
      state.hasEvents = watched.allSatisfy { state.watches[$0.id]?.hasEvents == true }
      if !state.hasEvents { state.namesDue = min(state.namesDue, .now + Self.namesInterval.polled) }
      state.isCalm = watched.count == findings.living.count
    }
    if findings.hasHidden { state.readsNames = true }
    // A stopped process does not look, whichever neighbor it has.
    let areOwn = findings.living.allSatisfy { $0.isOwnProcess && state.watches[$0.id] != nil }
    return areOwn && isSure ? state.namesDue : .now + Self.lookInterval
  }

  /// Watches the registrations of those that were looked at, and of no others.
  ///
  /// - Returns: Whether there is a new watch.
  private func watch(_ members: [PresenceMember], _ state: inout State) throws -> Bool {
    var watches: [String: Watch] = [:]
    var isNew = false
    for member in members where watches[member.id] == nil {
      if let known = state.watches[member.id] {
        watches[member.id] = known
        continue
      }
      isNew = true
      watches[member.id] = try directory.queue.role.place.watchMember(member.id) {
        [news, looks, latch] event in
        news.members.store(true, ordering: .sequentiallyConsistent)
        if event.isEverything { latch.raise(at: .now + Self.lookInterval) } else { looks.begin() }
      }
      // Without events the look at all names finds its end.
      if watches[member.id]?.hasEvents == false { watches[member.id]?.cancel() }
    }
    state.watches = watches
    return isNew && watches.count == Set(members.map(\.id)).count
  }

  /// Gives all consumers the directories of those that are gone.
  ///
  /// - Returns: Their new names.
  private func giveBack(
    _ findings: OtherConsumers.Findings, at place: () throws -> QueueDirectory
  ) throws -> [String] {
    let free = try findings.abandoned.compactMap { try place().giveBack($0) }
    try directory.queue.role.place.retire(findings.dead)
    return free
  }
}

/// The names in `taken/`, which are read again only if the directory has changed. Its time is
/// trusted only if it was more than a second old: see `SynchronizedNames` for the reason.
final class TakenNames: Sendable {
  private struct State {
    var names: [String] = []
    var status: FileStatus?
  }

  private let state = Mutex(State())

  func read(at place: QueueDirectory) throws -> [String] {
    // Before the listing, so that the next look notices changes during it.
    let status = try ifPresent(place.fileStatus(QueueDirectory.taken))
    let known = state.withLock { $0 }
    if let status, known.status == status { return known.names }
    let isTrusted = status?.isTrusted(at: realTime()) == true
    let names = Array(try place.consumers())
    state.withLock { $0 = State(names: names, status: isTrusted ? status : nil) }
    return names
  }
}

/// The directories in `taken/` that may have no owner, for one consumer.
final class FreeDirectories: Sendable {
  private struct State {
    var names: Set<String> = []
    var mayHaveMore = false
  }

  private let state = Mutex(State())

  func add(_ names: [String]) { state.withLock { $0.names.formUnion(names) } }

  /// Adds those that an event names.
  ///
  /// - Returns: Whether there are any.
  func note(_ news: WatchNews) -> Bool {
    if news.isEverything || !news.own.isEmpty {
      noteEverything()
      return true
    }
    let free = news.names.keys.map(\.text).filter(QueueDirectory.isFree)
    add(free)
    return !free.isEmpty
  }

  func noteEverything() { state.withLock { $0.mayHaveMore = true } }

  /// Returns all of them, once.
  ///
  /// - Parameter list: Returns the names in `taken/`.
  func take(_ list: () throws -> [String]) throws -> Set<String> {
    guard state.withLock({ $0.mayHaveMore || !$0.names.isEmpty }) else { return [] }
    let (names, mayHaveMore) = state.withLock { state in
      (exchange(&state.names, with: []), exchange(&state.mayHaveMore, with: false))
    }
    guard mayHaveMore else { return names }
    do {
      return Set(try list().filter(QueueDirectory.isFree))
    } catch {
      noteEverything()
      throw error
    }
  }
}
