/// How much a property list from elsewhere may cost before it is refused.
///
/// Every reference of a binary file counts anew: an object that two arrays share is two nodes. A
/// file of 400 bytes can thus stand for more values than any memory holds, and is refused for it.
public struct PropertyListLimits: Sendable, Hashable {
  /// The deepest nesting of containers that any part of this module reads or writes.
  ///
  /// Freeing, comparing and decoding a nested value all recurse, the decoder of Foundation with
  /// about 900 bytes of stack a level; 512 levels fit the smallest stacks that Swift runs on.
  public static let deepestNesting = 512

  /// The largest input in bytes.
  public var maximumBytes: Int
  /// The deepest nesting of arrays and dictionaries; a container at the top is at depth 1.
  ///
  /// At most `deepestNesting`, however large it is set.
  public var maximumDepth: Int
  /// The most values, dictionary keys among them.
  public var maximumNodes: Int
  /// The most bytes of strings and data, plus `bytesPerNode` for each node.
  public var maximumExpandedBytes: Int

  /// What a node costs besides the bytes of its content.
  public static let bytesPerNode = 32

  /// 64 MiB of input, 512 levels, one million nodes, 256 MiB once expanded.
  ///
  /// What passes is read within half a second and 300 MB at the very worst, and decoded by
  /// Foundation within a few seconds; a usual message is nowhere near any of these.
  public static let standard = PropertyListLimits()

  /// Makes limits; what is not given is as in `standard`.
  ///
  /// - Parameters:
  ///   - maximumBytes: The largest input in bytes.
  ///   - maximumDepth: The deepest nesting of containers.
  ///   - maximumNodes: The most values, each reference counted.
  ///   - maximumExpandedBytes: The most bytes of content, each reference counted.
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
