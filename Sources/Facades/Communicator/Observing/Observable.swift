public import Dispatch
internal import Foundation
internal import Synchronization

/// A type whose values any part of an app can observe: received messages, and states that change.
///
/// ```swift
/// Reachability.observe(queue: .main) { reachability in print(reachability) }
/// ```
public protocol Observable: Sendable {
  /// The observers of values of this type.
  static var observations: Observations<Self> { get }
}

extension DispatchQueue {
  /// The default queue of observers: one serial queue.
  public static let communicator = DispatchQueue(label: "Communicator", qos: .userInteractive)
}

/// The observers of one type. Thread-safe.
///
/// ```swift
/// let observation = Reachability.observe { print($0) }
/// Reachability.unobserve(observation)         // each type has its observations
/// ```
public final class Observations<Value: Sendable>: Sendable {
  typealias Handler = @Sendable (Value) -> Void
  private typealias Observer = (observation: Observation, queue: DispatchQueue, handler: Handler)

  private struct State {
    /// In the order of registration, which is the order of calls.
    var observers: [Observer] = []
    /// Values from before all first observers had registered; nil afterwards.
    var waiting: [Value]? = []
    /// Whether the first observers are registering, and get the waiting values in a moment.
    var isHandingOver = false
  }

  private let state = Mutex(State())
  private let limit: Int
  private let schedule: (@Sendable (@escaping @Sendable () -> Void) -> Void)?

  /// - Parameters:
  ///   - limit: The maximum number of values that wait for the first observer. Beyond it the oldest
  ///     are dropped, because an app that never observes a type must not keep growing.
  ///   - schedule: Calls a closure once the first observers registered; nil for a moment later.
  init(
    keeping limit: Int = 0,
    handingOver schedule: (@Sendable (@escaping @Sendable () -> Void) -> Void)? = nil
  ) {
    self.limit = limit
    self.schedule = schedule
  }

  func add(on queue: DispatchQueue, _ handler: @escaping Handler) -> Observation {
    let observer = (Observation(), queue, handler)
    let isFirst = state.withLock { state in
      state.observers.append(observer)
      guard limit > 0, state.waiting != nil, !state.isHandingOver else { return false }
      state.isHandingOver = true
      return true
    }
    guard isFirst else { return observer.0 }
    if let schedule {
      schedule { self.handOver() }
    } else {
      DispatchQueue.main.async { self.handOver() }
      // The main thread of some programs serves no queue.
      DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(100)) { self.handOver() }
    }
    return observer.0
  }

  /// Gives the waiting values to all observers; a second call for the same values has no effect.
  private func handOver() {
    state.withLock { state in
      guard state.isHandingOver else { return }
      state.isHandingOver = false
      // All have already ended: the values keep waiting.
      guard !state.observers.isEmpty else { return }
      for value in state.waiting.take() ?? [] {
        for observer in state.observers { enqueue(value, for: observer) }
      }
    }
  }

  func remove(_ observation: Observation) {
    // The handler's captures are released outside the lock, because their end may run any code.
    let removed = state.withLock { state in
      state.observers.firstIndex { $0.observation == observation }
        .map { state.observers.remove(at: $0) }
    }
    _ = removed
  }

  func notify(_ value: Value) {
    state.withLock { state in
      if limit > 0, var waiting = state.waiting.take() {
        // Values that come during the handover follow it, and are not dropped.
        if waiting.count >= limit, !state.isHandingOver { waiting.removeFirst() }
        waiting.append(value)
        state.waiting = waiting
        return
      }
      for observer in state.observers { enqueue(value, for: observer) }
    }
  }

  /// Called under the lock, so that all observers get values in one order; no handler is called
  /// here.
  ///
  /// As in the original, values for an observer that is too slow wait on its queue without a limit:
  /// a limit would drop a guaranteed message, or make the session's queue wait, and with it all
  /// other observers.
  private func enqueue(_ value: Value, for observer: Observer) {
    observer.queue.async { [self] in
      if state.withLock({ $0.observers.contains { $0.observation == observer.observation } }) {
        observer.handler(value)
      }
    }
  }
}

/// A token for one observer, to end it with `unobserve`.
///
/// ```swift
/// let observation = GuaranteedMessage.observe { print($0) }
/// GuaranteedMessage.unobserve(observation)
/// ```
public struct Observation: Hashable, Sendable {
  private let uuid = UUID()
}
