import AppGroup
import PropertyLists

/// Why something with defaults could not be done, where it is not the container's fault: what
/// failed, on which file, why, and what to do.
public struct GroupDefaultsError: Error, Sendable {
  /// The kind of failure, for programs.
  public enum Code: String, Sendable, Hashable {
    /// The value is of a type that property lists do not have, or too large for any reader.
    case unsupportedValue
    /// The suite's file is no property list, a hostile one, or no dictionary.
    case damaged
    /// No suite can have that name.
    case invalidSuiteName
    /// What is stored under the key is not what was asked for.
    case wrongType
    /// What was to be imported is no property list, a hostile one, or no dictionary.
    case badImport
    /// The suite cannot be written in the format that was asked for.
    case badExport
  }

  /// The kind of failure.
  public let code: Code
  /// What was being done, as a verb with its object: "set \"volume\"".
  public let action: String
  /// The suite's file; empty if none is concerned.
  public let path: String
  /// Why it failed.
  public let reason: String
  /// What the user can do about it, if there is anything.
  public let remedy: String?

  init(
    _ code: Code, _ action: String, path: String = "", reason: String, remedy: String? = nil
  ) {
    self.code = code
    self.action = action
    self.path = path
    self.reason = reason
    self.remedy = remedy
  }
}

extension GroupDefaultsError: CustomStringConvertible {
  /// One sentence: "cannot ACTION (PATH): REASON; REMEDY".
  public var description: String {
    let place = path.isEmpty ? "" : " (\(path))"
    let advice = remedy.map { "; \($0)" } ?? ""
    return "cannot \(action)\(place): \(reason)\(advice)"
  }
}

extension GroupDefaultsError {
  /// The suite's file cannot be read as defaults, so it is not written either.
  static func damaged(_ value: Value, _ reason: String) -> GroupDefaultsError {
    GroupDefaultsError(
      .damaged, "read the defaults", path: value.path, reason: reason,
      remedy: "nothing is written over it; put it aside with quarantine()")
  }

  static func unsupported(_ key: String, _ error: PropertyListError) -> GroupDefaultsError {
    var reason = error.reason
    if case .keyPath(let path) = error.position, !path.isEmpty { reason = "at \(path), \(reason)" }
    return GroupDefaultsError(
      .unsupportedValue, "set \"\(key)\"", reason: reason,
      remedy: "store what a property list can hold, or its data")
  }
}
