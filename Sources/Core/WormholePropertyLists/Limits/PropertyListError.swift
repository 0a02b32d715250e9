public import FoundationEssentials

/// Why bytes are not an acceptable property list, or why a value cannot become one.
///
/// ```swift
/// do {
///   _ = try PropertyListValue(data: Data([0x62, 0x70]))
/// } catch {
///   print(error.code, error.position, error.reason)
/// }
/// ```
public struct PropertyListError: Error, Sendable, Hashable {
  /// The kind of refusal, for programs that act on it.
  ///
  /// ```swift
  /// do {
  ///   try PropertyListGuard.check(Data(contentsOf: file))
  /// } catch let error as PropertyListError where error.code == .tooManyBytes {
  ///   print("the file is too large")
  /// }
  /// ```
  public struct Code: ErrorCode {
    /// Its name.
    public let rawValue: String
    /// Creates a code from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The bytes are neither a binary nor an XML property list.
    public static let unknownFormat = Self("unknownFormat")
    /// The text is not in UTF-8, the only encoding that is read.
    public static let unsupportedEncoding = Self("unsupportedEncoding")
    /// The bytes begin like a property list and then break the rules of the format.
    public static let malformed = Self("malformed")
    /// The property list holds a type that is not allowed: set, UID, null, …
    public static let disallowedType = Self("disallowedType")
    /// A container of the file contains itself.
    public static let cycle = Self("cycle")
    /// One dictionary has the same key twice, or two keys that Swift considers equal.
    public static let duplicateKey = Self("duplicateKey")
    /// More bytes than `PropertyListLimits.maximumBytes`.
    public static let tooManyBytes = Self("tooManyBytes")
    /// Containers nested more deeply than `PropertyListLimits.maximumDepth`.
    public static let tooDeep = Self("tooDeep")
    /// More values than `PropertyListLimits.maximumNodes`, each reference counted.
    public static let tooManyNodes = Self("tooManyNodes")
    /// More memory than `PropertyListLimits.maximumExpandedBytes`, each reference counted.
    public static let tooManyExpandedBytes = Self("tooManyExpandedBytes")
    /// The value is valid, but the chosen format has no way to write it.
    public static let unrepresentable = Self("unrepresentable")
    /// A Swift value of a type that has no counterpart in property lists.
    public static let unsupportedType = Self("unsupportedType")
  }

  /// The place of the fault.
  ///
  /// ```swift
  /// do {
  ///   try PropertyListGuard.check(Data(contentsOf: file))
  /// } catch let error as PropertyListError {
  ///   if case .byte(let offset) = error.position { print("at byte", offset) }
  /// }
  /// ```
  public enum Position: Sendable, Hashable {
    /// The offset of a byte of the input.
    case byte(Int)
    /// The keys and indices that lead to the value, as in `reply.items[3]`; empty at the top.
    case keyPath(String)
  }

  /// The kind of refusal.
  public let code: Code
  /// The place of the fault.
  public let position: Position
  /// The fault, as a clause that can follow a colon.
  public let reason: String

  package init(_ code: Code, at position: Position = .keyPath(""), _ reason: String) {
    self.code = code
    self.position = position
    self.reason = reason
  }

  init(_ code: Code, atByte offset: Int, _ reason: String) {
    self.init(code, at: .byte(offset), reason)
  }
}

extension PropertyListError: CustomStringConvertible {
  /// One sentence: what failed, where, and why.
  public var description: String {
    switch position {
    case .byte(let offset): "cannot read the property list: \(reason) (at byte \(offset))"
    case .keyPath(""): "cannot make a property list of the value: \(reason)"
    case .keyPath(let path): "cannot make a property list of the value at \(path): \(reason)"
    }
  }
}

extension PropertyListError: LocalizedError {
  /// The same sentence as `description`.
  public var errorDescription: String? { description }
}

// The refusals that several places share.
extension PropertyListError {
  static func malformed(_ reason: String, at offset: Int) -> Self {
    Self(.malformed, atByte: offset, reason)
  }

  static func twice(_ key: String, at offset: Int) -> Self {
    Self(
      .duplicateKey, atByte: offset,
      "a dictionary has the key \"\(key.prefix(40))\" twice "
        + "(composed and decomposed é are one key)")
  }

  static func tooManyNodes(_ most: Int, at position: Position = .keyPath("")) -> Self {
    Self(.tooManyNodes, at: position, "it holds more than \(most) values")
  }

  static func tooDeep(
    _ most: Int = PropertyListLimits.deepestNesting, at position: Position = .keyPath("")
  ) -> Self {
    Self(.tooDeep, at: position, "its containers are nested more than \(most) deep")
  }
}

extension PropertyListError.Code {
  /// Whether the value is well formed, and larger than the limits allow.
  package var isOfSize: Bool {
    [.tooManyBytes, .tooDeep, .tooManyNodes, .tooManyExpandedBytes].contains(self)
  }
}
