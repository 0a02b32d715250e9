/// The part of its limits that a traversal has used up.
struct PropertyListBudget {
  private let limits: PropertyListLimits
  private(set) var nodes = 0
  private(set) var contentBytes = 0
  let maximumDepth: Int

  init(_ limits: PropertyListLimits) {
    self.limits = limits
    maximumDepth = min(limits.maximumDepth, PropertyListLimits.deepestNesting)
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
    let (nodeSum, manyNodes) = nodes.addingReportingOverflow(moreNodes)
    guard !manyNodes, nodeSum <= limits.maximumNodes else {
      throw PropertyListError(
        .tooManyNodes, atByte: offset, "it holds more than \(limits.maximumNodes) values")
    }
    let (byteSum, manyBytes) = contentBytes.addingReportingOverflow(moreBytes)
    let (nodeCost, costly) = nodeSum.multipliedReportingOverflow(
      by: PropertyListLimits.bytesPerNode)
    let (total, overflow) = byteSum.addingReportingOverflow(nodeCost)
    guard !manyBytes, !costly, !overflow, total <= limits.maximumExpandedBytes else {
      throw PropertyListError(
        .tooManyExpandedBytes, atByte: offset,
        "its values take more than \(limits.maximumExpandedBytes) bytes once expanded")
    }
    nodes = nodeSum
    contentBytes = byteSum
  }

  func checkDepth(_ depth: Int, atByte offset: Int) throws(PropertyListError) {
    guard depth <= maximumDepth else {
      throw PropertyListError(
        .tooDeep, atByte: offset, "its containers are nested more than \(maximumDepth) deep")
    }
  }
}
