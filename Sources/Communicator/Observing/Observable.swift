public import Dispatch

/// What any part of an app can observe: messages that come, and states that change.
public protocol Observable: Sendable {
  /// Who observes values of this type.
  static var observations: Observations<Self> { get }
}

extension Observable {
  /// Calls a handler with every value of this type from now on, and activates the session if this is
  /// the first use of the communicator.
  ///
  /// Any number of observers may observe a type; each gets every value, on a serial queue in the order
  /// in which they came. What came before is not told again, with one exception: guaranteed messages,
  /// blobs, contexts, complication info and finished transfers that come while nobody has ever
  /// observed their type wait, up to a limit, for the first who does.
  ///
  /// - Parameters:
  ///   - queue: where the handler is called; by default a serial queue that all observers share.
  ///   - handler: gets the value. It is kept until `unobserve`.
  /// - Returns: what `unobserve` takes.
  @preconcurrency @discardableResult
  public static func observe(
    queue: DispatchQueue = .communicator, handler: @escaping @Sendable (Self) -> Void
  ) -> Observation {
    let observation = observations.add(on: queue, handler)
    // In this order: activation delivers what has come in the meantime.
    _ = Communicator.shared
    return observation
  }

  /// Ends an observation; once is enough.
  ///
  /// The handler is not called any more for what comes after this, and for what came before only if
  /// its call has begun.
  public static func unobserve(_ observation: Observation) {
    observations.remove(observation)
  }

  static func notifyObservers(_ value: Self) { observations.notify(value) }
}

// The original's README observes contexts by this name, which is that of what they hold.
extension Dictionary where Key == String, Value == Any {
  /// The same as `Context.observe`.
  @preconcurrency @discardableResult
  public static func observe(
    queue: DispatchQueue = .communicator, handler: @escaping @Sendable (Context) -> Void
  ) -> Observation { Context.observe(queue: queue, handler: handler) }

  /// The same as `Context.unobserve`.
  public static func unobserve(_ observation: Observation) { Context.unobserve(observation) }
}

extension DispatchQueue {
  /// Where observers are called by default: one serial queue.
  public static let communicator = DispatchQueue(label: "Communicator", qos: .userInteractive)
}
