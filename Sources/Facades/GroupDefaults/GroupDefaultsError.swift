public import Wormhole
import WormholePropertyLists

/// A failure that concerns defaults and not their container.
///
/// ```swift
/// let defaults = try GroupDefaults(group: "group.com.example.cinema")
/// do {
///   try defaults.write(["a", "b"], forKey: "films")
/// } catch let error as GroupDefaultsError where error.code == .damaged {
///   print(error)
/// }
/// ```
public struct GroupDefaultsError: DescribedError {
  /// The kind of failure, for programs.
  ///
  /// ```swift
  /// do {
  ///   print(try GroupDefaults(in: container).read(Int.self, forKey: "volume") ?? 0)
  /// } catch let error as GroupDefaultsError where error.code == .wrongType {
  ///   print("the volume is no number: \(error)")
  /// }
  /// ```
  public struct Code: ErrorCode {
    /// Its name.
    public let rawValue: String
    /// Creates a code from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The value is of a type that property lists do not have, or too large for any reader.
    public static let unsupportedValue = Self("unsupportedValue")
    /// The suite's file is not a property list, is hostile, or is not a dictionary.
    public static let damaged = Self("damaged")
    /// The name is not allowed for a suite.
    public static let invalidSuiteName = Self("invalidSuiteName")
    /// The value stored under the key has another type than the requested one.
    public static let wrongType = Self("wrongType")
    /// The import is not a property list, is hostile, or is not a dictionary.
    public static let badImport = Self("badImport")
    /// The suite cannot be written in the requested format.
    public static let badExport = Self("badExport")
  }

  /// The kind of failure.
  public let code: Code
  /// The parts of the sentence.
  public let failure: FailureDescription

  init(
    _ code: Code, _ action: String, path: String = "", reason: String, remedy: String? = nil
  ) {
    self.code = code
    failure = FailureDescription(action, path: path, reason: reason, remedy: remedy)
  }
}

extension GroupDefaultsError {
  /// The suite's file cannot be read as defaults, so it is not written either.
  static func damaged(_ value: Value, _ reason: String) -> GroupDefaultsError {
    GroupDefaultsError(
      .damaged, "read the defaults", path: value.path, reason: reason,
      remedy: "nothing is written over it; " + AppGroupError.puttingAside(value.path))
  }

  static func unsupported(_ key: String, _ error: PropertyListError) -> GroupDefaultsError {
    var reason = error.reason
    if case .keyPath(let path) = error.position, !path.isEmpty { reason = "at \(path), \(reason)" }
    return GroupDefaultsError(
      .unsupportedValue, "set \"\(key)\"", reason: reason,
      remedy: "store what a property list can hold, or its data")
  }
}
