import Dispatch
import Synchronization
import SystemCalls

extension SharedContainer {
  /// Whether all that this process has published without durability is on the disk.
  package var hasFollowedUp: Bool { root.followUps.isDone }
}

/// The values of one container that this process has changed a moment ago: a second later they are put
/// on the disk, so that a loss of power takes back the last seconds at most.
///
/// How soon a file system does so by itself is its own affair (ext4 5 s for a name, xfs 30 s, and the
/// kernel 30 s for content), and so it is for what a process did in the second before its end. One
/// fsync of a file and its directory a second, however often the value was published.
final class FollowUps: Sendable {
  private struct State {
    var due: [String: NameKind] = [:]
    /// Whether a look is on its way: one at a time, also where a file system hangs.
    var isScheduled = false
  }

  private let state = Mutex(State())
  private static let delay = DispatchTimeInterval.seconds(1)

  /// Whether a value is going to be put on the disk.
  func contains(_ path: String) -> Bool { state.withLock { $0.due[path] != nil } }

  /// Whether nothing is on its way any more.
  var isDone: Bool { state.withLock { $0.due.isEmpty && !$0.isScheduled } }

  /// Has a value, or its removal, put on the disk in a second.
  ///
  /// - Parameters:
  ///   - path: of its file, relative to the container.
  ///   - root: kept as long as that takes.
  func add(_ path: String, _ kind: NameKind, in root: ContainerRoot) {
    let isFirst = state.withLock { state in
      state.due[path] = kind
      defer { state.isScheduled = true }
      return !state.isScheduled
    }
    if isFirst { schedule(root) }
  }

  private func schedule(_ root: ContainerRoot) {
    DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + Self.delay) {
      // What is published from here on is added again, and waits for the disk.
      let due = self.state.withLock { state in
        defer { state.due = [:] }
        return state.due
      }
      for (path, kind) in due where !Self.synchronize(path, kind, in: root) { break }
      let isDone = self.state.withLock { state in
        state.isScheduled = !state.due.isEmpty
        return state.due.isEmpty
      }
      if !isDone { self.schedule(root) }
    }
  }

  /// - Returns: false when the disk has failed, which is told once and not for each value.
  private static func synchronize(
    _ path: String, _ kind: NameKind, in root: ContainerRoot
  ) -> Bool {
    do {
      let handle = try root.handle()
      let container = handle.descriptor.rawValue
      do throws(Errno) {
        try FileDescriptor.openBeneath(path, at: container, [.readOnly, .nonBlocking]).synchronize()
      } catch {
        // Its removal is to last as well.
        guard error == .noSuchFile else { throw error }
      }
      let directory = path.split(separator: "/").dropLast().joined(separator: "/")
      try FileDescriptor.openBeneath(directory, at: container, [.readOnly, .directory])
        .synchronize()
      try handle.synchronizedNames.synchronize(kind, in: handle.descriptor)
      return true
    } catch let error as Errno where error == .inputOutput || error == .noSpace {
      Diagnostics.report(
        AppGroupError.refused("put a value on the disk", path: root.path + "/" + path, error))
      return false
    } catch {
      // It is not there any more, nor is perhaps the container; or it is nothing of ours.
      return true
    }
  }
}
