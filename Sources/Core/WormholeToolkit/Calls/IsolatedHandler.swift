/// A handler from a program, which runs in its isolation.
///
/// A closure that is written in a method of a `@MainActor` class, or of an actor, belongs to that
/// actor: the compiler lets it use the actor's state without a diagnostic. So it runs there. A
/// handler without an actor runs at once, on the calling thread.
// A handler and its arguments need not be Sendable, because code written for Apple's frameworks is
// not. It is called on one serial queue only, or on its actor; its captures may be released on any
// thread, as with Apple's blocks.
package struct IsolatedHandler<Argument>: @unchecked Sendable {
  private let handler: @isolated(any) (Argument) -> Void
  /// Whether calls come on the main actor already.
  private let isCalledOnMain: Bool

  /// - Parameter isCalledOnMain: Whether it is called on the main queue.
  package init(
    isCalledOnMain: Bool = false, _ handler: @escaping @isolated(any) (Argument) -> Void
  ) {
    self.handler = handler
    self.isCalledOnMain = isCalledOnMain
  }

  /// Runs the handler; does not wait for an actor's handler. Handlers of the main actor run in the
  /// order of the calls, those of other actors in no order.
  ///
  /// - Parameter argument: Created for this call, and not used elsewhere.
  package func callAsFunction(_ argument: Argument) {
    guard let actor = handler.isolation, !(isCalledOnMain && actor === MainActor.shared) else {
      // A call of such a function would have to await its actor, but here there is none: the
      // standard library takes the same step in `assumeIsolated`. The isolation is in the
      // function's captures, and not in the way it is called.
      return unsafeBitCast(handler, to: ((Argument) -> Void).self)(argument)
    }
    let given = Given(argument: argument)
    if actor === MainActor.shared {
      // Begins on the main actor, which keeps the order.
      Task { @MainActor in await handler(given.argument) }
    } else {
      Task { await handler(given.argument) }
    }
  }

  /// The argument on its way to the handler's actor.
  private struct Given: @unchecked Sendable {
    let argument: Argument
  }
}
