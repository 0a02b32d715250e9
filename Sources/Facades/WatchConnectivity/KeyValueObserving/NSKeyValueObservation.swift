public import Foundation
import Synchronization

/// An observation of a property; it ends when it is invalidated or released. Foundation on Linux lacks the
/// name.
///
/// ```swift
/// let observation = WCSession.default.observe(\.hasContentPending) { session, _ in
///   print(session.hasContentPending)
/// }
/// observation.invalidate()                    // or release it
/// ```
public final class NSKeyValueObservation: NSObject, Sendable {
  private let end: Mutex<(@Sendable () -> Void)?>

  init(_ end: (@Sendable () -> Void)?) { self.end = Mutex(end) }

  /// Ends it. No call of the handler begins afterwards; a call in another thread is not waited for.
  public func invalidate() {
    // Called outside the lock, because it releases the handler, whose captures may call back here.
    let end = end.withLock { end in
      defer { end = nil }
      return end
    }
    end?()
  }

  deinit { invalidate() }
}
