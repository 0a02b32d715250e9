public import Foundation

/// Foundation's class with the method that key-value observation calls, for observers to override;
/// Foundation on Linux lacks it.
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
  /// Called after a change of an observed key; does nothing unless it is overridden.
  ///
  /// - Parameters:
  ///   - keyPath: The key.
  ///   - object: The object that has the key.
  ///   - change: What the options of the observation ask for.
  ///   - context: The pointer of the observation.
  open func observeValue(
    forKeyPath keyPath: String?, of object: Any?, change: [NSKeyValueChangeKey: Any]?,
    context: UnsafeMutableRawPointer?
  ) {}
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
  /// The original's key of changed elements; never there.
  public static let indexesKey = NSKeyValueChangeKey(rawValue: "indexes")
  /// There, and true, in the first of the two calls that the option `prior` asks for.
  public static let notificationIsPriorKey = NSKeyValueChangeKey(rawValue: "notificationIsPrior")
}
