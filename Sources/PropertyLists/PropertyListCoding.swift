public import FoundationEssentials

/// `Codable` values as property lists, through the coders of Foundation and behind the guard.
public enum PropertyListCoding {
  /// Encodes a value as a binary property list.
  ///
  /// A value that encodes itself as a single string, number, boolean or date becomes a file that
  /// holds just that, which `PropertyListEncoder` alone refuses to write.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - limits: What the reader will accept; a message that it would refuse fails here.
  /// - Throws: `EncodingError`, with what `encode(to:)` of the value has thrown beneath it;
  ///   `PropertyListError` for what the guard would refuse, and `unrepresentable` for `nil`.
  public static func encode<T: Encodable>(
    _ value: T, limits: PropertyListLimits = .standard
  ) throws -> Data {
    if let scalar = scalar(value) { return try data(of: scalar) }
    let data: Data
    do {
      data = try encoder().encode(value)
    } catch let error as EncodingError {
      guard let fragment = try fragment(value, limits) else { throw error }
      return fragment
    }
    try PropertyListGuard.check(data, limits: limits)
    return data
  }

  /// Decodes a value from a binary or XML property list that passes the guard.
  ///
  /// - Parameters:
  ///   - type: The type of the value.
  ///   - data: The whole file, whoever wrote it.
  ///   - limits: What it may cost.
  /// - Throws: `PropertyListError` for what the guard refuses, `DecodingError` for a property list
  ///   of another shape than the type has.
  public static func decode<T: Decodable>(
    _ type: T.Type, from data: Data, limits: PropertyListLimits = .standard
  ) throws -> T {
    try PropertyListGuard.check(data, limits: limits)
    return try PropertyListDecoder().decode(type, from: data)
  }

  private static func encoder() -> PropertyListEncoder {
    let encoder = PropertyListEncoder()
    encoder.outputFormat = .binary
    return encoder
  }

  /// The types whose values need no encoder.
  private static let scalarTypes: Set<ObjectIdentifier> = [
    ObjectIdentifier(String.self), ObjectIdentifier(Bool.self), ObjectIdentifier(Date.self),
    ObjectIdentifier(Double.self), ObjectIdentifier(Float.self), ObjectIdentifier(Int.self),
    ObjectIdentifier(Int8.self), ObjectIdentifier(Int16.self), ObjectIdentifier(Int32.self),
    ObjectIdentifier(Int64.self), ObjectIdentifier(UInt.self), ObjectIdentifier(UInt8.self),
    ObjectIdentifier(UInt16.self), ObjectIdentifier(UInt32.self), ObjectIdentifier(UInt64.self),
  ]

  private static func scalar<T>(_ value: T) -> PropertyListValue? {
    guard scalarTypes.contains(ObjectIdentifier(T.self)) else { return nil }
    return PropertyListValue.leaf(value)
  }

  /// A string that came from a `String` is never `nil`, whatever it says.
  private static func data(of scalar: PropertyListValue) throws(PropertyListError) -> Data {
    Data(try BinaryPropertyListWriter.bytes(of: scalar, spellsNullWide: true))
  }

  /// A value that encodes itself as a scalar: encoded within an array, and taken out of it again.
  ///
  /// - Returns: `nil` if it does not even encode there, or is no scalar.
  private static func fragment<T: Encodable>(
    _ value: T, _ limits: PropertyListLimits
  ) throws -> Data? {
    if let optional = value as? any OptionalObject, optional.wrapped == nil {
      throw PropertyListError(
        .unrepresentable, at: .keyPath(""), "it is nil, which property lists cannot hold")
    }
    let wrapped: Data
    do {
      wrapped = try encoder().encode([value])
    } catch {
      // The caller throws the error of the first attempt, which speaks of the value itself.
      return nil
    }
    guard let array = try PropertyListValue(data: wrapped, limits: limits).arrayValue,
      let scalar = array.first
    else { return nil }
    return try data(of: scalar)
  }
}
