/// Checks everything that the top object of a binary property list refers to.
///
/// Every object is visited once. A further reference to it is charged to the budget like the first
/// one, but takes no time. So the scan is linear in the size of the file, however large the
/// expanded value is.
struct BinaryPropertyListScan {
  /// The cost of an object together with everything that it refers to.
  private struct Cost {
    var nodes: Int32
    var height: Int32
    var contentBytes: Int

    static let unknown = Cost(nodes: 0, height: 0, contentBytes: 0)
    /// Still being visited: a reference to this object closes a cycle.
    static let open = Cost(nodes: -1, height: 0, contentBytes: 0)
  }

  private struct Frame {
    let object: Int
    let offset: Int
    let references: Int
    let keyCount: Int
    let referenceCount: Int
    let nodesBefore: Int
    let contentBytesBefore: Int
    var next = 0
    var height = 1
    var keys = KeyOrder()
  }

  private let document: BinaryPropertyListDocument
  private var budget: PropertyListBudget
  private var costs: [Cost]
  private var frames: [Frame] = []

  static func check(
    _ document: BinaryPropertyListDocument, limits: PropertyListLimits
  ) throws(PropertyListError) {
    // Node counts have 32 bits, and no machine has room for more.
    var limits = limits
    limits.maximumNodes = min(limits.maximumNodes, Int(Int32.max))
    guard document.objectCount <= limits.maximumNodes else {
      throw PropertyListError(
        .tooManyNodes, atByte: document.bytes.count,
        "it holds more than \(limits.maximumNodes) values")
    }
    var scan = BinaryPropertyListScan(document, limits: limits)
    try scan.visit(document.topObject)
    while !scan.frames.isEmpty { try scan.advance() }
  }

  private init(_ document: BinaryPropertyListDocument, limits: PropertyListLimits) {
    self.document = document
    budget = PropertyListBudget(limits)
    costs = Array(repeating: .unknown, count: document.objectCount)
  }

  /// Follows one reference of the innermost open container, or closes the container.
  private mutating func advance() throws(PropertyListError) {
    let top = frames.count - 1
    let next = frames[top].next
    if next == frames[top].keyCount, next > 0 {
      try frames[top].keys.checkUnique(document, frames[top].references, frames[top].keyCount)
    }
    guard next < frames[top].referenceCount else { return close() }
    frames[top].next = next + 1
    let object = try document.reference(next, of: frames[top].references)
    if next < frames[top].keyCount { try frames[top].keys.take(object, document) }
    try visit(object)
  }

  private mutating func visit(_ object: Int) throws(PropertyListError) {
    let offset = document.offset(of: object)
    let cost = costs[object]
    if cost.nodes > 0 {
      try budget.checkDepth(frames.count + Int(cost.height), atByte: offset)
      try budget.charge(nodes: Int(cost.nodes), contentBytes: cost.contentBytes, atByte: offset)
      raise(to: Int(cost.height))
      return
    }
    guard cost.nodes == 0 else {
      throw PropertyListError(.cycle, atByte: offset, "a container of it contains itself")
    }
    switch try document.object(at: offset) {
    case .scalar: try leaf(object, contentBytes: 0, offset)
    case .data(let range): try leaf(object, contentBytes: range.count, offset)
    case .asciiString(let range):
      try leaf(object, contentBytes: range.count, offset)
      try document.checkASCII(range)
    case .utf16String(let range):
      // One UTF-16 unit of two bytes can become three bytes of UTF-8.
      try leaf(object, contentBytes: range.count / 2 * 3, offset)
      try document.checkUTF16(range)
    case .array(let references, let count):
      try open(object, offset, references, keyCount: 0, referenceCount: count)
    case .dictionary(let references, let count):
      try open(object, offset, references, keyCount: count, referenceCount: 2 * count)
    }
  }

  private mutating func leaf(
    _ object: Int, contentBytes: Int, _ offset: Int
  ) throws(PropertyListError) {
    try budget.charge(nodes: 1, contentBytes: contentBytes, atByte: offset)
    costs[object] = Cost(nodes: 1, height: 0, contentBytes: contentBytes)
  }

  private mutating func open(
    _ object: Int, _ offset: Int, _ references: Int, keyCount: Int, referenceCount: Int
  ) throws(PropertyListError) {
    frames.append(
      Frame(
        object: object, offset: offset, references: references, keyCount: keyCount,
        referenceCount: referenceCount, nodesBefore: budget.nodes,
        contentBytesBefore: budget.contentBytes))
    try budget.checkDepth(frames.count, atByte: offset)
    try budget.charge(nodes: 1, contentBytes: 0, atByte: offset)
    costs[object] = .open
  }

  private mutating func close() {
    guard let frame = frames.popLast() else { return }
    costs[frame.object] = Cost(
      nodes: Int32(budget.nodes - frame.nodesBefore), height: Int32(frame.height),
      contentBytes: budget.contentBytes - frame.contentBytesBefore)
    raise(to: frame.height)
  }

  private mutating func raise(to height: Int) {
    guard let last = frames.indices.last else { return }
    frames[last].height = max(frames[last].height, height + 1)
  }
}

/// Checks that the keys of one dictionary differ.
private struct KeyOrder {
  private var previous: Range<Int>?
  private var isAscending = true

  /// Checks one key. Keys in ascending ASCII order, which our writer produces, are compared only
  /// once.
  mutating func take(
    _ object: Int, _ document: BinaryPropertyListDocument
  ) throws(PropertyListError) {
    let offset = document.offset(of: object)
    switch try document.object(at: offset) {
    case .asciiString(let range):
      if let previous, isAscending {
        isAscending = document.bytes[previous].lexicographicallyPrecedes(document.bytes[range])
      }
      previous = range
    case .utf16String:
      isAscending = false
    default:
      throw PropertyListError(.malformed, atByte: offset, "a key of a dictionary is not a string")
    }
  }

  func checkUnique(
    _ document: BinaryPropertyListDocument, _ references: Int, _ count: Int
  ) throws(PropertyListError) {
    guard !isAscending, count > 1 else { return }
    var seen = Set<String>(minimumCapacity: count)
    for index in 0..<count {
      let offset = document.offset(of: try document.reference(index, of: references))
      let key = try document.string(at: offset)
      guard seen.insert(key).inserted else {
        throw PropertyListError(.duplicateKey, atByte: offset, PropertyListError.twice(key))
      }
    }
  }
}
