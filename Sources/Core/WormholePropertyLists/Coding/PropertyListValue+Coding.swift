import FoundationEssentials

/// Values of the program's own types wherever a property list is used: entries of queues, contents
/// of presences, messages, defaults.
///
/// ```swift
/// struct Job: Codable { var film: String }
///
/// let list = try PropertyListValue(encoding: Job(film: "Metropolis"))
/// let job = try list.decode(as: Job.self)
/// ```
extension PropertyListValue {
  /// Creates a property list from a value of a program's own type.
  ///
  /// - Throws: As `PropertyListCoding.encode`.
  public init(
    encoding value: some Encodable, limits: PropertyListLimits = .standard
  ) throws {
    self =
      try value as? PropertyListValue
      ?? PropertyListValue(data: PropertyListCoding.encode(value, limits: limits))
  }

  /// Returns this property list as a value of a program's own type.
  ///
  /// - Throws: `DecodingError` for another shape.
  public func decode<Content: Decodable>(as type: Content.Type = Content.self) throws -> Content {
    try self as? Content ?? PropertyListCoding.decode(type, from: Data(binaryBytes()))
  }
}

/// A property list within a type of the program, for content of any shape. Alone it is written and read
/// as it is, without a coder.
extension PropertyListValue: Codable {
  /// Reads whatever a decoder has. A real without a fraction becomes an integer, because Foundation's
  /// decoders do not distinguish them.
  ///
  /// - Throws: `DecodingError` for what no property list holds, such as null.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    func attempt<Content: Decodable>(
      _ wrap: (Content) -> PropertyListValue
    ) throws -> PropertyListValue? {
      do {
        return wrap(try container.decode(Content.self))
      } catch DecodingError.typeMismatch, DecodingError.dataCorrupted {
        return nil
      }
    }
    let scalar =
      try attempt(Self.boolean) ?? attempt(Self.integer) ?? attempt(Self.unsigned)
      ?? attempt(Self.real) ?? attempt(Self.string) ?? attempt(Self.date) ?? attempt(Self.data)
    self =
      try scalar ?? attempt(Self.array)
      ?? .dictionary(container.decode([String: PropertyListValue].self))
  }

  /// Writes the value as what it is, so that any type with the same shape can read it.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .string(let string): try container.encode(string)
    case .integer(let integer): try container.encode(integer)
    case .unsigned(let integer): try container.encode(integer)
    case .real(let real): try container.encode(real)
    case .boolean(let boolean): try container.encode(boolean)
    case .date(let date): try container.encode(date)
    case .data(let data): try container.encode(data)
    case .array(let array): try container.encode(array)
    case .dictionary(let dictionary): try container.encode(dictionary)
    }
  }
}
