/// A property whose changes its object tells.
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

/// A property was observed that tells no changes.
struct UnobservableProperty: Error, CustomStringConvertible {
  let description: String

  init(_ keyPath: AnyKeyPath, because reason: String) {
    description = "cannot observe \(keyPath): \(reason)"
  }
}
