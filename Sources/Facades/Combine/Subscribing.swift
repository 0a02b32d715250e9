/// A subscriber made of closures, so that no operator needs its own type.
struct Receiver<Input, Failure: Error>: Subscriber {
  let begin: (any Subscription) -> Void
  let end: (Subscribers.Completion<Failure>) -> Void
  let next: (Input) -> Subscribers.Demand

  func receive(subscription: any Subscription) { begin(subscription) }
  func receive(_ input: Input) -> Subscribers.Demand { next(input) }
  func receive(completion: Subscribers.Completion<Failure>) { end(completion) }
}

extension Publisher {
  /// Calls a closure for each value, and another for the end, until the result is cancelled or released.
  public func sink(
    receiveCompletion: @escaping (Subscribers.Completion<Failure>) -> Void,
    receiveValue: @escaping (Output) -> Void
  ) -> AnyCancellable {
    let upstream = Locked<(subscription: (any Subscription)?, isOver: Bool)>((nil, false))
    let isOver = { upstream.withLock { $0.isOver } }
    receive(
      subscriber: Receiver(
        begin: { subscription in
          upstream.withLock { $0.subscription = subscription }
          isOver() ? subscription.cancel() : subscription.request(.unlimited)
        },
        end: { if !upstream.exchange(\.self, (nil, true)).isOver { receiveCompletion($0) } },
        next: { value in
          // An operator above may be at work on another thread.
          if !isOver() { receiveValue(value) }
          return .none
        }))
    return AnyCancellable { upstream.exchange(\.self, (nil, true)).subscription?.cancel() }
  }
}

extension Publisher where Failure == Never {
  /// Calls a closure for each value, until the result is cancelled or released.
  public func sink(receiveValue: @escaping (Output) -> Void) -> AnyCancellable {
    sink(receiveCompletion: { _ in }, receiveValue: receiveValue)
  }

  /// Sets a property of an object to each value, and retains the object as long as it does.
  public func assign<Root>(
    to keyPath: ReferenceWritableKeyPath<Root, Output>, on object: Root
  ) -> AnyCancellable { sink { object[keyPath: keyPath] = $0 } }

  /// Sets a published property to each value, as in `assign(to: &$volume)`, until the property is released.
  public func assign(to published: inout Published<Output>.Publisher) {
    let assignment = sink { [weak published] in published?.value = $0 }
    published.assignments.withLock { $0.append(assignment) }
  }
}
