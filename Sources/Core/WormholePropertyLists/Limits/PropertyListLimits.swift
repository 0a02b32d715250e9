/// The most that a foreign property list may cost before it is refused.
///
/// Every reference in a binary file counts: an object that two arrays share counts as two nodes.
/// Without this rule a file of 400 bytes could represent more values than fit in any memory.
///
/// ```swift
/// let small = PropertyListLimits(maximumBytes: 64 << 10, maximumDepth: 8)
/// let value = try PropertyListValue(data: Data(contentsOf: file), limits: small)
/// ```
public struct PropertyListLimits: Sendable, Hashable {
  /// The deepest nesting of containers that any part of this module reads or writes.
  ///
  /// Freeing, comparing and decoding a nested value all recurse. Foundation's decoder takes
  /// about 900 bytes of stack per level, so 512 levels fit the smallest stacks that Swift runs on.
  public static let deepestNesting = 512

  /// The largest input in bytes.
  public var maximumBytes: Int
  /// The deepest nesting of arrays and dictionaries; a container at the top is at depth 1.
  ///
  /// At most `deepestNesting`, even if it is set higher.
  public var maximumDepth: Int
  /// The largest number of values; dictionary keys are counted too.
  public var maximumNodes: Int
  /// The largest number of bytes of strings and data, plus `bytesPerNode` for each node.
  public var maximumExpandedBytes: Int

  /// Whether a binary file may hold the references of a keyed archive. Each is read as a dictionary
  /// `{"CF$UID": NUMBER}`, which is what XML has in its place.
  package var admitsReferences = false

  /// The cost of a node apart from the bytes of its content.
  public static let bytesPerNode = 32

  /// The default: 64 MiB of input, 512 levels, one million nodes, 256 MiB once expanded.
  ///
  /// In the worst case a file within these limits is read in half a second and 300 MB, and decoded
  /// by Foundation in a few seconds. An ordinary message comes nowhere near any of them.
  public static let standard = PropertyListLimits()

  /// Creates limits; an omitted parameter has its value in `standard`.
  ///
  /// - Parameters:
  ///   - maximumBytes: The largest input in bytes.
  ///   - maximumDepth: The deepest nesting of containers.
  ///   - maximumNodes: The largest number of values, each reference counted.
  ///   - maximumExpandedBytes: The largest number of bytes of content, each reference counted.
  public init(
    maximumBytes: Int = 64 << 20, maximumDepth: Int = deepestNesting,
    maximumNodes: Int = 1_000_000, maximumExpandedBytes: Int = 256 << 20
  ) {
    self.maximumBytes = maximumBytes
    self.maximumDepth = maximumDepth
    self.maximumNodes = maximumNodes
    self.maximumExpandedBytes = maximumExpandedBytes
  }
}
