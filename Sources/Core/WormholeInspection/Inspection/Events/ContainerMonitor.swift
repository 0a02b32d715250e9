import Dispatch
package import Wormhole
package import WormholeSystem

/// Reports the events of a container, until it is cancelled or released.
///
/// It only reads: it creates nothing, takes no lease, and consumes nothing. In a directory the
/// kernel's events say where to look, and each name is compared with what was seen before; so after
/// a burst the last state is reported. On etcd one watch of all keys reports every change.
package final class ContainerMonitor: Sendable {
  private let sight: any ContainerSight
  private let queue = Blocking.queue()

  /// Begins to watch; changes after this call are reported.
  ///
  /// The first events, before this call returns, are those known from the beginning: see
  /// `ContainerEvent.Change.known`.
  ///
  /// - Parameters:
  ///   - isNew: Whether everything that already exists is reported as if it had just happened.
  ///   - hear: Called one at a time.
  /// - Throws: `AppGroupError` if the container cannot be read.
  package init(
    _ container: SharedContainer, isNew: Bool = false,
    hear: @escaping @Sendable (ContainerEvent) -> Void
  ) throws {
    let sight = container.inspected.sight(of: container, hear)
    self.sight = sight
    let queue = queue
    // Weak, because the watches of a sight retain what they call.
    let look: @Sendable () -> Void = { [weak sight] in
      queue.async { [weak sight] in sight?.look() }
    }
    try reporting("watch the container", path: container.location) {
      try ThreadShortage.ruleOut()
      try queue.sync { try sight.begin(isNew: isNew, look) }
    }
  }

  deinit { cancel() }

  package var detection: ChangeDetection { sight.detection }

  package func cancel() { sight.cancel() }
}

/// A monitor's sight of a container on one engine. It begins and looks on one queue.
package protocol ContainerSight: AnyObject, Sendable {
  var detection: ChangeDetection { get }

  /// Begins to watch, and reports what is known from the beginning.
  ///
  /// - Parameter signal: Called when something may have changed.
  func begin(isNew: Bool, _ signal: @escaping @Sendable () -> Void) throws

  /// Examines possible changes, and reports them.
  func look()

  func cancel()
}
