/// A property whose changes its object reports.
package struct ObservableProperty<Object: AnyObject>: Sendable {
  private let keyPath: any PartialKeyPath<Object> & Sendable
  let read: @Sendable (Object) -> any Sendable
  let areEqual: @Sendable (any Sendable, any Sendable) -> Bool

  package init<Value: Equatable & Sendable>(_ keyPath: any KeyPath<Object, Value> & Sendable) {
    self.keyPath = keyPath
    read = { $0[keyPath: keyPath] }
    areEqual = { $0 as? Value == $1 as? Value }
  }

  func isNamed(by other: PartialKeyPath<Object>) -> Bool {
    let own: PartialKeyPath<Object> = keyPath
    return own == other
  }
}

/// A property was observed whose changes are never reported.
struct UnobservableProperty: Error, CustomStringConvertible {
  let description: String

  // By types, because the description of a key path on Linux has no name.
  init(_ object: Any.Type, _ value: Any.Type, because reason: String) {
    description = "cannot observe this \(value) of a \(object): \(reason)"
  }
}
