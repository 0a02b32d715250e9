public import FoundationEssentials

/// A check of foreign bytes before a Foundation decoder sees them.
///
/// `PropertyListDecoder` recurses for every nested array and follows every shared reference, so a
/// small file can overflow its stack or fill the memory. A property list that passes this check
/// cannot do either: it holds only the types of `PropertyListValue`, its strings are valid, its
/// keys differ, it has no cycle, and its depth, its number of nodes and its expanded size are
/// within the limits.
///
/// ```swift
/// let data = try Data(contentsOf: file)
/// try PropertyListGuard.check(data)           // now Foundation's decoder may have it
/// ```
public enum PropertyListGuard {
  /// Checks a binary or XML property list; builds nothing from a binary one.
  ///
  /// - Parameters:
  ///   - bytes: The whole file.
  ///   - limits: The most that the property list may cost.
  /// - Throws: `PropertyListError` for everything that `PropertyListValue(bytes:limits:)` refuses.
  /// - Complexity: Linear in the size of the file, however large the value is.
  public static func check(
    _ bytes: [UInt8], limits: PropertyListLimits = .standard
  ) throws(PropertyListError) {
    _ = try read(bytes, limits: limits, wantsContent: false)
  }

  /// Checks a binary or XML property list; builds nothing from a binary one.
  ///
  /// - Parameters:
  ///   - data: The whole file.
  ///   - limits: The most that the property list may cost.
  /// - Throws: `PropertyListError`, as for bytes.
  public static func check(
    _ data: Data, limits: PropertyListLimits = .standard
  ) throws(PropertyListError) {
    try check([UInt8](data), limits: limits)
  }

  /// Returns the value of an accepted property list; nil for a binary one whose value is not wanted.
  static func read(
    _ bytes: [UInt8], limits: PropertyListLimits, wantsContent: Bool
  ) throws(PropertyListError) -> PropertyListValue? {
    try PropertyListBudget.checkSize(of: bytes, limits: limits)
    if BinaryPropertyListDocument.hasMagic(bytes) {
      return try BinaryPropertyListScan.scan(
        BinaryPropertyListDocument(bytes, admitsReferences: limits.admitsReferences),
        limits: limits, wantsContent: wantsContent)
    }
    guard try XMLPropertyList.isLikely(bytes) else {
      throw PropertyListError(
        .unknownFormat, atByte: 0,
        bytes.isEmpty
          ? "it is empty"
          : "it is neither a binary nor an XML property list; OpenStep text is not read")
    }
    return try XMLPropertyListScanner.scan(bytes, limits: limits)
  }
}
