public import AppGroup
import Synchronization

/// An observer of a suite, until it is cancelled or forgotten.
public final class DefaultsObservation: Sendable {
  private let observation: Observation
  private let end: End

  /// Whether no more is to be told; the changes of one look are several calls.
  final class End: Sendable {
    private let isReached = Atomic(false)

    var isAwaited: Bool { !isReached.load(ordering: .acquiring) }

    func reach() { isReached.store(true, ordering: .releasing) }
  }

  init(_ observation: Observation, _ end: End) {
    self.observation = observation
    self.end = end
  }

  deinit { cancel() }

  /// How changes are noticed.
  public var detection: Observation.Detection { observation.detection }

  /// Ends the observation and frees its watch. May be called in the handler.
  ///
  /// A call that another thread is making then, or is just about to make, goes on to its end; no
  /// further one is made. To have none at all after it, cancel on the handler's own serial queue.
  public func cancel() {
    end.reach()
    observation.cancel()
  }
}
