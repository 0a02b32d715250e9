public import FoundationEssentials
import Synchronization
import Wormhole
import WormholePropertyLists

extension GroupDefaults {
  /// Stores a value; nil removes it.
  ///
  /// All processes see the value when this method returns. A value that a property list cannot hold
  /// is reported to `onError` as `GroupDefaultsError.unsupportedValue`; the original would end the
  /// program.
  ///
  /// - Complexity: Reads and writes the suite's file; writes nothing if the value is already there.
  public func set(_ value: Any?, forKey defaultName: String) {
    reporting(()) { try write(object: value, forKey: defaultName) }
  }

  /// Stores a value as `set(_:forKey:)` does, for code that uses key-value coding.
  public func setValue(_ value: Any?, forKey key: String) { set(value, forKey: key) }

  /// Stores an integer.
  public func set(_ value: Int, forKey defaultName: String) {
    store(PropertyListValue(value), defaultName)
  }

  /// Stores a real, as the double of the same value.
  public func set(_ value: Float, forKey defaultName: String) {
    store(.real(Double(value)), defaultName)
  }

  /// Stores a real.
  public func set(_ value: Double, forKey defaultName: String) {
    store(.real(value), defaultName)
  }

  /// Stores a boolean.
  public func set(_ value: Bool, forKey defaultName: String) {
    store(.boolean(value), defaultName)
  }

  /// Stores a URL, a file URL as its path; nil removes it.
  public func set(_ url: URL?, forKey defaultName: String) {
    store(url.map(Conversions.stored), defaultName)
  }

  /// Removes a value from the suite; a search may then find a value of the key in another domain.
  public func removeObject(forKey defaultName: String) { store(nil, defaultName) }

  private func store(_ value: PropertyListValue?, _ key: String) {
    reporting(()) { try edit { $0[key] = value } }
  }

  /// Sets fallback values for every search list of this process; they are never stored.
  ///
  /// Other processes do not see them, so an app and its extension must both register.
  public func register(defaults registrationDictionary: [String: Any]) {
    reporting(()) {
      let contents = try Self.contents(registrationDictionary)
      Self.registered.withLock { $0.merge(contents) { $1 } }
    }
  }

  /// Waits until every change, by this or another process, would survive a loss of power.
  ///
  /// Readers do not need this call, and a stored value survives the death of the process without
  /// it.
  ///
  /// - Returns: Whether it succeeded; `onError` receives the reason for a failure.
  /// - Complexity: Two fsyncs on ext4 and xfs, elsewhere three.
  @discardableResult
  public func synchronize() -> Bool {
    reporting(false) {
      let value = try suite().value
      try value.edit(ChangeTerms(.durable)) { _ in (.keep, ()) }
      return true
    }
  }

  /// Returns false, because there are no managed defaults here that could force a value.
  public func objectIsForced(forKey key: String) -> Bool { false }

  /// Returns false, because there are no managed defaults here that could force a value.
  public func objectIsForced(forKey key: String, inDomain domain: String) -> Bool { false }

  static func contents(_ objects: [String: Any]) throws -> Suite.Contents {
    var contents: Suite.Contents = [:]
    for (key, object) in objects { contents[key] = try Conversions.stored(object, forKey: key) }
    return contents
  }
}
