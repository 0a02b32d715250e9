/// The part of its limits that a traversal has used up.
struct PropertyListBudget {
  let limits: PropertyListLimits
  private(set) var nodes = 0
  private(set) var contentBytes = 0
  let maximumDepth: Int

  init(_ limits: PropertyListLimits) {
    maximumDepth = min(limits.maximumDepth, PropertyListLimits.deepestNesting)
    // No machine has room for more, and no sum below overflows.
    var limits = limits
    limits.maximumNodes = min(limits.maximumNodes, Int(Int32.max))
    limits.maximumExpandedBytes = min(limits.maximumExpandedBytes, .max / 4)
    self.limits = limits
  }

  static func checkSize(of bytes: [UInt8], limits: PropertyListLimits) throws(PropertyListError) {
    guard bytes.count <= limits.maximumBytes else {
      throw PropertyListError(
        .tooManyBytes, atByte: limits.maximumBytes,
        "it has \(bytes.count) bytes, and at most \(limits.maximumBytes) are read")
    }
  }

  /// Charges values and the bytes of their content to the budget.
  mutating func charge(
    nodes moreNodes: Int, contentBytes moreBytes: Int, atByte offset: Int
  ) throws(PropertyListError) {
    let nodeSum = nodes + moreNodes
    guard nodeSum <= limits.maximumNodes else {
      throw .tooManyNodes(limits.maximumNodes, at: .byte(offset))
    }
    let byteSum = contentBytes + moreBytes
    let total = byteSum + nodeSum * PropertyListLimits.bytesPerNode
    guard total <= limits.maximumExpandedBytes else {
      throw PropertyListError(
        .tooManyExpandedBytes, atByte: offset,
        "its values take more than \(limits.maximumExpandedBytes) bytes once expanded")
    }
    nodes = nodeSum
    contentBytes = byteSum
  }

  func checkDepth(_ depth: Int, atByte offset: Int) throws(PropertyListError) {
    guard depth <= maximumDepth else { throw .tooDeep(maximumDepth, at: .byte(offset)) }
  }
}
