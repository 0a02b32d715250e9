import Foundation
import Synchronization

/// An operation whose work is not lost when its queue's operations are cancelled.
// Unchecked, because its superclass is: everything here is constant or atomic.
final class CertainOperation: Operation, @unchecked Sendable {
  private let work: @Sendable () -> Void
  private let hasRun = Atomic(false)

  /// - Parameter otherwise: called once if the operation was cancelled before it began.
  init(_ work: @escaping @Sendable () -> Void, otherwise: @escaping @Sendable () -> Void) {
    self.work = work
    super.init()
    completionBlock = { [weak self] in
      if self?.hasRun.load(ordering: .acquiring) == false { otherwise() }
    }
  }

  override func main() {
    hasRun.store(true, ordering: .releasing)
    work()
  }
}
