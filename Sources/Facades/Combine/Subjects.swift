/// A publisher whose values a program sends.
/// ```swift
/// func announce(_ film: String, to subject: some Subject<String, Never>) { subject.send(film) }
/// ```
public protocol Subject<Output, Failure>: AnyObject, Publisher {
  /// Sends a value to all subscribers; has no effect after the end.
  func send(_ value: Output)
  /// Ends it for all subscribers, even for those that come later.
  func send(completion: Subscribers.Completion<Failure>)
}

extension Subject where Output == Void {
  /// Sends a value without content.
  public func send() { send(()) }
}

/// A subject without a current value. What is sent before a subscriber asks for values does not reach it.
/// ```swift
/// PassthroughSubject<String, Never>().send("Metropolis")
/// ```
public class PassthroughSubject<Output, Failure: Error>: Subject {
  private struct State {
    /// What a subscriber gets first, if the subject or property has a value.
    var latest: Output?
    var completion: Subscribers.Completion<Failure>?
    var conduits: [Conduit<Output, Failure>] = []
  }

  private let state: Locked<State>
  var latest: Output? { state.withLock { $0.latest } }
  /// Creates it without subscribers.
  public init() { state = Locked(State()) }
  init(latest: Output) { state = Locked(State(latest: latest)) }

  /// Sends a value to all subscribers; has no effect after the end.
  public func send(_ value: Output) {
    // Under the lock the values get one order for all subscribers.
    let (conduits, _) = state.withLock { state -> ([Conduit<Output, Failure>], [Output?]) in
      guard state.completion == nil else { return ([], []) }
      let old = state.conduits.map { $0.enqueue(value) } + [state.latest]
      if state.latest != nil { state.latest = value }
      return (state.conduits, old)
    }
    for conduit in conduits { conduit.deliver() }
  }

  /// Ends it for all subscribers, even for those that come later.
  public func send(completion: Subscribers.Completion<Failure>) {
    let conduits = state.withLock { state in
      state.completion = state.completion ?? completion
      return state.conduits
    }
    for conduit in conduits { conduit.finish(completion) }
  }

  /// Attaches a subscriber, which receives its subscription first.
  public func receive(subscriber: some Subscriber<Output, Failure>) {
    let conduit = Conduit(subscriber, keeping: latest == nil ? 0 : 1)
    let completion = state.withLock { state in
      state.conduits.append(conduit)
      if let latest = state.latest, state.completion == nil { conduit.enqueue(latest) }
      return state.completion
    }
    conduit.keep(
      AnyCancellable { [weak self, weak conduit] in
        self?.state.withLock { $0.conduits.removeAll { $0 === conduit } }
      })
    completion.map(conduit.finish) ?? conduit.deliver()
  }
}

/// A subject with a current value, which each subscriber gets first.
/// ```swift
/// CurrentValueSubject<Int, Never>(7).value += 1
/// ```
public class CurrentValueSubject<Output, Failure: Error>: PassthroughSubject<Output, Failure> {
  /// Creates it with a value.
  public init(_ value: Output) { super.init(latest: value) }

  /// The current value. Setting it sends it; subscribers find it already set.
  public var value: Output {
    // There is a value from the beginning, and nothing removes it.
    get { latest! }
    set { send(newValue) }
  }
}
