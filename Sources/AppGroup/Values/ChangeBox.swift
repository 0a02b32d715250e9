import Synchronization

/// A change that is handed from thread to thread, a step at a time.
final class ChangeBox<Result: Sendable>: Sendable {
  private let change: Mutex<Change<Result>>

  init(_ make: @Sendable () -> sending Change<Result>) {
    change = Mutex(make())
  }

  var latch: WakeLatch? { change.withLock { $0.latch } }

  func step() throws -> Change<Result>.Step {
    try change.withLock { try $0.step() }
  }
}
