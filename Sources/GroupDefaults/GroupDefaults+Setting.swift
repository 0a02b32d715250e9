import AppGroup
public import FoundationEssentials
import PropertyLists

extension GroupDefaults {
  /// Stores a value; nil removes it.
  ///
  /// It is there for all processes when this returns. What a property list cannot hold reaches
  /// `onError` as `GroupDefaultsError.unsupportedValue`, where the original ends the program.
  ///
  /// - Complexity: reads and writes the suite's file; nothing is written if the value is there.
  public func set(_ value: Any?, forKey defaultName: String) {
    reporting(()) { try write(object: value, forKey: defaultName) }
  }

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

  /// Stores a URL, a file's as its path; nil removes it.
  public func set(_ url: URL?, forKey defaultName: String) {
    store(url.map(Conversions.stored), defaultName)
  }

  /// Removes a value from the suite: a value of the key in another domain is then found again.
  public func removeObject(forKey defaultName: String) { store(nil, defaultName) }

  private func store(_ value: PropertyListValue?, _ key: String) {
    reporting(()) { try suite().edit { $0[key] = value } }
  }

  /// Gives values to fall back on, in every search list of this process; they are never stored.
  ///
  /// Other processes do not see them: an app that registers and an extension that reads must both
  /// register.
  public func register(defaults registrationDictionary: [String: Any]) {
    reporting(()) { RegisteredDefaults.register(try Self.contents(registrationDictionary)) }
  }

  /// Returns when all that was set, here or elsewhere, would survive a loss of power.
  ///
  /// Reading does not need it, and what is set survives the death of the process without it.
  ///
  /// - Returns: whether it is so; `onError` knows why not.
  /// - Complexity: three fsyncs.
  @discardableResult
  public func synchronize() -> Bool {
    reporting(false) {
      let value = try suite().value
      try value.edit(Suite.Terms(.durable).modification()) { _ in (.keep, ()) }
      return true
    }
  }

  /// False: there are no managed defaults here that could force a value.
  public func objectIsForced(forKey key: String) -> Bool { false }

  /// False: there are no managed defaults here that could force a value.
  public func objectIsForced(forKey key: String, inDomain domain: String) -> Bool { false }

  static func contents(_ objects: [String: Any]) throws -> Suite.Contents {
    var contents: Suite.Contents = [:]
    for (key, object) in objects { contents[key] = try Conversions.stored(object, forKey: key) }
    return contents
  }
}
