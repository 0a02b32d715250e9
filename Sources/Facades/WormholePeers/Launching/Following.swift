import Dispatch
import Wormhole
import WormholeSystem

/// Waits for a child's end without a thread, so that the child never stays a zombie.
///
/// - Parameter ended: called once, on a thread that may block; gets nil when another part of this
///   process has waited for all its children, which loses how this child ended.
func follow(
  _ child: consuming ChildProcess, ended: @escaping @Sendable (Termination?) -> Void
) {
  let followed = FollowedChild(child)
  let source = DispatchSource.makeReadSource(
    fileDescriptor: followed.process.descriptor, queue: Blocking.queue())
  source.setEventHandler {
    do {
      guard let end = try followed.process.wait(until: .now) else { return }
      source.cancel()
      ended(end)
    } catch {
      // The child does not exist any more, see above.
      source.cancel()
      ended(nil)
    }
  }
  // The descriptor stays open as long as the source uses it.
  source.setCancelHandler { withExtendedLifetime(followed) {} }
  source.activate()
}

private final class FollowedChild: Sendable {
  let process: ChildProcess

  init(_ process: consuming ChildProcess) { self.process = process }
}

extension Termination {
  /// "exited with status 3".
  var clause: String {
    switch self {
    case .exited(let status): "exited with status \(status)"
    case .killed(let signal): "was killed by signal \(signal)"
    }
  }
}
