public import Foundation

/// Where and when closures run: `DispatchQueue`, `OperationQueue` and `RunLoop`, or a test's own.
/// ```swift
/// let text = CurrentValueSubject<String, Never>("").debounce(for: .seconds(1), scheduler: DispatchQueue.main)
/// ```
public protocol Scheduler {
  /// Runs a closure after some time.
  func schedule(after time: Duration, _ action: @escaping @Sendable () -> Void)
}

extension Publisher {
  /// Delivers values and the end on a queue or a run loop, in order.
  public func receive(on scheduler: some Scheduler) -> AnyPublisher<Output, Failure> {
    AnyPublisher { subscriber in
      let conduit = Conduit(subscriber, keeping: .infinity, on: scheduler)
      conduit.connect(self, send: conduit.send)
    }
  }

  /// Publishes a value if none follows for a time. The end comes at once, dropping a waiting value.
  public func debounce(
    for dueTime: Duration, scheduler: some Scheduler
  ) -> AnyPublisher<Output, Failure> {
    AnyPublisher { subscriber in
      let conduit = Conduit(subscriber, keeping: 0, on: scheduler)
      let latest = Locked<Locked<Output>?>(nil)
      conduit.connect(self) { value in
        let value = Locked(value)
        _ = latest.exchange(\.self, value)
        scheduler.schedule(after: dueTime) {
          guard latest.withLock({ $0 === value }) else { return }
          conduit.enqueue(value.withLock { $0 })
          conduit.drain()
        }
      }
    }
  }

  /// The same for seconds, as in `debounce(for: 0.3, scheduler: RunLoop.main)`.
  public func debounce(
    for seconds: Double, scheduler: some Scheduler
  ) -> AnyPublisher<Output, Failure> {
    // No duration is longer than 10^19 seconds.
    debounce(for: .seconds(seconds > 0 ? min(seconds, 1e10) : 0), scheduler: scheduler)
  }
}

extension DispatchQueue: Scheduler {
  /// Runs a closure on the queue.
  public func schedule(after time: Duration, _ action: @escaping @Sendable () -> Void) {
    asyncAfter(deadline: .now() + time / .seconds(1), execute: action)
  }
}

extension OperationQueue: Scheduler {
  /// Runs a closure on the queue.
  public func schedule(after time: Duration, _ action: @escaping @Sendable () -> Void) {
    if time <= .zero { return addOperation(action) }
    DispatchQueue.global().schedule(after: time) { self.addOperation(action) }
  }
}

extension RunLoop: Scheduler {
  /// Runs a closure in the loop's default mode; on the main queue for the main loop, which async programs never run.
  public func schedule(after time: Duration, _ action: @escaping @Sendable () -> Void) {
    if self === RunLoop.main { return DispatchQueue.main.schedule(after: time, action) }
    let timer = Timer(timeInterval: time / .seconds(1), repeats: false) { _ in action() }
    add(timer, forMode: .default)
  }
}
