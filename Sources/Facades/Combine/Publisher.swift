/// A source of values, which ends at most once: it finishes, or it fails.
/// ```swift
/// func titles(_ ids: some Publisher<Int, Never>) -> some Publisher<String, Never> { ids.map { "\($0)" } }
/// ```
public protocol Publisher<Output, Failure> {
  /// The type of the values.
  associatedtype Output
  /// The type of the error; `Never` if it does not fail.
  associatedtype Failure: Error
  /// Attaches a subscriber, which receives its subscription first.
  func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure
}

extension Publisher {
  /// Attaches a subscriber, which receives its subscription first.
  public func subscribe(_ subscriber: some Subscriber<Output, Failure>) {
    receive(subscriber: subscriber)
  }
  /// Hides the type of the publisher.
  public func eraseToAnyPublisher() -> AnyPublisher<Output, Failure> { AnyPublisher(self) }
}

/// A publisher of any kind; each operator of this module returns it.
/// ```swift
/// let volume: AnyPublisher<Int, Never> = CurrentValueSubject(7).eraseToAnyPublisher()
/// ```
public struct AnyPublisher<Output, Failure: Error>: Publisher {
  let attach: (any Subscriber<Output, Failure>) -> Void
  init(attach: @escaping (any Subscriber<Output, Failure>) -> Void) { self.attach = attach }
  /// Hides the type of a publisher.
  public init(_ base: some Publisher<Output, Failure>) { attach = { base.receive(subscriber: $0) } }
  /// Attaches a subscriber, which receives its subscription first.
  public func receive(subscriber: some Subscriber<Output, Failure>) { attach(subscriber) }
}

/// A receiver of values that says how many it wants. Its calls do not overlap.
/// ```swift
/// func begin(_ subscriber: some Subscriber<Int, Never>) { PassthroughSubject().subscribe(subscriber) }
/// ```
public protocol Subscriber<Input, Failure> {
  /// The type of the values.
  associatedtype Input
  /// The type of the error.
  associatedtype Failure: Error
  /// Receives the subscription, before anything else.
  func receive(subscription: any Subscription)
  /// Receives a value, and returns how many more are wanted.
  func receive(_ input: Input) -> Subscribers.Demand
  /// Receives the end, after which nothing follows.
  func receive(completion: Subscribers.Completion<Failure>)
}

/// What a subscriber asks for values.
/// ```swift
/// func begin(_ subscription: any Subscription) { subscription.request(.unlimited) }
/// ```
public protocol Subscription: Cancellable {
  /// Asks for more values.
  func request(_ demand: Subscribers.Demand)
}

/// The types that belong to subscribers.
/// ```swift
/// func receive(_ input: Int) -> Subscribers.Demand { .none }
/// ```
public enum Subscribers {
  /// A number of values, in addition to those already asked for.
  /// ```swift
  /// let two: Subscribers.Demand = .max(2)
  /// ```
  public struct Demand: Hashable, Sendable {
    let count: Double
    /// All values.
    public static let unlimited = Demand(count: .infinity)
    /// No more values.
    public static let none = Demand(count: 0)
    /// At most this many values.
    public static func max(_ value: Int) -> Demand { Demand(count: Double(value)) }
  }
  /// How a publisher ended: without an error, or with one.
  /// ```swift
  /// let end: Subscribers.Completion<Never> = .finished
  /// ```
  public enum Completion<Failure: Error>: Sendable {
    case finished
    case failure(Failure)
  }
}

extension Subscribers.Completion: Equatable where Failure: Equatable {}
