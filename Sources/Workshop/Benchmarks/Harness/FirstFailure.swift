import Synchronization

/// The first failure of several threads.
final class FirstFailure: Sendable {
  private let first = Mutex<(any Error)?>(nil)

  func note(_ error: any Error) {
    first.withLock { if $0 == nil { $0 = error } }
  }

  func check() throws {
    if let error = first.withLock({ $0 }) { throw error }
  }
}
