package import SystemCalls

/// One thing that somebody watches: the directory at a path, or an open file.
struct WatchEntry: Sendable {
  /// Where a directory is looked for, whichever the path names.
  struct Place: Sendable {
    let path: String
    /// Directories above it whose own replacement replaces it, too; the container comes first.
    let parents: [String]
    let prepare: @Sendable () throws -> Void

    /// What is looked at one after another: all of one container, so that a file system that does
    /// not answer delays nobody else.
    var lane: String { parents.first ?? path }
  }

  /// Whether a thread looks at the place. One at a time does, so nobody piles up behind a file
  /// system that does not answer.
  enum Look {
    case none
    /// In its lane.
    case awaited
    case underWay
    /// Something has happened since it began, which it may not have seen.
    case underWayAndAwaited
  }

  /// Nil for an open file, which is never looked for again.
  let place: Place?
  let events: WatchEvents
  let hear: @Sendable (WatchNews) -> Void
  /// The kernel's number, while there is a watch.
  var number: Int32?
  /// Which directory the watch is for.
  var watched: FileStatus?
  var detection: ChangeMonitor.Detection = .events
  /// When to look again, for what is polled or missing.
  var nextLook: ContinuousClock.Instant?
  var look = Look.none

  init(
    _ place: Place?, _ events: WatchEvents, _ hear: @escaping @Sendable (WatchNews) -> Void
  ) {
    self.place = place
    self.events =
      place == nil ? events : events.union([.selfDeleted, .selfMoved, .onlyDirectory])
    self.hear = hear
  }

  /// Whether an event is for this entry: the inode's mask is the sum of what all its watchers want.
  func wants(_ raised: WatchEvents) -> Bool {
    let always: WatchEvents = [.ignored, .unmounted, .overflowed]
    return !raised.isDisjoint(with: events.union(always))
  }
}

extension WatchEvents {
  /// Everything by which a name's content may change, also under the hands of programs that do not
  /// know us: a shell's redirection ends with a close after writing.
  package static let content: WatchEvents = [
    .movedTo, .movedFrom, .closedAfterWriting, .created, .deleted,
  ]
}
