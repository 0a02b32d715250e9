public import FoundationEssentials

extension PropertyListValue {
  /// Reads a binary or XML property list from bytes of any origin.
  ///
  /// - Parameters:
  ///   - bytes: The whole file.
  ///   - limits: The most that the file may cost.
  /// - Throws: `PropertyListError` for anything except a whole property list of the allowed types
  ///   within the limits. OpenStep text is `PropertyListError.Code.unknownFormat`, although
  ///   Foundation reads some of it.
  /// - Complexity: Linear in the size of the file for the check, then linear in the expanded value.
  public init(bytes: [UInt8], limits: PropertyListLimits = .standard) throws(PropertyListError) {
    guard let value = try PropertyListGuard.read(bytes, limits: limits, wantsContent: true) else {
      preconditionFailure("a value that is wanted is built")
    }
    self = value
  }

  /// Reads a binary or XML property list from data of any origin.
  ///
  /// - Parameters:
  ///   - data: The whole file.
  ///   - limits: The most that the file may cost.
  /// - Throws: `PropertyListError`, as `init(bytes:limits:)`.
  public init(data: Data, limits: PropertyListLimits = .standard) throws(PropertyListError) {
    try self.init(bytes: [UInt8](data), limits: limits)
  }

  /// Returns the value as a binary property list, version 00.
  ///
  /// Equal values whose strings have the same bytes become equal files, because keys are sorted by
  /// their UTF-8 bytes. `PropertyListEncoder` writes "$null" for `nil`, so `PropertyListDecoder`
  /// reads the string "$null" as `nil` from this file as from any other.
  ///
  /// - Throws: `tooDeep` beyond `PropertyListLimits.deepestNesting`, because no reader of this
  ///   module would accept it; `unrepresentable` for a date that is NaN or infinite.
  public func binaryBytes() throws(PropertyListError) -> [UInt8] {
    try BinaryPropertyListWriter.bytes(of: self)
  }

  /// Returns the value as a binary property list that a reader with these limits accepts.
  ///
  /// - Parameter limits: The limits of the readers. If they admit the references of a keyed archive,
  ///   those are written as such.
  /// - Throws: `PropertyListError`, as `binaryBytes()`, and for a value beyond the limits.
  /// - Complexity: As `binaryBytes()`; a file near a limit is scanned once more.
  package func binaryBytes(limits: PropertyListLimits) throws(PropertyListError) -> [UInt8] {
    try BinaryPropertyListWriter.bytes(of: self, limits: limits)
  }

  /// The same for a dictionary that differs in one key from the one in a file. All but a new scalar
  /// for a key of a large file is written as any value.
  ///
  /// - Parameters:
  ///   - key: The key; nil if any may differ.
  ///   - old: The file, which was read with these limits; nil if there is none.
  ///   - limits: The limits of the readers.
  /// - Complexity: Linear in the size of the file, at a fraction of the cost of writing it.
  package func binaryBytes(
    changing key: String?, in old: [UInt8]?, limits: PropertyListLimits
  ) throws(PropertyListError) -> [UInt8] {
    if let key, let old, old.count >= Self.leastBytesToCopy,
      BinaryPropertyListDocument.hasMagic(old),
      case .dictionary(let dictionary) = self, let value = dictionary[key],
      let new = try BinaryPropertyListDocument(old).replacing(key, with: value, limits: limits)
    {
      return new
    }
    return try binaryBytes(limits: limits)
  }

  private static let leastBytesToCopy = 2_048

  /// Returns the value as a binary property list, version 00.
  ///
  /// - Throws: `PropertyListError`, as `binaryBytes()`.
  public func binaryData() throws(PropertyListError) -> Data {
    Data(try binaryBytes())
  }

  /// Returns the value as an XML property list in UTF-8, laid out as Apple's tools do.
  ///
  /// Dates lose their fractions of a second. Days before 1582 are counted in the Gregorian
  /// calendar, as in CFPropertyList and Python (`PropertyListDecoder` on Linux takes them for
  /// Julian).
  ///
  /// - Throws: `unrepresentable` with the key path for control characters, U+FFFE and U+FFFF, and
  ///   for dates outside the years 0000 to 9999; `tooDeep` as `binaryBytes()`.
  public func xmlData() throws(PropertyListError) -> Data {
    Data(try XMLPropertyListWriter.bytes(of: self))
  }
}
