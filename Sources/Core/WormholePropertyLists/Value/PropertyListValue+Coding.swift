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
    self = try PropertyListValue(data: PropertyListCoding.encode(value, limits: limits))
  }

  /// Returns this property list as a value of a program's own type.
  ///
  /// - Throws: `DecodingError` for another shape.
  public func decode<Content: Decodable>(as type: Content.Type = Content.self) throws -> Content {
    try PropertyListCoding.decode(type, from: Data(binaryBytes()))
  }
}
