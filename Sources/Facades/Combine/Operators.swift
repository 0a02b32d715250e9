extension Publisher {
  /// Publishes a closure's result for each value, or what a literal key path finds in it.
  public func map<T>(_ transform: @escaping (Output) -> T) -> AnyPublisher<T, Failure> {
    passing { transform }
  }
  /// Publishes a closure's result for each value, unless it is nil.
  public func compactMap<T>(_ transform: @escaping (Output) -> T?) -> AnyPublisher<T, Failure> {
    passing { transform }
  }
  /// Publishes the values for which a closure returns true.
  public func filter(_ isIncluded: @escaping (Output) -> Bool) -> AnyPublisher<Output, Failure> {
    passing { { isIncluded($0) ? $0 : nil } }
  }

  /// Publishes all values but the first ones.
  public func dropFirst(_ count: Int = 1) -> AnyPublisher<Output, Failure> {
    passing {
      var rest = count
      return { value in
        rest -= 1
        return rest < 0 ? value : nil
      }
    }
  }

  /// Publishes a value unless a closure says that it is the same as the one before.
  public func removeDuplicates(
    by isSame: @escaping (Output, Output) -> Bool
  ) -> AnyPublisher<Output, Failure> {
    passing {
      var last: Output?
      return { value in
        defer { last = value }
        return last.map { isSame($0, value) } == true ? nil : value
      }
    }
  }

  /// Publishes a value unless it is equal to the one before.
  public func removeDuplicates() -> AnyPublisher<Output, Failure> where Output: Equatable {
    removeDuplicates(by: ==)
  }

  /// Passes on a closure's result; for nil, asks for another. Each subscriber has its own closure.
  private func passing<T>(_ make: @escaping () -> (Output) -> T?) -> AnyPublisher<T, Failure> {
    AnyPublisher { subscriber in
      let step = make()
      receive(
        subscriber: Receiver(
          begin: subscriber.receive(subscription:), end: subscriber.receive(completion:),
          next: { step($0).map(subscriber.receive) ?? .max(1) }))
    }
  }

  /// Publishes all publishers' values as they come. Finishes when all have; fails when one does.
  public func merge(
    with others: any Publisher<Output, Failure>...
  ) -> AnyPublisher<Output, Failure> {
    AnyPublisher { subscriber in
      let conduit = Conduit(subscriber, keeping: .infinity, inputs: others.count + 1)
      conduit.connect(self, send: conduit.send)
      for other in others { conduit.connect(other, send: conduit.send) }
    }
  }

  /// Publishes the latest values of both when one publishes, once both have. It ends as `merge(with:)` does.
  public func combineLatest<T>(
    _ other: some Publisher<T, Failure>
  ) -> AnyPublisher<(Output, T), Failure> {
    AnyPublisher { subscriber in
      let conduit = Conduit<(Output, T), Failure>(subscriber, keeping: 1, inputs: 2)
      let latest = Locked<(Output?, T?)>((nil, nil))
      func set(_ first: Output?, _ second: T?) {
        // Under the lock the pairs get their order.
        _ = latest.withLock { pair -> ((Output?, T?), (Output, T)?) in
          let old = pair
          pair = (first ?? old.0, second ?? old.1)
          guard let first = pair.0, let second = pair.1 else { return (old, nil) }
          return (old, conduit.enqueue((first, second)))
        }
        conduit.deliver()
      }
      conduit.connect(self) { set($0, nil) }
      conduit.connect(other) { set(nil, $0) }
    }
  }

  /// Publishes a closure's result for the latest values; see `combineLatest(_:)`.
  public func combineLatest<P, T>(
    _ other: some Publisher<P, Failure>, _ transform: @escaping (Output, P) -> T
  ) -> AnyPublisher<T, Failure> { combineLatest(other).map(transform) }
}
