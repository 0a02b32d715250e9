public import Foundation
import Wormhole

/// Foundation's class with the methods of key-value observing and coding, for helpers that take any
/// object and for observers to override; Foundation on Linux lacks them.
///
/// ```swift
/// final class Player: NSObject {
///   override func observeValue(
///     forKeyPath keyPath: String?, of object: Any?, change: [NSKeyValueChangeKey: Any]?,
///     context: UnsafeMutableRawPointer?
///   ) {
///     print(keyPath ?? "", "is", change?[.newKey] ?? "unknown")
///   }
/// }
/// let player = Player()
/// UserDefaults.standard.addObserver(player, forKeyPath: "volume", options: .new, context: nil)
/// ```
open class NSObject: Foundation.NSObject {
  // MARK: Observing

  /// Calls an object's `observeValue` for each change of a key; classes that report their changes
  /// override this, as `UserDefaults` does.
  ///
  /// Linux has no Objective-C runtime that would notice changes of any other property: that is an
  /// event of `Diagnostics`, and the observer gets at most the initial call.
  ///
  /// - Parameters:
  ///   - observer: The object to call.
  ///   - keyPath: The key.
  ///   - options: The content of the reports, and whether the current value is reported first.
  ///   - context: Any pointer, which each call receives.
  open func addObserver(
    _ observer: NSObject, forKeyPath keyPath: String, options: NSKeyValueObservingOptions = [],
    context: UnsafeMutableRawPointer?
  ) {
    Diagnostics.report(
      KeyValueRefusal(
        "observe \"\(keyPath)\"", of: self,
        because: "only classes that report their changes can be observed on Linux, as UserDefaults",
        remedy: "call a closure where it changes"))
    guard options.contains(.initial) else { return }
    var change: [NSKeyValueChangeKey: Any] = [
      .kindKey: NSNumber(value: NSKeyValueChange.setting.rawValue)
    ]
    if options.contains(.new) { change[.newKey] = stored(keyPath) ?? NSNull() }
    observer.observeValue(forKeyPath: keyPath, of: self, change: change, context: context)
  }

  /// Ends the last observation of a key by an object; has no effect without one.
  ///
  /// - Parameters:
  ///   - observer: The object.
  ///   - keyPath: The key.
  open func removeObserver(_ observer: NSObject, forKeyPath keyPath: String) {}

  /// Ends the last observation of a key by an object with a pointer; has no effect without one.
  ///
  /// - Parameters:
  ///   - observer: The object.
  ///   - keyPath: The key.
  ///   - context: The pointer with which the observer was added.
  open func removeObserver(
    _ observer: NSObject, forKeyPath keyPath: String, context: UnsafeMutableRawPointer?
  ) {}

  // MARK: Coding

  /// Returns a stored property's value; for any other key what `value(forUndefinedKey:)` returns.
  ///
  /// - Parameter key: The name of the property.
  open func value(forKey key: String) -> Any? { stored(key) ?? value(forUndefinedKey: key) }

  /// Calls `setValue(_:forUndefinedKey:)`, because Linux has no Objective-C runtime that would find
  /// a property by name. `UserDefaults` stores the value.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The name of the property.
  open func setValue(_ value: Any?, forKey key: String) { setValue(value, forUndefinedKey: key) }

  /// Called for a key that names no stored property; for subclasses to override.
  ///
  /// - Returns: Nil, which is an event of `Diagnostics`; the original throws an exception.
  open func value(forUndefinedKey key: String) -> Any? {
    // A stored property without a value is none of these.
    guard !isStored(key) else { return nil }
    Diagnostics.report(
      KeyValueRefusal(
        "find the value of \"\(key)\"", of: self, because: "it has no stored property of that name",
        remedy: "override value(forUndefinedKey:)"))
    return nil
  }

  /// Called for a key that cannot be set by name; for subclasses to override. By default it is an
  /// event of `Diagnostics`; the original throws an exception.
  open func setValue(_ value: Any?, forUndefinedKey key: String) {
    Diagnostics.report(
      KeyValueRefusal(
        "set \"\(key)\"", of: self, because: "Swift on Linux finds no property to set by its name",
        remedy: "override setValue(_:forUndefinedKey:)"))
  }

  private func property(_ name: String) -> Mirror.Child? {
    var mirror: Mirror? = Mirror(reflecting: self)
    while let now = mirror {
      if let child = now.children.first(where: { $0.label == name }) { return child }
      mirror = now.superclassMirror
    }
    return nil
  }

  private func isStored(_ name: String) -> Bool { property(name) != nil }

  /// The value of a stored property; nil for none.
  private func stored(_ name: String) -> Any? {
    guard let value = property(name)?.value else { return nil }
    // An optional that is nil would be a value.
    let optional = Mirror(reflecting: value)
    return optional.displayStyle == .optional ? optional.children.first?.value : value
  }

  /// Called after a change of an observed key; does nothing unless it is overridden.
  ///
  /// - Parameters:
  ///   - keyPath: The key.
  ///   - object: The object that has the key.
  ///   - change: What the observation's options ask for.
  ///   - context: The observation's pointer.
  open func observeValue(
    forKeyPath keyPath: String?, of object: Any?, change: [NSKeyValueChangeKey: Any]?,
    context: UnsafeMutableRawPointer?
  ) {}
}

/// What key-value observing or coding could not do with an object.
struct KeyValueRefusal: Error, CustomStringConvertible {
  let description: String

  init(_ action: String, of object: NSObject, because reason: String, remedy: String) {
    description = "cannot \(action) of a \(type(of: object)): \(reason); \(remedy)"
  }
}

/// A key of the dictionary that an observer receives; Foundation on Linux lacks the name.
///
/// ```swift
/// let change: [NSKeyValueChangeKey: Any] = [.newKey: 7]
/// print(change[.newKey] as? Int ?? 0)
/// ```
public struct NSKeyValueChangeKey: RawRepresentable, Hashable, Sendable {
  /// Apple's text.
  public let rawValue: String

  /// The key of a text.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// The number of an `NSKeyValueChange`.
  public static let kindKey = NSKeyValueChangeKey(rawValue: "kind")
  /// The value after the change, `NSNull` for none; with the option `new`.
  public static let newKey = NSKeyValueChangeKey(rawValue: "new")
  /// The last value that the observer received, `NSNull` for none; with the option `old`.
  public static let oldKey = NSKeyValueChangeKey(rawValue: "old")
  /// The original's key for changed elements; never present.
  public static let indexesKey = NSKeyValueChangeKey(rawValue: "indexes")
  /// Present and true in the first of the two calls that the option `prior` asks for.
  public static let notificationIsPriorKey = NSKeyValueChangeKey(rawValue: "notificationIsPrior")
}
