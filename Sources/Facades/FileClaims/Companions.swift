import Synchronization

/// Whether there may be another access of the same purpose at the same time. Such accesses do not wait
/// for each other, so each one finds out when it publishes whether the item is still what it copied.
package final class Companions: Sendable {
  private let mayExist: Atomic<Bool>

  /// - Parameter mayExist: whether other coordinators may have the same purpose.
  package init(mayExist: Bool) {
    self.mayExist = Atomic(mayExist)
  }

  var isPossible: Bool { mayExist.load(ordering: .acquiring) }

  /// The same coordinator has begun another access.
  package func meet() { mayExist.store(true, ordering: .releasing) }
}
