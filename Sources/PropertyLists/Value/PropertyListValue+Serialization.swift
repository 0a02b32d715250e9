public import FoundationEssentials

extension PropertyListValue {
  /// Reads a binary or XML property list, whatever bytes another program has put there.
  ///
  /// - Parameters:
  ///   - bytes: The whole file.
  ///   - limits: What it may cost.
  /// - Throws: `PropertyListError` for anything that is not a whole property list of the allowed
  ///   types within the limits; OpenStep text, also where Foundation reads it, is `unknownFormat`.
  /// - Complexity: Linear in the size of the file to check it, then linear in the expanded value.
  public init(
    bytes: [UInt8], limits: PropertyListLimits = .standard
  ) throws(PropertyListError) {
    switch try PropertyListGuard.accept(bytes, limits: limits, into: PropertyListTreeBuilder()) {
    case .binary(let document): self = try BinaryPropertyListReader.value(of: document)
    case .xml(let builder): self = try builder.value()
    }
  }

  /// Reads a binary or XML property list, whatever bytes another program has put there.
  ///
  /// - Parameters:
  ///   - data: The whole file.
  ///   - limits: What it may cost.
  /// - Throws: `PropertyListError`, as `init(bytes:limits:)`.
  public init(
    data: Data, limits: PropertyListLimits = .standard
  ) throws(PropertyListError) {
    try self.init(bytes: [UInt8](data), limits: limits)
  }

  /// The value as a binary property list, version 00.
  ///
  /// Equal values whose strings have the same bytes become the same file: keys are sorted by their
  /// UTF-8 bytes. The string "$null" is what `PropertyListEncoder` writes for `nil`, so
  /// `PropertyListDecoder` reads it as `nil` from this file as from any other.
  ///
  /// - Throws: `tooDeep` beyond `PropertyListLimits.deepestNesting`, which no reader of ours would
  ///   accept, and `unrepresentable` for a date that is NaN or infinite.
  public func binaryBytes() throws(PropertyListError) -> [UInt8] {
    try BinaryPropertyListWriter.bytes(of: self)
  }

  /// The value as a binary property list, version 00.
  ///
  /// - Throws: `PropertyListError`, as `binaryBytes()`.
  public func binaryData() throws(PropertyListError) -> Data {
    Data(try binaryBytes())
  }

  /// The value as an XML property list in UTF-8, laid out as Apple's tools do.
  ///
  /// Dates lose their fractions of a second; days before 1582 are counted in the Gregorian calendar,
  /// as CFPropertyList and Python do (`PropertyListDecoder` on Linux takes them for Julian).
  ///
  /// - Throws: `unrepresentable` with the key path for control characters, U+FFFE and U+FFFF, and
  ///   for dates outside the years 0000 to 9999; `tooDeep` as `binaryBytes()`.
  public func xmlData() throws(PropertyListError) -> Data {
    Data(try XMLPropertyListWriter.bytes(of: self))
  }
}
