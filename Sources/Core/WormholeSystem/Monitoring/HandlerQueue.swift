package import Dispatch

/// A queue on which handlers are called: one of the dispatch library, for a client's, or one of this
/// package's own, which wakes no thread as long as nothing happens. The dispatch library looks at its
/// threads once a second, from its first call on.
package protocol HandlerQueue: Sendable {
  /// Runs a closure after those before it.
  func enqueue(_ body: @escaping @Sendable () -> Void)
  /// Called before a wait that may be long.
  func prepare()
}

extension DispatchQueue: HandlerQueue {
  package func enqueue(_ body: @escaping @Sendable () -> Void) { async(execute: body) }
  package func prepare() { Blocking.beginDispatchSoon() }
}

extension BlockingQueue: HandlerQueue {
  package func enqueue(_ body: @escaping @Sendable () -> Void) { async(execute: body) }
  package func prepare() {}
}
