import Synchronization
import Wormhole
import WormholeSystem

/// What an access has to know of the directories above the one that contains its item: which are
/// containers, because presenters register there, and which have a site, because a process may keep
/// their contents.
///
/// An item that is accessed again within a moment is looked up once. Its directories are watched
/// (inotify(7)), and as long as there is no event, nothing was created in them or moved there, and
/// none of them was moved or removed. The kernel queues an event before the call that causes it
/// returns. So a process whose site or container is not seen here does not yet keep the contents
/// or registered a presenter: when it looks, it finds this access, which has announced itself
/// (Tests/Models/contents.pml, KEEP_ABOVE).
///
/// The directory that contains the item is not watched, because each write makes a site in it.
/// Everything is forgotten after a second, because a mount causes no event. There is one event
/// queue per process; without one, or with a directory that cannot be watched, every access looks.
final class DirectoriesAbove: Sendable {
  /// The containers, nearest first, and then the user's own one for file coordination.
  let containers: [ItemPath]
  /// The directories that have a site, the nearest first.
  let sites: [ItemPath]
  /// The places beside the item that each access looks at.
  let site: String
  let containerBeside: String
  private let watches: Watches

  /// The kernel's watches of all these directories, and the time until which they are relied on.
  private struct Watches: Sendable {
    let queue: SharedDescriptor
    let end: ContinuousClock.Instant
  }

  /// What was found a moment ago, if nothing has happened since.
  ///
  /// - Complexity: one system call, or none.
  static func current(_ item: ItemPath) -> DirectoriesAbove? {
    guard let known = known(item), known.isCurrent else { return nil }
    return known
  }

  /// The same, or a new look and its watches if the item was also accessed a moment ago.
  ///
  /// - Returns: nil if the caller itself has to look.
  /// - Complexity: one system call in most cases; six for each directory above, at most once a
  ///   second, for a new look.
  static func watched(_ item: ItemPath) -> DirectoriesAbove? {
    if let current = current(item) { return current }
    let now = ContinuousClock.now
    guard let watches = remember({ $0.watches(for: item, now: now) }) else { return nil }
    guard watchAll(above: item, watches.queue) else {
      remember { $0.forget() }
      return nil
    }
    // After the watches, so that nothing happens unseen in between.
    let found = DirectoriesAbove(item, watches)
    remember { $0.known[item] = found }
    return found
  }

  /// What was found at the last look; see `isCurrent`.
  static func known(_ item: ItemPath) -> DirectoriesAbove? { memory.withLock { $0.known[item] } }

  /// Whether nothing has happened since the look.
  ///
  /// - Complexity: one system call.
  var isCurrent: Bool {
    guard ContinuousClock.now < watches.end else { return false }
    var byte: UInt8 = 0
    do throws(Errno) {
      // An event has more bytes: it is reported, but stays for the next look (inotify(7), EINVAL).
      _ = try withUnsafeMutableBytes(of: &byte) { (buffer) throws(Errno) in
        try watches.queue.descriptor.read(into: buffer)
      }
      return false
    } catch {
      return error == .wouldBlock
    }
  }

  private init(_ item: ItemPath, _ watches: Watches) {
    self.watches = watches
    site = ItemSite.path(of: item)
    containerBeside = item.parent.text + Self.mark
    let above = Self.containers(item, levels: 2...)
    sites = item.coordinatedAncestors
    containers = above + Self.existingOwnContainer
  }

  private static func watchAll(above item: ItemPath, _ queue: SharedDescriptor) -> Bool {
    let ownLevels = Self.ownContainer.map { [$0] + $0.ancestors } ?? []
    do throws(Errno) {
      // From the root down: a missing one is an entry of a watched one when it appears.
      for directory in item.ancestors.dropFirst().reversed() {
        if try !watch(directory, queue) { return false }
      }
      for directory in ownLevels.reversed() {
        if let isWatched = try ifPresent(watch(directory, queue)), !isWatched { return false }
      }
      return true
    } catch {
      // This user may not read it, or no watch is left.
      return false
    }
  }

  /// - Returns: false on a network file system, where other machines cause no events here.
  private static func watch(
    _ directory: ItemPath, _ queue: SharedDescriptor
  ) throws(Errno) -> Bool {
    let open = try FileDescriptor.open(directory.text + "/", [.pathOnly, .directory])
    guard try open.fileSystem().networkName == nil else { return false }
    _ = try queue.descriptor.addWatch(
      "/proc/self/fd/\(open.rawValue)",
      [.created, .movedTo, .selfMoved, .selfDeleted, .addToExisting, .once])
    return true
  }

  // MARK: What is remembered

  private static let memory = Mutex(Memory())

  /// Changes the memory. What it forgets is released after the lock: that may close the queue.
  private static func remember<Result: Sendable>(_ change: (inout Memory) -> Result) -> Result {
    let (result, old) = memory.withLock { memory in
      let old = memory
      return (change(&memory), old)
    }
    return withExtendedLifetime(old) { result }
  }

  private struct Memory: Sendable {
    var known: [ItemPath: DirectoriesAbove] = [:]
    private var watches: Watches?
    /// The item of the last look, which is watched if it is looked for again at once.
    private var last: (item: ItemPath, time: ContinuousClock.Instant)?
    /// The number of coming looks that watch nothing, because the last watches were of no use.
    private var unwatched = 0

    private static let mostItems = 64
    private static let term: Duration = .seconds(1)
    /// Watching costs as much as several looks.
    private static let pause: Duration = .milliseconds(100)
    private static let mostUnwatched = 32

    /// The watches for a look at the directories of an item, to be completed by the caller.
    mutating func watches(for item: ItemPath, now: ContinuousClock.Instant) -> Watches? {
      if known[item] != nil {
        let isOver = watches.map { now >= $0.end } ?? true
        forget()
        if isOver { unwatched = 0 }
      }
      if let watches, now < watches.end, known.count < Self.mostItems { return watches }
      defer { last = (item, now) }
      guard unwatched == 0 else {
        unwatched -= 1
        return nil
      }
      guard let last, last.item == item, now < last.time + Self.pause else { return nil }
      // No queue is left for this user, or no descriptor for this process.
      guard let queue = try? FileDescriptor.eventQueue() else { return nil }
      known = [:]
      watches = Watches(queue: SharedDescriptor(queue), end: now + Self.term)
      return watches
    }

    /// Something has happened, or cannot be watched.
    mutating func forget() {
      known = [:]
      watches = nil
      unwatched = Self.mostUnwatched
    }
  }
}

/// The looks themselves.
extension DirectoriesAbove {
  /// The group of the user's own container for file coordination.
  static let ownGroup = "file-coordination"
  /// If neither XDG_DATA_HOME nor HOME is set, no process can have registered there.
  private static let ownContainer = try? ItemPath(ContainerLocation.path(forGroup: ownGroup))

  /// The file that makes a directory a container.
  private static let mark = "/container.plist"

  static func isMark(_ path: some PathText) -> Bool { statusIfVisible(path)?.kind == .regular }

  /// - Complexity: one system call.
  static var existingOwnContainer: [ItemPath] {
    [ownContainer].compactMap(\.self).filter { isMark($0.text + mark) }
  }

  /// The path and the directories above it that are containers, nearest first.
  ///
  /// - Parameter levels: those to look at; 0 is the path.
  /// - Complexity: one system call for each level.
  static func containers(_ path: ItemPath, levels: some RangeExpression<Int>) -> [ItemPath] {
    path.lineage(having: mark, levels: levels) { isMark($0) }
  }
}

extension WatchEvents {
  /// Not an event: the watch ends with the first one (`IN_ONESHOT`), so that a queue that is not
  /// looked at does not grow.
  fileprivate static let once = WatchEvents(rawValue: 1 << 31)
}
