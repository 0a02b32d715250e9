internal import Dispatch
internal import Foundation
internal import Synchronization

/// The observers of one type. Thread-safe.
///
/// ```swift
/// let observation = Reachability.observe { print($0) }
/// Reachability.unobserve(observation)         // each type has its observations
/// ```
public final class Observations<Value: Sendable>: Sendable {
  typealias Handler = @Sendable (Value) -> Void

  private struct State {
    /// In the order of registration, which is the order of calls.
    var observers: [(observation: Observation, handler: Handler)] = []
    /// Values from before the first observer; nil once there was an observer.
    var waiting: [Value]? = []
  }

  private let state = Mutex(State())
  private let limit: Int

  /// - Parameter limit: The largest number of values that wait for the first observer. Beyond it
  ///   the oldest are dropped, because an app that never observes a type must not grow with what it
  ///   receives.
  init(keeping limit: Int = 0) { self.limit = limit }

  func add(on queue: DispatchQueue, _ handler: @escaping Handler) -> Observation {
    let observation = Observation(queue: queue)
    state.withLock { state in
      state.observers.append((observation, handler))
      let waiting = state.waiting ?? []
      state.waiting = nil
      for value in waiting { enqueue(value, for: observation, handler) }
    }
    return observation
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
      if var waiting = state.waiting.take() {
        if limit > 0 {
          if waiting.count == limit { waiting.removeFirst() }
          waiting.append(value)
        }
        state.waiting = waiting
      }
      for observer in state.observers {
        enqueue(value, for: observer.observation, observer.handler)
      }
    }
  }

  /// Called under the lock, so that all observers get values in one order; no handler is called
  /// here.
  private func enqueue(_ value: Value, for observation: Observation, _ handler: @escaping Handler) {
    observation.queue.async { [self] in
      guard isObserving(observation) else { return }
      handler(value)
    }
  }

  private func isObserving(_ observation: Observation) -> Bool {
    state.withLock { $0.observers.contains { $0.observation == observation } }
  }
}

/// A token for one observer, to end it with `unobserve`.
///
/// ```swift
/// let observation = GuaranteedMessage.observe { print($0) }
/// GuaranteedMessage.unobserve(observation)
/// ```
public struct Observation: Hashable, Sendable {
  let uuid = UUID()
  let queue: DispatchQueue

  public static func == (left: Self, right: Self) -> Bool { left.uuid == right.uuid }

  public func hash(into hasher: inout Hasher) { hasher.combine(uuid) }
}
