import SystemCalls

/// One thing that somebody watches.
struct WatchEntry {
  enum Target {
    /// The directory at a path, whichever it is.
    case path(String, parents: [String], prepare: @Sendable () throws -> Void)
    /// One open file, never looked for again.
    case open(descriptor: Int32)
  }

  let target: Target
  let events: WatchEvents
  let signal: @Sendable () -> Void
  /// For who wants to know where to look; called instead of `signal`.
  let hear: (@Sendable (WatchNews) -> Void)?
  /// The kernel's number, while there is a watch.
  var number: Int32?
  /// Which directory the watch is for.
  var watched: FileStatus?
  var detection: ChangeMonitor.Detection = .events
  /// When to look again, for what is polled or missing.
  var nextLook: ContinuousClock.Instant?

  init(
    path: String, parents: [String], prepare: @escaping @Sendable () throws -> Void,
    signal: @escaping @Sendable () -> Void
  ) {
    target = .path(path, parents: parents, prepare: prepare)
    // Everything by which a name's content may change, also under the hands of programs that do
    // not know us: a shell's redirection ends with a close after writing.
    events = [
      .movedTo, .movedFrom, .closedAfterWriting, .created, .deleted, .selfDeleted, .selfMoved,
      .onlyDirectory, .doNotFollow,
    ]
    self.signal = signal
    hear = nil
  }

  init(
    path: String, parents: [String], events: WatchEvents,
    prepare: @escaping @Sendable () throws -> Void, hear: @escaping @Sendable (WatchNews) -> Void
  ) {
    target = .path(path, parents: parents, prepare: prepare)
    self.events = events.union([.selfDeleted, .selfMoved, .onlyDirectory, .doNotFollow])
    signal = {}
    self.hear = hear
  }

  init(descriptor: Int32, events: WatchEvents, signal: @escaping @Sendable () -> Void) {
    target = .open(descriptor: descriptor)
    self.events = events
    self.signal = signal
    hear = nil
  }

  init(
    descriptor: Int32, events: WatchEvents, hear: @escaping @Sendable (WatchNews) -> Void
  ) {
    target = .open(descriptor: descriptor)
    self.events = events
    signal = {}
    self.hear = hear
  }

  /// Whether an event is for this entry: the inode's mask is the sum of what all its watchers want.
  func wants(_ raised: WatchEvents) -> Bool {
    let always: WatchEvents = [.ignored, .unmounted, .overflowed]
    return !raised.isDisjoint(with: events.union(always))
  }
}
