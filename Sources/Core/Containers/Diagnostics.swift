import Synchronization
import SystemCalls

/// The place for errors that a source-compatible interface has no way to return, if the program has
/// set no handler: one line on standard error.
package enum Diagnostics {
  package static func report(_ error: any Error) {
    do throws(Errno) {
      try Program.write(Array("wormhole: \(error)\n".utf8), to: 2)
    } catch {
      // Standard error is closed, so the error cannot be reported.
      return
    }
  }
}

/// The receiver of errors that a source-compatible method has no way to return.
package final class ErrorReporter: Sendable {
  private let stored = Mutex<(@Sendable (any Error) -> Void)?>(nil)

  package init() {}

  /// By default a line on standard error.
  package var handler: (@Sendable (any Error) -> Void)? {
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

  package func report(_ error: any Error) { (handler ?? Diagnostics.report)(error) }
}
