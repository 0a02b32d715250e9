/// The subject of a watch: the directory at a path, or an open file.
struct WatchEntry: Sendable {
  /// The path to a directory, whichever directory it names.
  ///
  /// In memory of its own, because a table of many entries has more room than it needs for them.
  final class Target: Sendable {
    let path: String
    /// Parent directories whose replacement also replaces it; the container comes first.
    let parents: [String]
    /// The container's path; its way is watched, too. Nil if another watch hears of a change there.
    let way: String?
    /// The lane whose looks follow one another: one for each container, so that a file system that
    /// does not answer delays no other.
    let lane: String
    /// The shortest interval between looks at it when it is polled.
    let pollInterval: Duration
    /// Whether the times of the directory and of the files in it show each event.
    let showsInFiles: Bool
    let prepare: @Sendable () throws -> Void

    init(
      path: String, parents: [String], way: String? = nil, lane: String? = nil,
      pollInterval: Duration = ChangeMonitor.pollInterval, showsInFiles: Bool = false,
      prepare: @escaping @Sendable () throws -> Void
    ) {
      self.path = path
      self.parents = parents
      self.way = way.flatMap(Self.above)
      self.lane = lane ?? parents.first ?? path
      self.pollInterval = pollInterval
      self.showsInFiles = showsInFiles
      self.prepare = prepare
    }

    // The last entry reports its end to the watch for it.
    private static func above(_ path: String) -> String? {
      path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[..<$0]) }
    }
  }

  /// The state of the looks at the target. Only one thread looks at a time, so that threads do not
  /// pile up behind a file system that does not answer.
  enum LookState {
    case none
    /// Pending in its lane.
    case awaited
    case underWay
    /// Under way, and an event has come since it began, which it may have missed.
    case underWayAndAwaited
  }

  /// Nil for an open file, which is never looked for again.
  let target: Target?
  /// The open file, as long as its status is compared.
  var file: SharedDescriptor?
  let events: WatchEvents
  /// Whether its news name entries; a directory with few entries is examined anyway.
  let readsNames: Bool
  let hear: @Sendable (WatchNews) -> Void
  /// The kernel's number, while there is a watch.
  var number: Int32?
  /// The directory of the watch.
  var watched: FileStatus.Identity?
  /// Set while the target is missing: the entry that has to appear in the watched directory, which
  /// is the nearest existing parent.
  var awaited: FileName?
  var detection: ChangeDetection = .events
  /// The status at the last look at a polled file or directory; nil if it shows too little, or if
  /// the last change is so recent that another one may not show.
  var seen: PolledStatus?
  /// The time of the next look at a polled or missing directory.
  var nextLook: ContinuousClock.Instant?
  /// The time for which the last planned look was planned; nil while events tell of changes.
  var planned: ContinuousClock.Instant?
  /// How late the last looks were.
  private var delay = Duration.zero
  var lookState = LookState.none

  init(
    _ target: Target?, events: WatchEvents, readsNames: Bool = true,
    hear: @escaping @Sendable (WatchNews) -> Void
  ) {
    self.target = target
    self.readsNames = readsNames
    self.events =
      target == nil ? events : events.union([.selfDeleted, .selfMoved, .onlyDirectory])
    self.hear = hear
  }

  var isPolled: Bool { detection != .events }

  /// Whether each event to report changes the times of the file or directory itself.
  var showsInTimes: Bool {
    events.isSubset(of: target == nil ? .inTimes.union(.attributes) : .inTimes)
  }

  /// Whether to look at it now. Entries that are not urgent share an iteration: half an interval joins
  /// any two of them in the end.
  func isDue(_ now: ContinuousClock.Instant) -> Bool {
    guard let nextLook else { return true }
    return nextLook <= now + (seen == nil ? .zero : interval / 2)
  }

  /// The interval between looks at a polled target: it grows with the time since the last change, and
  /// with the delay of the last looks, so that a thousand processes do not keep each other from looking.
  var interval: Duration {
    let shortest = (isPolled ? target?.pollInterval : nil) ?? ChangeMonitor.pollInterval
    let calm = max(seen.map { $0.sinceChange / 5 } ?? .zero, delay * 4)
    return max(shortest, min(calm, ChangeMonitor.calmInterval))
  }

  /// Plans the next look after one that has ended now.
  mutating func planLook(now: ContinuousClock.Instant) {
    let late = planned.map { max(.zero, now - $0) } ?? .zero
    delay = max(late, delay / 2)
    let next = now + interval
    (planned, nextLook) = (next, next)
  }

  /// Whether the watched directory's parent reports its removal. The container's parent does not:
  /// anything may happen in it.
  var hasWatchedParent: Bool { awaited == nil && target?.parents.isEmpty != true }

  /// Returns whether an event concerns this entry, because the inode's mask is the union of all its
  /// watchers' masks.
  func wants(_ raised: WatchEvents) -> Bool {
    !raised.isDisjoint(with: (awaited == nil ? events : .appearance).union(.unasked))
  }
}

extension WatchEvents {
  /// Reported to every watch.
  fileprivate static let unasked: WatchEvents = [.ignored, .unmounted, .overflowed]

  /// The watched file or directory is no longer at its place.
  static let ends: WatchEvents = [.selfDeleted, .selfMoved, .ignored, .unmounted]

  /// Events that change the times of a directory.
  fileprivate static let inTimes: WatchEvents = names.union([
    .selfDeleted, .selfMoved, .onlyDirectory,
  ])

  /// For a parent, while the entry to watch in it is missing.
  static let appearance: WatchEvents = [
    .movedTo, .created, .deleted, .selfDeleted, .selfMoved, .onlyDirectory,
  ]

  /// All events of a change of a name's content, even by foreign programs: a shell's redirection
  /// ends with a close after writing.
  package static let content: WatchEvents = names.union(.closedAfterWriting)

  /// All events of a directory's names.
  package static let names: WatchEvents = [.movedTo, .movedFrom, .created, .deleted]
}
