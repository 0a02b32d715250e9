public import FoundationEssentials

/// Coding of `Codable` values as property lists, through Foundation's coders and behind the guard.
///
/// ```swift
/// struct Ticket: Codable { var film: String }
/// let data = try PropertyListCoding.encode(Ticket(film: "Metropolis"))
/// let ticket = try PropertyListCoding.decode(Ticket.self, from: data)
/// ```
public enum PropertyListCoding {
  /// Encodes a value as a binary property list.
  ///
  /// A value that encodes itself as a single string, number, boolean or date becomes a file that
  /// holds just that scalar. `PropertyListEncoder` alone refuses to write such a file.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - limits: The limits of the reader; a value that the reader would refuse fails here.
  /// - Throws: `EncodingError`, with the error of the value's `encode(to:)` as its underlying
  ///   error; `PropertyListError` for a value that the guard would refuse;
  ///   `PropertyListError.Code.unrepresentable` for `nil`.
  public static func encode<T: Encodable>(
    _ value: T, limits: PropertyListLimits = .standard
  ) throws -> Data {
    if let list = value as? PropertyListValue { return Data(try list.binaryBytes(limits: limits)) }
    // `Decimal` encodes itself as a dictionary, which is what its decoder reads.
    if !(value is Decimal), let scalar = PropertyListValue.leaf(value) {
      return try data(of: scalar)
    }
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
  ///   - data: The whole file, from any source.
  ///   - limits: The most that the file may cost.
  /// - Throws: `PropertyListError` for a file that the guard refuses; `DecodingError` for a
  ///   property list whose shape does not match the type.
  public static func decode<T: Decodable>(
    _ type: T.Type, from data: Data, limits: PropertyListLimits = .standard
  ) throws -> T {
    guard type != PropertyListValue.self else {
      return try decode(type, from: [UInt8](data), limits: limits)
    }
    try PropertyListGuard.check(data, limits: limits)
    return try PropertyListDecoder().decode(type, from: data)
  }

  /// The same for bytes; a property list is read without a coder.
  package static func decode<T: Decodable>(
    _ type: T.Type = T.self, from bytes: [UInt8], limits: PropertyListLimits = .standard
  ) throws -> T {
    if type == PropertyListValue.self,
      let list = try PropertyListValue(bytes: bytes, limits: limits) as? T
    {
      return list
    }
    return try decode(type, from: Data(bytes), limits: limits)
  }

  /// Encodes a value as bytes, a property list without a coder.
  package static func bytes(of value: some Encodable) throws -> [UInt8] {
    guard let list = value as? PropertyListValue else { return Array(try encode(value)) }
    return try list.binaryBytes(limits: .standard)
  }

  private static func encoder() -> PropertyListEncoder {
    let encoder = PropertyListEncoder()
    encoder.outputFormat = .binary
    return encoder
  }

  /// A string that came from a `String` is never `nil`, even if it reads "$null".
  private static func data(of scalar: PropertyListValue) throws(PropertyListError) -> Data {
    Data(try BinaryPropertyListWriter.bytes(of: scalar, spellsNullWide: true))
  }

  /// Encodes a value within an array and takes it out again, for a value that encodes itself as a
  /// scalar.
  ///
  /// - Returns: `nil` if the value cannot be encoded there either, or is not a scalar.
  private static func fragment<T: Encodable>(
    _ value: T, _ limits: PropertyListLimits
  ) throws -> Data? {
    if let optional = value as? any OptionalObject, optional.wrapped == nil {
      throw PropertyListError(.unrepresentable, "it is nil, which property lists cannot hold")
    }
    // The caller throws the error of the first attempt, which describes the value itself.
    guard let wrapped = try? encoder().encode([value]),
      let array = try PropertyListValue(data: wrapped, limits: limits).arrayValue,
      let scalar = array.first
    else { return nil }
    return try data(of: scalar)
  }
}
