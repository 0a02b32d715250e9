// On Apple's systems Foundation declares these names, so code that uses them also imports that.
@_exported public import Foundation
@_exported public import GroupDefaults

// Each by name, because such a name precedes Foundation's, even in files that import both modules.
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

// For a file that imports only one of the two: `import class SharedUserDefaults.UserDefaults`.

/// This module's `UserDefaults`, which all processes of a group share, and not Foundation's.
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
