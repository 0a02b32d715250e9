/// An object's property. A change sends the object's `objectWillChange`, then the new value from
/// `$property`, and then sets it: the subscribers of both find the old value.
/// ```swift
/// final class Player { @Published var volume = 7 }
/// ```
@propertyWrapper
public struct Published<Value> {
  /// The publisher of the value: each subscriber gets the current one, and then each new one.
  /// ```swift
  /// func show(_ volume: Published<Int>.Publisher) -> AnyCancellable { volume.sink { print($0) } }
  /// ```
  public final class Publisher: Combine.Publisher {
    /// The type of the property.
    public typealias Output = Value
    public typealias Failure = Never

    private let subject: PassthroughSubject<Value, Never>
    private let property: Locked<Value>
    private let objectWillChange = Locked<ObservableObjectPublisher?>(nil)
    /// What `assign(to:)` has begun.
    let assignments = Locked<[AnyCancellable]>([])
    init(_ value: Value) { (subject, property) = (.init(latest: value), Locked(value)) }
    /// Attaches a subscriber, which receives its subscription first.
    public func receive(subscriber: some Subscriber<Value, Never>) {
      subject.receive(subscriber: subscriber)
    }

    var value: Value {
      get { property.withLock { $0 } }
      set {
        objectWillChange.withLock { $0 }?.send()
        subject.send(newValue)
        // Under the lock, so that the value sent last stays.
        _ = property.exchange(\.self, subject.latest ?? newValue)
      }
    }
    fileprivate func of(_ object: AnyObject) -> Publisher {
      let publisher = publisher(of: object)
      _ = objectWillChange.exchange(\.self, publisher)
      return self
    }
  }

  /// The publisher of the value; `assign(to:)` also takes it.
  public var projectedValue: Publisher
  /// Creates a property with a value.
  public init(wrappedValue: Value) { projectedValue = Publisher(wrappedValue) }
  /// Creates a property with a value.
  public init(initialValue: Value) { self.init(wrappedValue: initialValue) }
  /// Only a property of a class can be published.
  @available(*, unavailable, message: "@Published is for properties of classes")
  public var wrappedValue: Value {
    get { projectedValue.value }
    set { projectedValue.value = newValue }
  }

  /// The compiler calls it where code reads or sets the property of an object.
  public static subscript<Object: AnyObject>(
    _enclosingInstance object: Object, wrapped _: ReferenceWritableKeyPath<Object, Value>,
    storage path: ReferenceWritableKeyPath<Object, Self>
  ) -> Value {
    get { object[keyPath: path].projectedValue.value }
    set { object[keyPath: path].projectedValue.of(object).value = newValue }
  }
  /// The compiler calls it where code uses the publisher of an object's property.
  public static subscript<Object: AnyObject>(
    _enclosingInstance object: Object, projected _: ReferenceWritableKeyPath<Object, Publisher>,
    storage path: ReferenceWritableKeyPath<Object, Self>
  ) -> Publisher {
    get { object[keyPath: path].projectedValue.of(object) }
    set { object[keyPath: path].projectedValue = newValue }
  }
}
