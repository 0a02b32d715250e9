import Synchronization
import WormholeSystem

/// The values of one container that this process changed a moment ago. They are flushed to the disk
/// a second later, so that a loss of power undoes at most the last seconds.
///
/// Without this, the time depends on the file system (ext4 5 s for a name, xfs 30 s, and the kernel
/// 30 s for content), as it does for the changes in the last second of a process. The cost is one
/// fsync of a file and its directory per second, however often the value was published.
package final class FollowUps: ContainerMemory {
  private struct State {
    var due: [String: NameKind] = [:]
    /// Whether a look is scheduled: only one at a time, even if a file system hangs.
    var isScheduled = false
  }

  /// Remembers whether a value is due, so that a hot one need not be looked up by its path.
  package struct Mark: ~Copyable, Sendable {
    fileprivate let round = Atomic(0)

    package init() {}
  }

  private let state = Mutex(State())
  /// Changes when values stop being due; a mark with this number belongs to a value that is due.
  private let round = Atomic(1)
  /// The containers that have something to flush.
  private static let pending = Mutex<[ObjectIdentifier: ContainerRoot]>([:])
  private static let delay: Duration = .seconds(1)

  /// Returns whether a value will be flushed.
  package func contains(_ path: String, _ mark: borrowing Mark) -> Bool {
    isDue(mark) || state.withLock { $0.due[path] != nil }
  }

  private func isDue(_ mark: borrowing Mark) -> Bool {
    mark.round.load(ordering: .relaxed) == round.load(ordering: .sequentiallyConsistent)
  }

  /// Whether a flush is due, after which all that the primitives keep open is closed.
  var isScheduled: Bool { state.withLock(\.isScheduled) }

  /// Whether nothing is pending.
  var isDone: Bool { state.withLock { $0.due.isEmpty && !$0.isScheduled } }

  /// Schedules a flush of a value, or of its removal, in a second.
  ///
  /// - Parameters:
  ///   - path: The path of its file, relative to the container.
  ///   - root: The container, which is kept open until then.
  ///   - mark: The value's mark in this process.
  package func add(
    _ path: String, _ kind: NameKind, in root: ContainerRoot, _ mark: borrowing Mark
  ) {
    // The flush that follows finds the content that was published before this.
    if isDue(mark) { return }
    let isFirst = state.withLock { state in
      if state.due[path] == nil { state.due[path] = kind }
      mark.round.store(round.load(ordering: .relaxed), ordering: .relaxed)
      return !exchange(&state.isScheduled, with: true)
    }
    guard isFirst else { return }
    Self.pending.withLock { $0[ObjectIdentifier(root)] = root }
    schedule(root)
  }

  static func finishAll() {
    for root in pending.withLock({ Array($0.values) }) {
      // It is unknown, or the container is gone, which the flush notices.
      let isFast = try? root.handle().descriptor.fileSystem().commitsWithinSeconds
      if isFast != true { root.followUps.finish(root) }
    }
  }

  private func finish(_ root: ContainerRoot) {
    let due = state.withLock { state in
      round.add(1, ordering: .sequentiallyConsistent)
      return exchange(&state.due, with: [:])
    }
    for (path, kind) in due where !Self.synchronize(path, kind, in: root) { break }
  }

  // Its own thread, because the dispatch library ends a process that gets no descriptor for its timers,
  // and waits as long as the process cannot have more threads.
  private func schedule(_ root: ContainerRoot) {
    do throws(Errno) {
      try startThread(name: "wormhole.flush") { [self] in
        repeat {
          pauseThread(Self.delay)
          // A publication from here on is added again, and waits for the disk.
          finish(root)
          for memory in root.allMemories { memory.closeAll() }
        } while state.withLock { state in
          state.isScheduled = !state.due.isEmpty
          return state.isScheduled
        }
        // Excludes: a lease that was kept open since, and is not closed because this was scheduled.
        for memory in root.allMemories { memory.closeAll() }
        Self.pending.withLock { pending in
          // Excludes: a value that was added since, whose container would be forgotten.
          if isDone { pending[ObjectIdentifier(root)] = nil }
        }
      }
    } catch {
      // The next publication tries again; a program flushes it when it ends.
      state.withLock { state in
        state.isScheduled = false
        round.add(1, ordering: .sequentiallyConsistent)
      }
    }
  }

  /// - Returns: False if the disk has failed, which is reported once, not for each value.
  private static func synchronize(
    _ path: String, _ kind: NameKind, in root: ContainerRoot
  ) -> Bool {
    do {
      let handle = try root.handle()
      let container = handle.descriptor.rawValue
      // The removal must survive, too.
      _ = try ifPresent(
        FileDescriptor.openBeneath(path, at: container, [.readOnly, .nonBlocking]).synchronize())
      let directory = path.split(separator: "/").dropLast().joined(separator: "/")
      try FileDescriptor.openBeneath(directory, at: container, [.readOnly, .directory])
        .synchronize()
      try handle.synchronizedNames.synchronize(kind, in: handle.descriptor)
      return true
    } catch let error as Errno where error == .inputOutput || error == .noSpace {
      Diagnostics.report(
        WormholeError.refused("put a value on the disk", path: root.path + "/" + path, error))
      return false
    } catch {
      // The file is gone, perhaps with the container; or it is a foreign entry.
      return true
    }
  }
}

extension ContainerRoot {
  /// The values that this process published a moment ago.
  package var followUps: FollowUps { memory() }
}
