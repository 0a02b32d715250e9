public import Dispatch

extension Observable {
  /// Calls a handler with every value of this type from now on, and activates the session if this
  /// is the first use of the communicator.
  ///
  /// Any number of observers may observe a type. Each receives every value, on a serial queue and
  /// in the order of arrival. Earlier values are not delivered again, with one exception:
  /// guaranteed messages, blobs, contexts, complication info and finished transfers that arrive
  /// before their type was ever observed wait, up to a limit, for the first observers: all those
  /// that an app registers in one go. These get them on the next turn of the main queue, or after a
  /// tenth of a second in a program that does not serve it.
  ///
  /// - Parameters:
  ///   - queue: The queue on which the handler is called; by default a serial queue that all
  ///     observers share.
  ///   - handler: Receives the value. It is kept until `unobserve`.
  /// - Returns: A token for `unobserve`.
  @preconcurrency @discardableResult
  public static func observe(
    queue: DispatchQueue = .communicator, handler: @escaping @Sendable (Self) -> Void
  ) -> Observation {
    let observation = observations.add(on: queue, handler)
    // In this order, because activation delivers the values that have arrived meanwhile.
    _ = Communicator.shared
    return observation
  }

  /// Ends an observation. Further calls have no effect.
  ///
  /// The handler is not called for later values, and for earlier ones only if the call has begun.
  public static func unobserve(_ observation: Observation) {
    observations.remove(observation)
  }

  static func notifyObservers(_ value: Self) { observations.notify(value) }
}

// The original's README observes contexts by the type name of their content.
extension Dictionary where Key == String, Value == Any {
  /// Same as `Context.observe`.
  @preconcurrency @discardableResult
  public static func observe(
    queue: DispatchQueue = .communicator, handler: @escaping @Sendable (Context) -> Void
  ) -> Observation { Context.observe(queue: queue, handler: handler) }

  /// Same as `Context.unobserve`.
  public static func unobserve(_ observation: Observation) { Context.unobserve(observation) }
}
