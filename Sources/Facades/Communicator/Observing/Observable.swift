public import Dispatch

/// A type whose values any part of an app can observe: received messages, and states that change.
///
/// ```swift
/// Reachability.observe(queue: .main) { reachability in print(reachability) }
/// ```
public protocol Observable: Sendable {
  /// The observers of values of this type.
  static var observations: Observations<Self> { get }
}

extension Observable {
  /// Calls a handler with every value of this type from now on, and activates the session if this
  /// is the first use of the communicator.
  ///
  /// Any number of observers may observe a type. Each receives every value, on a serial queue and
  /// in the order of arrival. Earlier values are not delivered again, with one exception:
  /// guaranteed messages, blobs, contexts, complication info and finished transfers that arrive
  /// before their type was ever observed wait, up to a limit, for the first observer.
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
    // In this order, because activation delivers the values that have arrived in the meantime.
    _ = Communicator.shared
    return observation
  }

  /// Ends an observation. Further calls have no effect.
  ///
  /// The handler is not called for later values, and for earlier values only if the call has begun.
  public static func unobserve(_ observation: Observation) {
    observations.remove(observation)
  }

  static func notifyObservers(_ value: Self) { observations.notify(value) }
}

// The original's README observes contexts by the name of their content.
extension Dictionary where Key == String, Value == Any {
  /// Same as `Context.observe`.
  @preconcurrency @discardableResult
  public static func observe(
    queue: DispatchQueue = .communicator, handler: @escaping @Sendable (Context) -> Void
  ) -> Observation { Context.observe(queue: queue, handler: handler) }

  /// Same as `Context.unobserve`.
  public static func unobserve(_ observation: Observation) { Context.unobserve(observation) }
}

extension DispatchQueue {
  /// The default queue of observers: one serial queue.
  public static let communicator = DispatchQueue(label: "Communicator", qos: .userInteractive)
}
