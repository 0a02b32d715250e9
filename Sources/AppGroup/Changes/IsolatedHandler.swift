import Dispatch

/// A handler as programs give it, which runs where its isolation says.
///
/// A closure that is written in a method of a `@MainActor` class, or of an actor, is of that actor: the
/// compiler lets it use the actor's state without a word. So it runs there, and what belongs to no
/// actor runs at once, on the thread that calls.
// A handler and its arguments need not be Sendable: code written for Apple's frameworks is not. It is
// called on one serial queue and nowhere else, or on its actor; what it captures may be released on
// any thread, as with Apple's blocks.
package struct IsolatedHandler<Argument>: @unchecked Sendable {
  private let handler: @isolated(any) (Argument) -> Void
  /// What is of the main actor is there already.
  private let isCalledOnMain: Bool

  /// - Parameter isCalledOnMain: whether it is called on the main queue.
  package init(
    isCalledOnMain: Bool = false, _ handler: @escaping @isolated(any) (Argument) -> Void
  ) {
    self.handler = handler
    self.isCalledOnMain = isCalledOnMain
  }

  /// Runs the handler; of an actor's, this returns before. What is of the main actor is run in the order
  /// of the calls; what is of another actor, in no order.
  ///
  /// - Parameter argument: made for this call, and used by nobody else.
  package func callAsFunction(_ argument: Argument) {
    guard let actor = handler.isolation, !(isCalledOnMain && actor === MainActor.shared) else {
      // A call of such a function has to await its actor, and here is none to await: the standard library
      // takes the same step in `assumeIsolated`. The isolation is kept in what the function captures,
      // and not in how it is called.
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
  // Nobody else has it: see `callAsFunction`.
  private struct Given: @unchecked Sendable {
    let argument: Argument
  }
}
