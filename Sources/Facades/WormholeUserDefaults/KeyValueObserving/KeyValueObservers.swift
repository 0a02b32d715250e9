import Foundation
import Synchronization
import Wormhole

/// The observers of an object's properties.
///
/// The object calls `reportChanges` when a property may have changed. Each observer whose property
/// differs from its last reported value is called, on that thread. Only observed values are read.
package final class KeyValueObservers<Object: AnyObject & Sendable>: Sendable {
  private struct State {
    var next = 0
    var observers: [Int: KeyValueObserver<Object>] = [:]
  }

  private let state = Mutex(State())
  private let properties: [ObservableProperty<Object>]

  package init(of properties: [ObservableProperty<Object>]) { self.properties = properties }

  /// Adds an observer. A property that is not observable is an event of `Diagnostics`, and its
  /// handler gets at most the initial call.
  ///
  /// The caller then calls `reportChanges`, for a change during this call.
  package func observe<Value>(
    _ object: Object, keyPath: KeyPath<Object, Value>, options: NSKeyValueObservingOptions,
    _ handler: @escaping @Sendable (Object, NSKeyValueObservedChange<Value>) -> Void
  ) -> NSKeyValueObservation {
    guard let property = properties.first(where: { $0.isNamed(by: keyPath) }) else {
      return Self.refuse(
        object, keyPath: keyPath, options: options,
        because: "changes of this property are not reported", handler)
    }
    return observe(object, property, options: options, handler)
  }

  /// Adds an observer of any property; see the form with a key path.
  ///
  /// - Parameter property: A property with values of the handler's type.
  package func observe<Value>(
    _ object: Object, _ property: ObservableProperty<Object>, options: NSKeyValueObservingOptions,
    _ handler: @escaping @Sendable (Object, NSKeyValueObservedChange<Value>) -> Void
  ) -> NSKeyValueObservation {
    let observer = KeyValueObserver(property, value: property.read(object)) { object, change in
      let (old, new, isForeign) = change
      for isPrior in options.contains(.prior) && !isForeign ? [true, false] : [false] {
        handler(
          object,
          NSKeyValueObservedChange(
            kind: .setting, newValue: options.contains(.new) && !isPrior ? new as? Value : nil,
            oldValue: options.contains(.old) ? old as? Value : nil, indexes: nil, isPrior: isPrior))
      }
    }
    let number = state.withLock { state in
      state.next += 1
      state.observers[state.next] = observer
      return state.next
    }
    let observation = NSKeyValueObservation { [weak self] in
      observer.end()
      self?.remove(number)
    }
    Self.reportInitially(object, options, handler) { property.read(object) as? Value }
    return observation
  }

  /// Reports changes to all observers, in the order in which they were added.
  ///
  /// - Parameters:
  ///   - isForeign: whether the object did not make the change, so that no report comes before it.
  ///   - isStill: asked after each reading: whether what was read may be reported.
  /// - Returns: whether it was true each time.
  @discardableResult
  package func reportChanges(
    of object: Object, isForeign: Bool = false, while isStill: () -> Bool = { true }
  ) -> Bool {
    let observers = state.withLock { $0.observers }
    return observers.sorted { $0.key < $1.key }.allSatisfy {
      $0.value.reportChange(of: object, isForeign: isForeign, while: isStill)
    }
  }

  /// Reports that changes cannot be observed, and passes at most the current value.
  package static func refuse<Value>(
    _ object: Object, keyPath: KeyPath<Object, Value>, options: NSKeyValueObservingOptions,
    because reason: String, _ handler: (Object, NSKeyValueObservedChange<Value>) -> Void
  ) -> NSKeyValueObservation {
    Diagnostics.report(UnobservableProperty(Object.self, Value.self, because: reason))
    reportInitially(object, options, handler) { object[keyPath: keyPath] }
    return NSKeyValueObservation(nil)
  }

  private static func reportInitially<Value>(
    _ object: Object, _ options: NSKeyValueObservingOptions,
    _ handler: (Object, NSKeyValueObservedChange<Value>) -> Void, value: () -> Value?
  ) {
    guard options.contains(.initial) else { return }
    handler(
      object,
      NSKeyValueObservedChange(
        kind: .setting, newValue: options.contains(.new) ? value() : nil, oldValue: nil,
        indexes: nil, isPrior: false))
  }

  private func remove(_ number: Int) {
    // Released outside the lock, because the captures of its handler may call back here.
    _ = state.withLock { $0.observers.removeValue(forKey: number) }
  }
}

/// The observer of one property.
private final class KeyValueObserver<Object: AnyObject & Sendable>: Sendable {
  private struct State {
    var last: any Sendable
    /// The number of reports so far, and the thread of the last one.
    var reports = 0
    var reporter: ObjectIdentifier?
    var isEnded = false
  }

  private let property: ObservableProperty<Object>
  private let state: Mutex<State>
  typealias Change = (old: any Sendable, new: any Sendable, isForeign: Bool)
  private let handler: @Sendable (Object, Change) -> Void

  init(
    _ property: ObservableProperty<Object>, value: any Sendable,
    _ handler: @escaping @Sendable (Object, Change) -> Void
  ) {
    self.property = property
    state = Mutex(State(last: value))
    self.handler = handler
  }

  /// Reports a value that differs from the last one, and looks again: if two threads change the
  /// property at once, the second may have read it before the first reported its value.
  func reportChange(of object: Object, isForeign: Bool, while isStill: () -> Bool) -> Bool {
    let thread = ObjectIdentifier(Thread.current)
    while true {
      let now = property.read(object)
      guard isStill() else { return false }
      guard let (before, number) = replace(with: now, in: thread) else { return true }
      handler(object, (before, now, isForeign))
      noteReported(now, number, in: thread)
      // A NaN differs even from itself.
      guard property.areEqual(now, now) else { return true }
    }
  }

  func end() { state.withLock { $0.isEnded = true } }

  /// - Returns: the previous value, and the number of the report; nil if it is equal.
  private func replace(
    with value: any Sendable, in thread: ObjectIdentifier
  ) -> (before: any Sendable, number: Int)? {
    state.withLock { state in
      guard !state.isEnded, !property.areEqual(state.last, value) else { return nil }
      defer { state.last = value }
      state.reports += 1
      state.reporter = thread
      return (state.last, state.reports)
    }
  }

  // The handler may have got a newer value meanwhile on another thread: it then has to get that
  // again. On this thread it was the handler that changed the property.
  private func noteReported(_ value: any Sendable, _ number: Int, in thread: ObjectIdentifier) {
    state.withLock { state in
      if state.reports != number, state.reporter != thread { state.last = value }
    }
  }
}

/// A property whose changes its object reports.
package struct ObservableProperty<Object: AnyObject>: Sendable {
  /// Nil for a property that has none.
  private let keyPath: (any PartialKeyPath<Object> & Sendable)?
  let read: @Sendable (Object) -> any Sendable
  let areEqual: @Sendable (any Sendable, any Sendable) -> Bool

  package init<Value: Equatable & Sendable>(_ keyPath: any KeyPath<Object, Value> & Sendable) {
    self.init(keyPath) { $0[keyPath: keyPath] }
  }

  package init<Value: Equatable & Sendable>(
    _ keyPath: (any PartialKeyPath<Object> & Sendable)? = nil,
    read: @escaping @Sendable (Object) -> Value
  ) {
    self.keyPath = keyPath
    self.read = read
    areEqual = { $0 as? Value == $1 as? Value }
  }

  func isNamed(by other: PartialKeyPath<Object>) -> Bool {
    let own: PartialKeyPath<Object>? = keyPath
    return own == other
  }
}

/// An observed property's changes are never reported.
struct UnobservableProperty: Error, CustomStringConvertible {
  let description: String

  // By type, because a key path's description on Linux has no name.
  init(_ object: Any.Type, _ value: Any.Type, because reason: String) {
    description = "cannot observe this \(value) of a \(object): \(reason)"
  }
}
