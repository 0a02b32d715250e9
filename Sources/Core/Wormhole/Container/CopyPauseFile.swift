import Synchronization
package import WormholeSystem

/// The pause in which a copier reads a container that changes faster than it can be read.
///
/// ```
/// own/picture   an empty file that a copier makes; it holds the lock as long as it works
/// ```
///
/// | step | made by | effect |
/// |---|---|---|
/// | the file, with a shared lock | a copier that has met a change | a process that opens the container sees it at once, and any other process within a second, when it checks the container's path: it costs a change no call |
/// | the exclusive lock | the copier, more than a second later, for at most `longest` | a change that would begin now waits |
/// | the file is unlinked | the copier; or a process that finds it unlocked, or its holder overdue | all continue |
///
/// The pause is advisory. The copy is correct because of what the copier has seen, not because
/// other processes wait; so a change that does not wait, or was under way, costs the copier another
/// pass. And no process waits long: not for a holder that was stopped for 50 ms, as with a lease,
/// and never for more than `longest`.
///
/// **If you break this rule**, and change something in the pause, a copy of a busy container takes
/// longer; it is never wrong.
package final class CopyPauseFile: ContainerMemory {
  /// The longest pause: the term of a lease.
  package static let longest = LeaseDeclaration.standardTerm
  /// How long a copier waits before its first pause, so that all processes know of it.
  package static let notice = ContainerRoot.recheck + .milliseconds(100)
  /// After a holder was overdue, no process waits for other copiers: waits take at most a quarter
  /// of the time. A copier continues for longer (`ContainerSnapshot.patience`), so a pause that was
  /// too long costs it more passes, but not its work.
  private static let distrust: Duration = longest * 3

  /// Relative to the container. The name on disk is older than the word.
  package static let path = NameKind.own + "/picture"

  private let isThere = Atomic(false)
  /// Whether a copier may want changes to wait.
  var isExpected: Bool { isThere.load(ordering: .relaxed) }
  private let distrustedUntil = Mutex(ContinuousClock.now)

  func look(at handle: ContainerRoot.Handle) {
    guard distrustedUntil.withLock({ $0 }) <= .now else { return }
    look(at: handle.descriptor.rawValue)
  }

  /// Checks whether there is a copier, and removes what a dead one has left behind.
  fileprivate func look(at container: Int32) {
    isThere.store(isHeld(at: container), ordering: .relaxed)
  }

  private func isHeld(at container: Int32) -> Bool {
    do throws(Errno) {
      guard try exists(Self.path, at: container), let file = try Self.open(at: container) else {
        return false
      }
      guard try file.tryLock(.exclusive) else { return true }
      try removeIfPresent(Self.path, at: container)
      return false
    } catch {
      // If the sign cannot be checked, there is no pause.
      return false
    }
  }

  private static func open(at container: Int32) throws(Errno) -> FileDescriptor? {
    try ifPresent(.openBeneath(path, at: container, [.readOnly, .nonBlocking]))
  }

  /// One change's wait for the end of a pause.
  package struct CopyPauseWait {
    private var since: ContinuousClock.Instant?
    private var observed = Observed()

    package init() {}

    /// Whether a change should not begin yet: look again a millisecond later.
    ///
    /// - Complexity: No call, unless there is a copier: then open, flock and close.
    package mutating func mustWait(
      in root: ContainerRoot, until deadline: ContinuousClock.Instant
    ) -> Bool {
      guard root.pause.isExpected else { return false }
      let now = ContinuousClock.now
      let first = since ?? now
      since = first
      guard now < deadline else { return false }
      do throws(Errno) {
        let handle = root.lastHandle
        let container = handle.descriptor.rawValue
        guard let file = try CopyPauseFile.open(at: container) else {
          root.pause.isThere.store(false, ordering: .relaxed)
          return false
        }
        if try file.tryLock(.shared) { return false }
        let isOverdue = try observed.exclusiveLockIsOverdue(file.status(), now: now)
        guard isOverdue || now - first >= longest else { return true }
        root.pause.distrust()
        try removeIfPresent(CopyPauseFile.path, at: container)
        return false
      } catch {
        // As above.
        return false
      }
    }

    /// Blocks the calling thread until a change may begin, or until the deadline.
    package mutating func wait(in root: ContainerRoot, until deadline: ContinuousClock.Instant?) {
      while mustWait(in: root, until: deadline ?? .now + longest) { pauseThread(.milliseconds(1)) }
    }
  }

  private func distrust() {
    isThere.store(false, ordering: .relaxed)
    distrustedUntil.withLock { $0 = .now + Self.distrust }
  }
}

extension ContainerRoot {
  /// Whether a copier wants changes to wait now and then.
  var pause: CopyPauseFile { memory() }
}

/// A copier's side.
package final class CopyPause: Sendable {
  private let root: ContainerRoot
  private let file: FileDescriptor
  private let begun = ContinuousClock.now

  /// Makes the sign.
  ///
  /// - Throws: `Errno` where nothing can be created: `.alreadyExists` while another copier works.
  package init(in root: ContainerRoot, at container: Int32) throws(Errno) {
    self.root = root
    try root.makeDirectoryIfMissing(NameKind.own, at: container)
    // Removes what a dead copier has left behind.
    root.pause.look(at: container)
    file = try root.access.createFile(CopyPauseFile.path, at: container)
    _ = try file.tryLock(.shared)
  }

  /// When the first pause may begin.
  package var notice: ContinuousClock.Instant { begun + CopyPauseFile.notice }

  /// Holds changes back while a closure runs, unless a process looks at the sign for longer than a
  /// moment just now.
  package func run<Result>(_ body: () throws -> Result) throws -> Result {
    for _ in 0..<50 {
      if try file.tryLock(.exclusive) { break }
      pauseThread(.microseconds(100))
    }
    defer {
      // If it fails, it is unlocked at the latest when the file is closed.
      _ = try? file.tryLock(.shared)
    }
    return try body()
  }

  /// Removes the sign.
  package func end() {
    do throws(Errno) {
      let handle = root.lastHandle
      let container = handle.descriptor.rawValue
      guard try fileStatus(CopyPauseFile.path, at: container).isSameFile(as: file.status()) else {
        return
      }
      try removeFile(CopyPauseFile.path, at: container)
    } catch {
      // A process that finds it unlocked removes it.
      return
    }
  }
}
