public import Foundation
import Synchronization

/// An observation of a property; it ends when it is invalidated or released. Foundation on Linux
/// lacks the name.
///
/// ```swift
/// let observation = UserDefaults.standard.observe(\.volume) { defaults, _ in print(defaults.volume) }
/// observation.invalidate()                    // or release it
/// ```
public final class NSKeyValueObservation: Foundation.NSObject, Sendable {
  private let end: Mutex<(@Sendable () -> Void)?>

  init(_ end: (@Sendable () -> Void)?) { self.end = Mutex(end) }

  /// Ends it: no call of the handler begins afterwards. Does not wait for a call on another thread.
  public func invalidate() {
    // Called outside the lock, because it releases the handler, whose captures may call back here.
    let end = end.withLock { end in
      defer { end = nil }
      return end
    }
    end?()
  }

  deinit { invalidate() }
}

/// The content and the time of change reports; Foundation on Linux lacks the name.
///
/// ```swift
/// let observation = UserDefaults.standard.observe(\.volume, options: [.initial, .new]) { _, change in
///   print(change.newValue ?? 0)
/// }
/// ```
public struct NSKeyValueObservingOptions: OptionSet, Sendable {
  /// Apple's number.
  public let rawValue: UInt

  /// The options of a number.
  public init(rawValue: UInt) { self.rawValue = rawValue }

  /// The change has the new value.
  public static let new = NSKeyValueObservingOptions(rawValue: 1)
  /// The change has the previous value.
  public static let old = NSKeyValueObservingOptions(rawValue: 2)
  /// The handler is also called at once, before `observe` returns, on the thread of that call.
  public static let initial = NSKeyValueObservingOptions(rawValue: 4)
  /// The handler is called twice per change; in the first call `isPrior` is true, `newValue` nil.
  public static let prior = NSKeyValueObservingOptions(rawValue: 8)
}

/// How a value changed; Foundation on Linux lacks the name.
///
/// ```swift
/// let observation = UserDefaults.standard.observe(\.volume) { _, change in
///   if change.kind == .setting { print("it was set") }
/// }
/// ```
public enum NSKeyValueChange: UInt, Sendable {
  /// The property has a new value; the only kind that occurs here.
  case setting = 1
  /// Elements were inserted.
  case insertion = 2
  /// Elements were removed.
  case removal = 3
  /// Elements were replaced.
  case replacement = 4
}

/// A change of an observed property; Foundation on Linux lacks the name.
///
/// ```swift
/// let observation = UserDefaults.standard.observe(\.volume, options: [.old, .new]) { _, change in
///   print(change.oldValue ?? 0, "became", change.newValue ?? 0)
/// }
/// ```
public struct NSKeyValueObservedChange<Value> {
  /// The type of `kind`.
  public typealias Kind = NSKeyValueChange

  /// Always `setting`.
  public let kind: Kind
  /// The value that the handler gets; nil without the option `new`.
  public let newValue: Value?
  /// The last value reported to the handler; nil without the option `old`, and in the initial call.
  public let oldValue: Value?
  /// Always nil: no observable property is a collection.
  public let indexes: IndexSet?
  /// Whether this is the first of the two calls that the option `prior` asks for.
  public let isPrior: Bool
}

extension NSKeyValueObservedChange: Sendable where Value: Sendable {}
