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
    try PropertyListBudget.checkSize(of: bytes, limits: limits)
    guard BinaryPropertyListDocument.hasMagic(bytes) else {
      throw PropertyListError(.unknownFormat, atByte: 0, "it is not a property list")
    }
    let document = try BinaryPropertyListDocument(bytes)
    try BinaryPropertyListScan.check(document, limits: limits)
    self = try BinaryPropertyListReader.value(of: document)
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
  /// UTF-8 bytes.
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
}
