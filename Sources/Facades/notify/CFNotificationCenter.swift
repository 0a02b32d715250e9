// The functions and constants have the original's names.
// swift-format-ignore-file: AlwaysUseLowerCamelCase, AvoidRetroactiveConformances

import Synchronization
import Wormhole
@_exported public import WormholeDarwinTypes

/// A Core Foundation string, as sources spell it: `"lights-out" as CFString`.
///
/// ```swift
/// let name = CFNotificationName("lights-out" as CFString)
/// CFNotificationCenterPostNotification(CFNotificationCenterGetDarwinNotifyCenter(), name, nil, nil, true)
/// ```
public typealias CFString = String

/// Core Foundation options as a number.
///
/// ```swift
/// let options: CFOptionFlags = kCFNotificationDeliverImmediately | kCFNotificationPostToAllSessions
/// ```
public typealias CFOptionFlags = UInt

/// A C function that is called after a post: it receives the center, the observer and the name. The
/// object and the user information are nil.
///
/// ```swift
/// let callback: CFNotificationCallback = { _, observer, name, _, _ in
///   print(observer as Any, "hears", name?.rawValue ?? "nothing")
/// }
/// ```
public typealias CFNotificationCallback =
  @convention(c) (
    CFNotificationCenter?, UnsafeMutableRawPointer?, CFNotificationName?, UnsafeRawPointer?,
    CFDictionary?
  ) -> Void

/// How notifications are treated while a program is suspended; the Darwin center ignores it.
///
/// ```swift
/// let behavior = CFNotificationSuspensionBehavior.deliverImmediately
/// ```
public enum CFNotificationSuspensionBehavior: Int, Sendable {
  /// The center drops them.
  case drop = 1
  /// The center keeps the last one.
  case coalesce = 2
  /// The center keeps them.
  case hold = 3
  /// The center delivers them at once.
  case deliverImmediately = 4
}

/// A posting option; the Darwin center ignores it.
public let kCFNotificationDeliverImmediately: CFOptionFlags = 1
/// A posting option; the Darwin center ignores it.
public let kCFNotificationPostToAllSessions: CFOptionFlags = 2

extension CFNotificationName {
  /// The name for a text.
  ///
  /// - Parameter rawValue: Any text; it stays in memory until the process ends.
  public init(_ rawValue: CFString) { self.init(rawValue: Interned.pointer(of: rawValue)) }

  /// The name for a text.
  ///
  /// - Parameter rawValue: Any text; it stays in memory until the process ends.
  public init(rawValue: CFString) { self.init(rawValue) }

  /// The text.
  public var rawValue: CFString { Interned.text(of: Self.pointer(self)) }

  /// The raw value for C, which the text hides.
  private static func pointer(_ name: some RawRepresentable<OpaquePointer>) -> OpaquePointer {
    name.rawValue
  }
}

// Only literals, because the Darwin center drops user information.
extension CFDictionary: @retroactive ExpressibleByDictionaryLiteral {
  /// An empty dictionary.
  ///
  /// - Parameter elements: Dropped.
  public init(dictionaryLiteral elements: (AnyHashable, Any)...) {
    self.init(rawValue: Interned.pointer(of: ""))
  }
}

/// Returns the user's center, which all of the user's processes share.
public func CFNotificationCenterGetDarwinNotifyCenter() -> CFNotificationCenter! {
  CFNotificationCenter(rawValue: Interned.pointer(of: ""))
}

/// Calls a function after each post of a name, or once after several in a row.
///
/// The main queue calls it, so the main thread must serve that: `RunLoop.main.run()`,
/// `dispatchMain()`, or an `async` main function. A failure is an event of `Diagnostics`.
///
/// - Parameters:
///   - center: Ignored: there is one.
///   - observer: Any pointer, by which the function is removed later; never retained or read.
///   - callBack: The function. If it is added twice, it is called twice.
///   - name: The name; without one nothing happens, as in the original.
///   - object: Ignored, as in the original.
///   - suspensionBehavior: Ignored, as in the original.
public func CFNotificationCenterAddObserver(
  _ center: CFNotificationCenter!, _ observer: UnsafeRawPointer!,
  _ callBack: CFNotificationCallback!, _ name: CFString!, _ object: UnsafeRawPointer!,
  _ suspensionBehavior: CFNotificationSuspensionBehavior
) {
  guard let callBack, let name else { return }
  let address = UInt(bitPattern: observer)
  Diagnostics.reporting(otherwise: ()) {
    try Registrations.center().addObserver(at: address, name: name) { name in
      callBack(
        CFNotificationCenterGetDarwinNotifyCenter(), UnsafeMutableRawPointer(bitPattern: address),
        CFNotificationName(name), nil, nil)
    }
  }
}

/// Posts a name to the observers in all of the user's processes, including this one. A failure is
/// an event of `Diagnostics`. The Darwin center ignores everything but the name.
///
/// - Complexity: As `DarwinNotification.post()`.
public func CFNotificationCenterPostNotification(
  _ center: CFNotificationCenter!, _ name: CFNotificationName!, _ object: UnsafeRawPointer!,
  _ userInfo: CFDictionary!, _ deliverImmediately: Bool
) {
  guard let name else { return }
  Diagnostics.reporting(otherwise: ()) {
    try Registrations.center().postNotification(name: name.rawValue as CFString)
  }
}

/// Posts a name; see `CFNotificationCenterPostNotification`.
public func CFNotificationCenterPostNotificationWithOptions(
  _ center: CFNotificationCenter!, _ name: CFNotificationName!, _ object: UnsafeRawPointer!,
  _ userInfo: CFDictionary!, _ options: CFOptionFlags
) {
  CFNotificationCenterPostNotification(center, name, object, userInfo, true)
}

/// Removes an observer's functions. None begins afterwards, if this is called on the main thread.
///
/// - Parameters:
///   - center: Ignored: there is one.
///   - observer: The pointer with which the functions were added.
///   - name: The name; nil for all of the observer's names.
///   - object: Ignored, as in the original.
public func CFNotificationCenterRemoveObserver(
  _ center: CFNotificationCenter!, _ observer: UnsafeRawPointer!, _ name: CFNotificationName!,
  _ object: UnsafeRawPointer!
) {
  Diagnostics.reporting(otherwise: ()) {
    let name = name.map { $0.rawValue as CFString }
    try Registrations.center().removeObserver(at: UInt(bitPattern: observer), name: name)
  }
}

/// Removes an observer's functions for all names; see `CFNotificationCenterRemoveObserver`.
public func CFNotificationCenterRemoveEveryObserver(
  _ center: CFNotificationCenter!, _ observer: UnsafeRawPointer!
) {
  CFNotificationCenterRemoveObserver(center, observer, nil, nil)
}

/// Texts that C can carry as pointers. Equal texts, byte for byte, are one pointer, which stays valid
/// until the process ends.
private enum Interned {
  private final class Text: Sendable {
    let text: String

    init(_ text: String) { self.text = text }
  }

  private static let texts = Mutex<[EncodedName: Text]>([:])

  static func pointer(of text: String) -> OpaquePointer {
    texts.withLock { texts in
      let name = EncodedName(text)
      let interned = texts[name] ?? Text(text)
      texts[name] = interned
      return OpaquePointer(Unmanaged.passUnretained(interned).toOpaque())
    }
  }

  static func text(of pointer: OpaquePointer) -> String {
    Unmanaged<Text>.fromOpaque(UnsafeRawPointer(pointer)).takeUnretainedValue().text
  }
}
