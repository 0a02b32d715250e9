public import FoundationEssentials
import Synchronization
import Wormhole
package import WormholePropertyLists

extension GroupDefaults {
  /// Returns the value of a key in the first domain of the search list that has one.
  ///
  /// - Parameter failing: Receives the error of reading a suite. If it does not throw, the search
  ///   continues with the next domain.
  func find(_ key: String, failing: (any Error) throws -> Void) rethrows -> PropertyListValue? {
    let (arguments, suites) = searched
    if let argument = arguments[key] { return argument }
    for suite in suites {
      do {
        if let value = try suite.get().contents()[key] { return value }
      } catch {
        try failing(error)
      }
    }
    return Self.registered.withLock { $0[key] }
  }

  package func find(_ key: String) -> PropertyListValue? { find(key, failing: reporter.report) }

  // MARK: The original's getters

  /// Returns the value of a key as the original does: `String`, a number, `Bool`, `Date`, `Data`,
  /// `[Any]`, `[String: Any]`; nil if there is none.
  ///
  /// In a program that imports Foundation a number casts to every number type that can hold it, as
  /// with the original, and a boolean also to 1 or 0. Without Foundation a number is an `Int`, a
  /// `UInt64` above `Int.max`, or a `Double`, and a boolean is only a `Bool`.
  ///
  /// The search list is the argument domain, the suite, the added suites, and the registered
  /// values.
  ///
  /// - Complexity: One system call per suite, unless a process has written to it since the last
  ///   read.
  public func object(forKey defaultName: String) -> Any? { find(defaultName)?.propertyListObject }

  /// Returns the same as `object(forKey:)`, for code that uses key-value coding.
  public func value(forKey key: String) -> Any? { object(forKey: key) }

  /// Returns the value as a string, a number as its text; nil for any other type.
  public func string(forKey defaultName: String) -> String? {
    find(defaultName).flatMap(Conversions.string)
  }

  /// Returns the value if it is an array.
  public func array(forKey defaultName: String) -> [Any]? {
    find(defaultName)?.arrayValue?.map(\.propertyListObject)
  }

  /// Returns the value if it is a dictionary.
  public func dictionary(forKey defaultName: String) -> [String: Any]? {
    find(defaultName)?.dictionaryValue?.mapValues(\.propertyListObject)
  }

  /// Returns the value if it is data.
  public func data(forKey defaultName: String) -> Data? { find(defaultName)?.dataValue }

  /// Returns the value if it is an array of strings only; numbers are not converted.
  public func stringArray(forKey defaultName: String) -> [String]? {
    guard let array = find(defaultName)?.arrayValue else { return nil }
    let strings = array.compactMap(\.stringValue)
    return strings.count == array.count ? strings : nil
  }

  /// Returns the value as an integer: a number without its fraction, the number at the beginning of
  /// a string, 1 or 0 for a boolean; 0 for anything else or if there is none.
  public func integer(forKey defaultName: String) -> Int {
    find(defaultName).map(Conversions.integer) ?? 0
  }

  /// Returns the value as a real: a number, or the number at the beginning of a string; 0 for
  /// anything else, including a boolean, or if there is none.
  public func float(forKey defaultName: String) -> Float { Float(double(forKey: defaultName)) }

  /// Returns the value as a real: a number, or the number at the beginning of a string; 0 for
  /// anything else, including a boolean, or if there is none.
  public func double(forKey defaultName: String) -> Double {
    find(defaultName).map(Conversions.double) ?? 0
  }

  /// Returns the value as a boolean: true for a number other than 0, and for a string that begins
  /// with Y, y, T, t or such a number; false for anything else or if there is none.
  public func bool(forKey defaultName: String) -> Bool {
    find(defaultName).map(Conversions.bool) ?? false
  }

  /// Returns the value as a URL: a file URL for a path, which may begin with "~"; any other URL as
  /// `set` stored it. Nil for anything else.
  public func url(forKey defaultName: String) -> URL? {
    find(defaultName).flatMap(Conversions.url)
  }

  /// Returns all keys in the search list, each with the value that `object(forKey:)` returns.
  public func dictionaryRepresentation() -> [String: Any] {
    var all = Self.registered.withLock(\.self)
    let (arguments, suites) = searched
    for suite in suites.reversed() {
      all.merge(reporting([:]) { try suite.get().contents() }) { $1 }
    }
    all.merge(arguments) { $1 }
    return all.mapValues(\.propertyListObject)
  }
}

extension GroupDefaults {
  /// Stores a value; nil removes it.
  ///
  /// All processes see the value when this method returns. A value that a property list cannot hold
  /// is reported to `onError` as `WormholeError.unsupportedValue`; the original would end the
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

  /// Stores a real, as a double with the same value.
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

  /// Stores a URL, a file URL as its path, which may begin with "~"; nil removes it.
  public func set(_ url: URL?, forKey defaultName: String) {
    store(url.map(Conversions.stored), defaultName)
  }

  /// Removes a value from the suite; a search may then find the key's value in another domain.
  public func removeObject(forKey defaultName: String) { store(nil, defaultName) }

  private func store(_ value: PropertyListValue?, _ key: String) {
    reporting(()) { try edit(of: key) { $0[key] = value } }
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

  /// Waits until every change, by this or another process, would survive a power loss.
  ///
  /// Readers do not need this call; a stored value survives the death of the process without it.
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
