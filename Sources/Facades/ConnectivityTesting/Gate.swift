import Synchronization

/// A gate that a test opens: the calls and tasks behind it then continue, independent of any clock.
///
/// ```swift
/// let gate = Gate()
/// let watch = scene.counterpart(.watch, script: [.answer(["verified": true], after: gate)])
/// gate.open()                                 // now the reply comes
/// ```
public final class Gate: Sendable {
  private struct State {
    var isOpen: Bool
    var waiting: [@Sendable () -> Void] = []
  }

  private let state: Mutex<State>

  /// Makes a gate.
  public init(isOpen: Bool = false) { state = Mutex(State(isOpen: isOpen)) }

  /// Whether it is open.
  public var isOpen: Bool { state.withLock(\.isOpen) }

  /// Opens it: everything that waits continues, in order, before this returns or on its own queue.
  public func open() {
    let waiting = state.withLock { state in
      state.isOpen = true
      defer { state.waiting = [] }
      return state.waiting
    }
    for body in waiting { body() }
  }

  /// Closes it for all later calls and tasks.
  public func close() { state.withLock { $0.isOpen = false } }

  /// Calls a function at once, or when the gate is opened.
  func pass(_ body: @escaping @Sendable () -> Void) {
    let isOpen = state.withLock { state in
      if !state.isOpen { state.waiting.append(body) }
      return state.isOpen
    }
    if isOpen { body() }
  }

  /// Suspends the task until the gate is open, or the task is cancelled.
  func pass() async {
    let (opening, continuation) = AsyncStream.makeStream(of: Never.self)
    pass { continuation.finish() }
    for await _ in opening {}
  }
}
