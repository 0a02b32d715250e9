// The constants have the original's names.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

import Dispatch
@_exported public import Foundation
@_exported public import GroupDefaults
import Synchronization
public import Wormhole

/// Source-compatible with the Foundation class of this name: a few small values that all of a
/// user's machines share.
///
/// On Apple's systems iCloud carries them. Here the store's container does: on etcd all machines
/// share it; in a directory only the processes of one machine do, which is an event of
/// `Diagnostics`. `WORMHOLE_GROUPS=etcd://h1,h2,h3/groups` moves the store to etcd.
///
/// ```swift
/// let store = NSUbiquitousKeyValueStore.default
/// let token = NotificationCenter.default.addObserver(
///   forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification, object: store, queue: nil
/// ) { note in print(note.userInfo?[NSUbiquitousKeyValueStoreChangedKeysKey] ?? "") }
/// store.set(Int64(7), forKey: "volume")
/// ```
///
/// Better than the original: every read sees all earlier writes by all processes, a write changes
/// only its own key and loses no other write, and nothing has to be synchronized. The limits are
/// the original's: 1,024 keys, keys of 64 bytes, 1 MB in total.
///
/// `@unchecked`, because the compiler does not check a class that can be subclassed: its properties
/// are constant and Sendable, and a subclass's must be, too.
open class NSUbiquitousKeyValueStore: NSObject, @unchecked Sendable {
  /// The original's limits.
  private static let limits = SuiteLimits(keys: 1_024, keyBytes: 64, bytes: 1_000_000)
  /// The suite in the store's container.
  private static let suite = "NSUbiquitousKeyValueStore"
  /// The store's name for programs that share one, like the entitlement
  /// `com.apple.developer.ubiquity-kvstore-identifier`; by default the program's name.
  private static let variable = "WORMHOLE_UBIQUITY_KVSTORE"

  /// Posted when other processes have changed values, with the reason and the keys as user
  /// information; not for this object's changes. Posted on the store's queue.
  public static let didChangeExternallyNotification = NSNotification.Name(
    "NSUbiquitousKeyValueStoreDidChangeExternallyNotification")

  private static let shared = NSUbiquitousKeyValueStore()

  /// This program's store.
  open class var `default`: NSUbiquitousKeyValueStore { shared }

  /// Nil if the container could not be opened.
  private let defaults: GroupDefaults?
  private let observation = Mutex<ObservationToken?>(nil)

  /// Opens this program's store.
  public convenience override init() {
    let name =
      ProcessInfo.processInfo.environment[Self.variable] ?? ProcessInfo.processInfo.processName
    do {
      try self.init(in: SharedContainer(group: "ubiquity." + name))
    } catch {
      Diagnostics.report(error)
      self.init(nil)
    }
  }

  /// Opens the store in a container, for programs that share one.
  ///
  /// - Parameter container: The container; all stores in it are one.
  public convenience init(in container: SharedContainer) {
    if container.isLocal {
      Diagnostics.report(
        WormholeError(
          .notSupported, "share NSUbiquitousKeyValueStore with other machines",
          path: container.location, reason: "its container is a directory of this machine",
          remedy: "set WORMHOLE_GROUPS=etcd://HOSTS/PREFIX"))
    }
    self.init(GroupDefaults(suite: Self.suite, in: container))
  }

  private init(_ defaults: GroupDefaults?) {
    self.defaults = defaults
    super.init()
    let token = Diagnostics.reporting(otherwise: nil) {
      try defaults?.observeTogether(on: DispatchQueue(label: Self.suite)) { [weak self] changes in
        let keys = changes.filter { !$0.isOwn }.map(\.key)
        if !keys.isEmpty { self?.post(NSUbiquitousKeyValueStoreServerChange, keys) }
      }
    }
    observation.withLock { $0 = token }
  }

  private func post(_ reason: Int, _ keys: [String]) {
    NotificationCenter.default.post(
      name: Self.didChangeExternallyNotification, object: self,
      userInfo: [
        NSUbiquitousKeyValueStoreChangeReasonKey: reason,
        NSUbiquitousKeyValueStoreChangedKeysKey: keys,
      ])
  }

  // MARK: Reading

  /// Returns the value of a key; nil if there is none.
  open func object(forKey aKey: String) -> Any? {
    Diagnostics.reporting(otherwise: nil) { try defaults?.storedObject(forKey: aKey) }
  }

  /// Returns the same as `object(forKey:)`, for code that uses key-value coding.
  open override func value(forKey key: String) -> Any? { object(forKey: key) }

  /// Returns the string of a key; nil for any other value.
  open func string(forKey aKey: String) -> String? { object(forKey: aKey) as? String }

  /// Returns the array of a key; nil for any other value.
  open func array(forKey aKey: String) -> [Any]? { object(forKey: aKey) as? [Any] }

  /// Returns the dictionary of a key; nil for any other value.
  open func dictionary(forKey aKey: String) -> [String: Any]? {
    object(forKey: aKey) as? [String: Any]
  }

  /// Returns the data of a key; nil for any other value.
  open func data(forKey aKey: String) -> Data? { object(forKey: aKey) as? Data }

  /// Returns the integer of a key; 0 if there is no number.
  open func longLong(forKey aKey: String) -> Int64 {
    guard let number = number(aKey), !number.doubleValue.isNaN else { return 0 }
    // The nearest one, as in UserDefaults; `int64Value` is wrong beyond its range.
    if number.doubleValue >= -Double(Int64.min) { return .max }
    return number.doubleValue <= Double(Int64.min) ? .min : number.int64Value
  }

  /// Returns the real of a key; 0 if there is no number.
  open func double(forKey aKey: String) -> Double { number(aKey)?.doubleValue ?? 0 }

  /// Returns the boolean of a key; false if there is neither a boolean nor a number.
  open func bool(forKey aKey: String) -> Bool { number(aKey)?.boolValue ?? false }

  private func number(_ key: String) -> NSNumber? {
    let object = object(forKey: key)
    return (object as? Bool).map { NSNumber(value: $0) } ?? object as? NSNumber
  }

  /// All keys with their values.
  open var dictionaryRepresentation: [String: Any] {
    Diagnostics.reporting(otherwise: [:]) { try defaults?.storedObjects() ?? [:] }
  }

  // MARK: Writing

  /// Stores a property list value; nil removes the key.
  ///
  /// A change that would exceed a limit is not made, and posted with the reason
  /// `NSUbiquitousKeyValueStoreQuotaViolationChange`. Errors go to `Diagnostics`.
  open func set(_ anObject: Any?, forKey aKey: String) {
    guard let defaults else { return }
    guard let anObject else { return removeObject(forKey: aKey) }
    let isStored = Diagnostics.reporting(otherwise: true) {
      try defaults.write(object: anObject, forKey: aKey, within: Self.limits)
    }
    if !isStored { post(NSUbiquitousKeyValueStoreQuotaViolationChange, [aKey]) }
  }

  /// Stores a value as `set(_:forKey:)` does, for code that uses key-value coding.
  open override func setValue(_ value: Any?, forKey key: String) { set(value, forKey: key) }

  /// Removes a key.
  open func removeObject(forKey aKey: String) { defaults?.removeObject(forKey: aKey) }

  /// Stores a string; nil removes the key.
  open func set(_ aString: String?, forKey aKey: String) { set(aString as Any?, forKey: aKey) }

  /// Stores data; nil removes the key.
  open func set(_ aData: Data?, forKey aKey: String) { set(aData as Any?, forKey: aKey) }

  /// Stores an array; nil removes the key.
  open func set(_ anArray: [Any]?, forKey aKey: String) { set(anArray as Any?, forKey: aKey) }

  /// Stores a dictionary; nil removes the key.
  open func set(_ aDictionary: [String: Any]?, forKey aKey: String) {
    set(aDictionary as Any?, forKey: aKey)
  }

  /// Stores an integer.
  open func set(_ value: Int64, forKey aKey: String) { set(value as Any?, forKey: aKey) }

  /// Stores a real.
  open func set(_ value: Double, forKey aKey: String) { set(value as Any?, forKey: aKey) }

  /// Stores a boolean.
  open func set(_ value: Bool, forKey aKey: String) { set(value as Any?, forKey: aKey) }

  /// Waits until the values would survive a power loss. Nothing else has to be synchronized.
  ///
  /// - Returns: Whether the store can be used.
  @discardableResult
  open func synchronize() -> Bool { defaults?.synchronize() ?? false }
}

/// The key of the reason in the notification: an `Int`.
public let NSUbiquitousKeyValueStoreChangeReasonKey = "NSUbiquitousKeyValueStoreChangeReasonKey"
/// The key of the changed keys in the notification: `[String]`.
public let NSUbiquitousKeyValueStoreChangedKeysKey = "NSUbiquitousKeyValueStoreChangedKeysKey"
/// Other processes have changed values.
public let NSUbiquitousKeyValueStoreServerChange = 0
/// The original's reason for the first values from iCloud; never posted, because every read asks.
public let NSUbiquitousKeyValueStoreInitialSyncChange = 1
/// A change was not made, because it would have exceeded a limit.
public let NSUbiquitousKeyValueStoreQuotaViolationChange = 2
/// The original's reason for another account; never posted.
public let NSUbiquitousKeyValueStoreAccountChange = 3
