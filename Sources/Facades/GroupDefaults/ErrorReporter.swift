import AppGroup
import Synchronization

/// The receiver of errors that a source-compatible method has no way to return.
final class ErrorReporter: Sendable {
  private let stored = Mutex<(@Sendable (any Error) -> Void)?>(nil)

  var handler: (@Sendable (any Error) -> Void)? {
    get { stored.withLock { $0 } }
    set {
      // The old handler is released outside the lock, because its captures may call back here.
      let last = stored.withLock { handler in
        defer { handler = newValue }
        return handler
      }
      withExtendedLifetime(last) {}
    }
  }

  func report(_ error: any Error) { (handler ?? Diagnostics.report)(error) }
}
