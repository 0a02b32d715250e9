public import FoundationEssentials
import PropertyLists
import Synchronization

extension GroupDefaults {
  /// The value of a key in the first domain of the search list that has one.
  ///
  /// - Parameter failing: gets what reading a suite threw; if it does not throw, the search goes on
  ///   with the next domain.
  func find(_ key: String, failing: (any Error) throws -> Void) rethrows -> PropertyListValue? {
    let (argument, added) = surroundings.withLock { ($0.arguments[key], $0.addedSuites) }
    if let argument { return argument }
    do {
      if let value = try suite().contents()[key] { return value }
    } catch {
      try failing(error)
    }
    for (_, suite) in added {
      do {
        if let value = try suite.contents()[key] { return value }
      } catch {
        try failing(error)
      }
    }
    return RegisteredDefaults[key]
  }

  func find(_ key: String) -> PropertyListValue? { find(key, failing: reporter.report) }

  // MARK: The original's getters

  /// The value of a key, as the original gives it: `String`, a number, `Bool`, `Date`, `Data`, `[Any]`,
  /// `[String: Any]`; nil if there is none.
  ///
  /// In a program that imports Foundation a number casts to every number type that holds it, as with the
  /// original; without Foundation it is an `Int`, a `UInt64` above `Int.max`, or a `Double`. A boolean
  /// is a `Bool` and no number.
  ///
  /// Looked through are the argument domain, the suite, the suites that were added, and what was
  /// registered.
  ///
  /// - Complexity: one system call for each suite, unless somebody wrote since the last read.
  public func object(forKey defaultName: String) -> Any? { find(defaultName)?.propertyListObject }

  /// The same as `object(forKey:)`, for code that uses key-value coding.
  public func value(forKey key: String) -> Any? { object(forKey: key) }

  /// The value as a string; a number as its text. Nil for any other type.
  public func string(forKey defaultName: String) -> String? {
    find(defaultName).flatMap(Conversions.string)
  }

  /// The value, if it is an array.
  public func array(forKey defaultName: String) -> [Any]? {
    find(defaultName)?.arrayValue?.map(\.propertyListObject)
  }

  /// The value, if it is a dictionary.
  public func dictionary(forKey defaultName: String) -> [String: Any]? {
    find(defaultName)?.dictionaryValue?.mapValues(\.propertyListObject)
  }

  /// The value, if it is data.
  public func data(forKey defaultName: String) -> Data? { find(defaultName)?.dataValue }

  /// The value, if it is an array of strings only; numbers are not converted.
  public func stringArray(forKey defaultName: String) -> [String]? {
    guard let array = find(defaultName)?.arrayValue else { return nil }
    let strings = array.compactMap(\.stringValue)
    return strings.count == array.count ? strings : nil
  }

  /// The value as an integer: a number without its fraction, the number that a string begins with, 1
  /// or 0 for a boolean; 0 for anything else, and where there is none.
  public func integer(forKey defaultName: String) -> Int {
    find(defaultName).map(Conversions.integer) ?? 0
  }

  /// The value as a real: a number, or the number that a string begins with; 0 for anything else, a
  /// boolean included, and where there is none.
  public func float(forKey defaultName: String) -> Float { Float(double(forKey: defaultName)) }

  /// The value as a real: a number, or the number that a string begins with; 0 for anything else, a
  /// boolean included, and where there is none.
  public func double(forKey defaultName: String) -> Double {
    find(defaultName).map(Conversions.double) ?? 0
  }

  /// The value as a boolean: a number that is not 0, a string that begins with Y, y, T, t or such a
  /// number; false for anything else, and where there is none.
  public func bool(forKey defaultName: String) -> Bool {
    find(defaultName).map(Conversions.bool) ?? false
  }

  /// The value as a URL: of the file for a path, which may begin with "~"; what `set` stored of any
  /// other URL. Nil for anything else.
  public func url(forKey defaultName: String) -> URL? {
    find(defaultName).flatMap(Conversions.url)
  }

  /// All that the search list has, each key with the value that `object(forKey:)` gives.
  public func dictionaryRepresentation() -> [String: Any] {
    var all = RegisteredDefaults.all
    let (arguments, added) = surroundings.withLock { ($0.arguments, $0.addedSuites) }
    for (_, suite) in added.reversed() {
      all.merge(reporting([:]) { try suite.contents() }) { $1 }
    }
    all.merge(reporting([:]) { try suite().contents() }) { $1 }
    all.merge(arguments) { $1 }
    return all.mapValues(\.propertyListObject)
  }
}
