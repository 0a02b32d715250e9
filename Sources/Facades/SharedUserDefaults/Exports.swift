// On Apple's systems these names are Foundation's, so code that uses them imports that, too.
@_exported public import Foundation
@_exported public import GroupDefaults

// Each by its name, because such a name comes before Foundation's, also in files that import both modules.
@_exported public import enum WormholeUserDefaults.NSKeyValueChange
@_exported public import struct WormholeUserDefaults.NSKeyValueChangeKey
@_exported public import class WormholeUserDefaults.NSKeyValueObservation
@_exported public import struct WormholeUserDefaults.NSKeyValueObservedChange
@_exported public import struct WormholeUserDefaults.NSKeyValueObservingOptions
@_exported public import class WormholeUserDefaults.NSObject
@_exported public import class WormholeUserDefaults.NSUbiquitousKeyValueStore
@_exported public import let WormholeUserDefaults.NSUbiquitousKeyValueStoreAccountChange
@_exported public import let WormholeUserDefaults.NSUbiquitousKeyValueStoreChangeReasonKey
@_exported public import let WormholeUserDefaults.NSUbiquitousKeyValueStoreChangedKeysKey
@_exported public import let WormholeUserDefaults.NSUbiquitousKeyValueStoreInitialSyncChange
@_exported public import let WormholeUserDefaults.NSUbiquitousKeyValueStoreQuotaViolationChange
@_exported public import let WormholeUserDefaults.NSUbiquitousKeyValueStoreServerChange
@_exported public import class WormholeUserDefaults.UserDefaults

// For a file that imports one of the two alone: `import class SharedUserDefaults.UserDefaults`.

/// `UserDefaults` of this module, which all processes of a group share, and not Foundation's.
///
/// ```swift
/// UserDefaults(suiteName: "group.com.example.cinema")?.set(7, forKey: "volume")
/// ```
public typealias UserDefaults = WormholeUserDefaults.UserDefaults

/// Foundation's class with the methods of key-value observing and coding, which it lacks on Linux.
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
/// ```
public typealias NSObject = WormholeUserDefaults.NSObject
