import Foundation

/// State behind a lock, under which no client code runs, not even a `deinit`. `@unchecked`, because
/// values, closures and subscribers need not be Sendable, as in the original: a value is handed
/// from one thread to the next, and a subscriber is called by one thread at a time.
final class Locked<State>: @unchecked Sendable {
  private let lock = NSLock()
  private var state: State

  init(_ state: State) { self.state = state }
  func withLock<Value>(_ body: (inout State) -> Value) -> Value { lock.withLock { body(&state) } }
  /// - Returns: the previous value.
  func exchange<T>(_ path: WritableKeyPath<State, T>, _ new: @autoclosure () -> T) -> T {
    withLock { state in
      defer { state[keyPath: path] = new() }
      return state[keyPath: path]
    }
  }
}

/// One subscriber's subscription, and the values for it, in order. One thread at a time delivers,
/// without a lock. It also delivers what others, or the subscriber, send meanwhile.
final class Conduit<Output, Failure: Error>: Subscription, Sendable {
  private struct State {
    /// Nil when it is over.
    var subscriber: (any Subscriber<Output, Failure>)?
    var openInputs = 0
    /// Their release ends them.
    var inputs: [AnyCancellable] = []
    var demand = 0.0
    var values: [Output] = []
    var completion: Subscribers.Completion<Failure>?
    var isDelivering = true

    mutating func end() -> State {
      defer { self = State(isDelivering: isDelivering) }
      return self
    }
  }

  private let state: Locked<State>
  private let capacity: Double
  private let scheduler: Locked<(any Scheduler)?>

  /// First gives the subscriber its subscription. At most `capacity` values wait until asked for;
  /// the oldest makes way for another. Without a scheduler the sending thread delivers.
  init(
    _ subscriber: any Subscriber<Output, Failure>, keeping capacity: Double, inputs: Int = 1,
    on scheduler: (any Scheduler)? = nil
  ) {
    (self.capacity, self.scheduler) = (capacity, Locked(scheduler))
    state = Locked(State(subscriber: subscriber, openInputs: inputs))
    subscriber.receive(subscription: self)
    state.withLock { $0.isDelivering = false }
  }

  func connect<T>(_ input: some Publisher<T, Failure>, send: @escaping (T) -> Void) {
    keep(input.sink(receiveCompletion: finish, receiveValue: send))
  }
  func keep(_ input: AnyCancellable) {
    state.withLock { if $0.subscriber != nil { $0.inputs.append(input) } }
  }

  func send(_ value: Output) {
    enqueue(value)
    deliver()
  }
  /// - Returns: what cannot wait, to be released without a lock.
  @discardableResult func enqueue(_ value: Output) -> Output? {
    state.withLock { state in
      guard state.subscriber != nil, state.completion == nil else { return nil }
      state.values.append(value)
      return Double(state.values.count) > state.demand + capacity ? state.values.removeFirst() : nil
    }
  }

  func finish(_ completion: Subscribers.Completion<Failure>) {
    state.withLock { state in
      state.openInputs -= 1
      if case .finished = completion, state.openInputs > 0 { return }
      state.completion = state.completion ?? completion
    }
    deliver()
  }

  func request(_ demand: Subscribers.Demand) {
    state.withLock { $0.demand += demand.count }
    deliver()
  }

  func cancel() { _ = state.withLock { $0.end() } }
  func deliver() { scheduler.withLock { $0 }.map { $0.schedule(after: .zero, drain) } ?? drain() }
  func drain() {
    if state.exchange(\.isDelivering, true) { return }
    while let step = state.withLock({ next(&$0) }) { step() }
  }

  private func next(_ state: inout State) -> (() -> Void)? {
    let values = Array(state.values.prefix(Int(min(state.demand, Double(state.values.count)))))
    if let subscriber = state.subscriber, !values.isEmpty {
      state.values.removeFirst(values.count)
      state.demand -= Double(values.count)
      return { [self] in
        for value in values where self.state.withLock({ $0.subscriber != nil }) {
          let demand = subscriber.receive(value)
          if demand != .none { request(demand) }
        }
      }
    }
    // The end of a subject does not wait until its value is asked for.
    if let completion = state.completion, state.values.isEmpty || capacity < .infinity {
      let old = state.end()
      return { old.subscriber?.receive(completion: completion) }
    }
    state.isDelivering = false
    return nil
  }
}
