import Synchronization
package import WormholeSystem

/// The container's directory, held open and checked.
///
/// Everything inside is opened relative to this descriptor, so nothing on the path can be replaced
/// by a link. At most once a second an operation checks whether the path still names the same
/// directory, and opens the new directory if it was replaced.
package final class ContainerRoot: Sendable {
  package final class Handle: Sendable {
    package let descriptor: FileDescriptor
    package let status: FileStatus
    package let synchronizedNames = SynchronizedNames()
    private let scope = Mutex<CommitScope?>(nil)
    /// Whether the times of a directory show each change of it. False if that cannot be determined.
    package let showsEachChange: Bool
    /// A time before which the path named another directory; nil for the first one.
    let namedSince: WallTime?
    /// Whether the file system is known to keep a file's time to the nanosecond.
    let keepsNanoseconds = Atomic(false)

    init(
      descriptor: consuming FileDescriptor, status: FileStatus, namedSince: WallTime? = nil
    ) {
      self.descriptor = descriptor
      self.status = status
      self.namedSince = namedSince
      // A lease is then never kept, which costs only time.
      showsEachChange = (try? self.descriptor.fileSystem().showsEachChange) ?? false
    }

    /// What an fsync of a file inside puts on the disk; determined once.
    package func commitScope() throws(Errno) -> CommitScope {
      if let known = scope.withLock({ $0 }) { return known }
      let found = try descriptor.commitScope()
      scope.withLock { $0 = found }
      return found
    }
  }

  package let path: String
  package let access: ContainerAccess
  /// The identifier of the group whose container it is.
  private let group: String?
  /// The open directory, and when it was checked, by the clock of the machine (`bootTimeNanoseconds`).
  private let state: Mutex<(handle: Handle, checked: UInt64)>
  /// How long a path is trusted to still name the directory that was opened.
  package static let recheck: Duration = .nanoseconds(Int64(recheckNanoseconds))
  static let recheckNanoseconds: UInt64 = 1_000_000_000
  /// What the primitives remember, by its types.
  private let memories = Mutex<[ObjectIdentifier: any ContainerMemory]>([:])

  /// - Parameters:
  ///   - access: nil for the access that the directory's mode shows.
  ///   - group: the group whose container it is, which each opening and change makes if it is missing.
  package init(path: String, access: ContainerAccess?, group: String? = nil) throws {
    let handle = try Self.open(path, access, isOfGroup: group != nil)
    self.path = path
    self.group = group
    self.access = access ?? ContainerAccess(of: handle.status)
    if self.access == .group { ForeignLinks.expect() }
    state = Mutex((handle, bootTimeNanoseconds()))
  }

  private static func open(
    _ path: String, _ access: ContainerAccess?, isOfGroup: Bool, namedSince: WallTime? = nil
  ) throws -> Handle {
    let action = "open the container"
    do {
      let named = try fileStatus(path)
      guard named.kind == .directory else {
        throw WormholeError(
          .containerUnsafe, action, path: path,
          reason: named.kind == .symbolicLink ? "it is a symbolic link" : "it is not a directory",
          remedy: "name the directory itself",
          errorNumber: named.kind == .symbolicLink ? nil : Errno.notDirectory.rawValue)
      }
      let descriptor = try FileDescriptor.open(path, [.readOnly, .directory, .noFollow])
      let status = try descriptor.status()
      try (access ?? ContainerAccess(of: status)).check(status, path: path) {
        // Whatever the entry is, this process cannot use it.
        (try? ContainerFormat.isPresent(at: descriptor.rawValue)) ?? false
      }
      return Handle(descriptor: descriptor, status: status, namedSince: namedSince)
    } catch let error as Errno {
      guard error == .noSuchFile || error == .notDirectory else {
        throw WormholeError.refused(action, path: path, error)
      }
      throw WormholeError(
        .containerMissing, action, path: path, reason: "there is no such directory",
        remedy: isOfGroup ? "the next use of the group makes it" : "mkdir -m 0700 '\(path)'",
        errorNumber: error.rawValue)
    }
  }

  /// Returns the directory that the path names, or named at most a second ago.
  package func handle() throws -> Handle {
    let now = bootTimeNanoseconds()
    let (handle, checked) = state.withLock { ($0.handle, $0.checked) }
    if now < checked + Self.recheckNanoseconds { return handle }
    return try rechecked(handle, now: now)
  }

  /// Returns the same for a call on something inside that was found before.
  ///
  /// - Throws: `.staleHandle` if the container has just been replaced, and what is inside with it.
  func currentHandle() throws(Errno) -> Handle {
    do {
      return try handle()
    } catch {
      throw error as? Errno ?? .staleHandle
    }
  }

  /// The directory that the path named at the last look, without a system call. For callers that
  /// know from events that it was not replaced.
  package var lastHandle: Handle { state.withLock(\.handle) }

  /// Opens the directory again if the path names another one than before, without waiting a second;
  /// for callers that found their directory removed.
  package func refreshed(_ old: Handle) throws -> Handle {
    isAtPath(old) ? old : try rechecked(old)
  }

  private func isAtPath(_ handle: Handle) -> Bool {
    // Opening it reports a fault of the path.
    guard let current = try? fileStatus(path) else { return false }
    let known = handle.status
    return current.isSameFile(as: known) && current.permissions == known.permissions
      && current.owner == known.owner
  }

  /// The same, with what is due once a second.
  package func rechecked(_ old: Handle, now: UInt64 = bootTimeNanoseconds()) throws -> Handle {
    let handle: Handle
    if isAtPath(old) {
      handle = old
    } else {
      handle = try Self.open(path, access, isOfGroup: group != nil, namedSince: namedSince)
      for memory in allMemories { memory.closeAll() }
    }
    // Another thread that looked later may have found a newer directory.
    let latest = state.withLock { state in
      if state.handle === old { state = (handle, now) }
      return state.handle
    }
    for memory in allMemories { memory.look(at: latest) }
    return latest
  }

  /// Returns what a primitive remembers.
  func memory<Memory: ContainerMemory>(_ type: Memory.Type = Memory.self) -> Memory {
    let key = ObjectIdentifier(type)
    if let known = memories.withLock({ $0[key] }) as? Memory { return known }
    let new = Memory()
    new.look(at: lastHandle)
    return memories.withLock { memories in
      let first = memories[key] as? Memory ?? new
      memories[key] = first
      return first
    }
  }

  var allMemories: [any ContainerMemory] { memories.withLock { Array($0.values) } }

  /// A time up to which the path named the directory of the last look: that look, or the time at which a
  /// link on the way was pointed elsewhere.
  private var namedSince: WallTime {
    let checked = state.withLock(\.checked)
    let age = max(bootTimeNanoseconds(), checked) - checked
    let last = WallTime.ago(nanoseconds: age + Self.clockDelay)
    return max(last, PathWay(to: path).linked ?? last)
  }

  /// How late a file system's clock may be.
  private static let clockDelay: UInt64 = 20_000_000

  /// Makes a change. If the container of a group was removed, it is made again first.
  ///
  /// - Parameter body: What it has done is done again in the new container.
  package func changing<Result: ~Copyable>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch  where group != nil && !mayExist(path) {
      ContainerLocation.awaitQuiet(above: path)
      try ContainerLocation.create(path)
      try establish()
      return try body()
    }
  }

  private func establish() throws {
    _ = try rechecked(lastHandle)
    try ContainerFormat.establish(in: self, group: group)
  }

  /// Watches a directory inside, even if it is created later.
  ///
  /// - Parameters:
  ///   - parents, pollInterval, showsInFiles: See `ChangeMonitor.watch`.
  ///   - monitor: The monitor that takes the events.
  package func watch(
    _ path: String, below parents: [String], events: WatchEvents = .content,
    readsNames: Bool = true, pollInterval: Duration = ChangeMonitor.pollInterval,
    showsInFiles: Bool = false, by monitor: ChangeMonitor = .shared,
    _ hear: @escaping @Sendable (WatchNews) -> Void
  ) -> Watch {
    monitor.watch(
      path: path, parents: parents, way: self.path, events, readsNames: readsNames,
      pollInterval: pollInterval, showsInFiles: showsInFiles,
      // Called when a directory was replaced. The check once a second would be too late for the
      // observers, which are signalled right after this.
      prepare: { _ = try self.refreshed(self.handle()) }, hear: hear)
  }

  /// Returns what an fsync of a file or directory inside puts on the disk.
  ///
  /// - Parameter device: Its own: something else may be mounted on a directory of the container.
  package func commitScope(on device: UInt64) throws(Errno) -> CommitScope {
    let container = try currentHandle()
    guard device == container.status.device else { return .content }
    return try container.commitScope()
  }

  /// Whether the times of a directory inside show each change of it.
  ///
  /// - Parameter device: Its own, as for `commitScope`.
  func showsEachChange(on device: UInt64) -> Bool {
    let container = lastHandle
    return device == container.status.device && container.showsEachChange
  }

  /// Returns the entries of a directory inside; nil if there is none.
  package static func entries(
    _ path: String, at directory: Int32
  ) throws(Errno) -> [FileDescriptor.Entry]? {
    try ifPresent(
      FileDescriptor.openBeneath(path, at: directory, [.readOnly, .directory]).remainingEntries())
  }

  /// Creates a directory inside with the container's mode; succeeds if it exists.
  package func makeDirectoryIfMissing(
    _ path: String, at directory: Int32, staging: String? = nil
  ) throws(Errno) {
    try access.makeDirectoryIfMissing(path, at: directory, staging: staging)
  }
}
