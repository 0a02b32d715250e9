import Synchronization

/// A holder that hands a value to another thread, which becomes its only owner.
final class Box<Value: Sendable>: Sendable {
  private let value: Mutex<Value?>

  init(_ value: Value) { self.value = Mutex(value) }

  func take() -> Value? { value.withLock { $0.take() } }
}
