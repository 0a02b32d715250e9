import FoundationEssentials

/// Checks everything that the top object of a binary property list refers to, and builds its value.
///
/// Every object is checked once, and a container is built when all of it has been checked. A
/// further reference to it is charged to the budget like the first one, but takes no time, because
/// values are shared. So the scan is linear in the size of the file, whatever the expanded size.
struct BinaryPropertyListScan {
  /// The cost of an object together with everything that it refers to.
  private struct Cost {
    var nodes: Int32
    var height: Int32
    var contentBytes: Int
    /// The place of a container's value in `built`.
    var place = 0

    static let unknown = Cost(nodes: 0, height: 0, contentBytes: 0)
    /// Still being visited: a reference to this object closes a cycle.
    static let open = Cost(nodes: -1, height: 0, contentBytes: 0)
  }

  /// A container that is being visited.
  private struct Frame {
    let object: Int
    let references: Int
    /// Zero for an array.
    let keyCount: Int
    let referenceCount: Int
    let isDictionary: Bool
    let nodesBefore: Int
    let contentBytesBefore: Int
    var next = 0
    var height: Int32 = 1
  }

  private let document: BinaryPropertyListDocument
  private let wantsContent: Bool
  private var budget: PropertyListBudget
  private var costs: [Cost]
  /// The open containers around the current one.
  private var outer: [Frame] = []
  private var built: [PropertyListValue] = []

  /// - Parameter wantsContent: Whether the value is built.
  /// - Returns: The value, or nil if it is not wanted.
  static func scan(
    _ document: BinaryPropertyListDocument, limits: PropertyListLimits, wantsContent: Bool
  ) throws(PropertyListError) -> PropertyListValue? {
    let budget = PropertyListBudget(limits)
    guard document.trailer.objectCount <= budget.limits.maximumNodes else {
      throw .tooManyNodes(budget.limits.maximumNodes, at: .byte(document.bytes.count))
    }
    var scan = BinaryPropertyListScan(document, budget, wantsContent: wantsContent)
    var height: Int32 = 0
    let top = document.trailer.topObject
    if let container = try scan.visit(top, depth: 0, &height) {
      return try scan.visitAll(of: container)
    }
    return wantsContent ? try scan.value(of: top) : nil
  }

  /// Checks a file that this process is about to write.
  static func check(
    _ bytes: [UInt8], limits: PropertyListLimits
  ) throws(PropertyListError) {
    try PropertyListBudget.checkSize(of: bytes, limits: limits)
    _ = try scan(
      BinaryPropertyListDocument(bytes, admitsReferences: limits.admitsReferences),
      limits: limits, wantsContent: false)
  }

  private init(
    _ document: BinaryPropertyListDocument, _ budget: PropertyListBudget, wantsContent: Bool
  ) {
    self.document = document
    self.wantsContent = wantsContent
    self.budget = budget
    // `Array(repeating:count:)` looks up its type each time, which takes longer for a few objects.
    costs = []
    costs.reserveCapacity(document.trailer.objectCount)
    for _ in 0..<document.trailer.objectCount { costs.append(.unknown) }
  }

  /// Visits everything in a container, and builds it; without recursion.
  ///
  /// - Returns: Its value; nil if it is not wanted.
  private mutating func visitAll(of top: Frame) throws(PropertyListError) -> PropertyListValue? {
    var frame = top
    while true {
      if frame.next < frame.keyCount { try visitKeys(of: &frame) }
      if let inner = try visitValues(of: &frame) {
        if outer.isEmpty { outer.reserveCapacity(8) }
        outer.append(frame)
        frame = inner
        continue
      }
      guard var next = outer.popLast() else { return wantsContent ? try container(frame) : nil }
      try close(frame)
      next.height = max(next.height, frame.height + 1)
      frame = next
    }
  }

  /// Visits the values of a container up to one that is an unknown container itself.
  ///
  /// - Returns: That container; nil at the end.
  private mutating func visitValues(of frame: inout Frame) throws(PropertyListError) -> Frame? {
    while frame.next < frame.referenceCount {
      let object = try document.reference(frame.next, of: frame.references)
      frame.next += 1
      let inner = try visit(object, depth: outer.count + 1, &frame.height)
      if let inner { return inner }
    }
    return nil
  }

  /// Visits an object.
  ///
  /// - Parameters:
  ///   - depth: The number of containers around it.
  ///   - height: The height of the innermost of them.
  /// - Returns: The object if it is a container that has to be visited.
  private mutating func visit(
    _ object: Int, depth: Int, _ height: inout Int32
  ) throws(PropertyListError) -> Frame? {
    let offset = document.offset(of: object)
    let cost = costs[object]
    if cost.nodes > 0 {
      try budget.checkDepth(depth + Int(cost.height), atByte: offset)
      try budget.charge(nodes: Int(cost.nodes), contentBytes: cost.contentBytes, atByte: offset)
      height = max(height, cost.height + 1)
      return nil
    }
    guard cost.nodes == 0 else {
      throw PropertyListError(.cycle, atByte: offset, "a container of it contains itself")
    }
    switch try document.object(at: offset) {
    case .array(let references, let count):
      return try open(object, offset, depth: depth, references, count, isDictionary: false)
    case .dictionary(let references, let count):
      return try open(object, offset, depth: depth, references, count, isDictionary: true)
    case .data(let range): try leaf(object, contentBytes: range.count, offset)
    case .asciiString(let range):
      try leaf(object, contentBytes: range.count, offset)
      try document.checkASCII(range)
    case .utf16String(let range):
      // One UTF-16 unit of two bytes can become three bytes of UTF-8.
      try leaf(object, contentBytes: range.count / 2 * 3, offset)
      try document.checkUTF16(range)
    case .reference:
      // It becomes a dictionary.
      try budget.checkDepth(depth + 1, atByte: offset)
      try leaf(object, nodes: 3, contentBytes: 0, offset)
      height = max(height, 2)
    default: try leaf(object, contentBytes: 0, offset)
    }
    return nil
  }

  private mutating func leaf(
    _ object: Int, nodes: Int32 = 1, contentBytes: Int, _ offset: Int
  ) throws(PropertyListError) {
    try budget.charge(nodes: Int(nodes), contentBytes: contentBytes, atByte: offset)
    costs[object] = Cost(nodes: nodes, height: nodes > 1 ? 1 : 0, contentBytes: contentBytes)
  }

  private mutating func open(
    _ object: Int, _ offset: Int, depth: Int, _ references: Int, _ count: Int, isDictionary: Bool
  ) throws(PropertyListError) -> Frame {
    let frame = Frame(
      object: object, references: references, keyCount: isDictionary ? count : 0,
      referenceCount: isDictionary ? 2 * count : count, isDictionary: isDictionary,
      nodesBefore: budget.nodes, contentBytesBefore: budget.contentBytes)
    try budget.checkDepth(depth + 1, atByte: offset)
    try budget.charge(nodes: 1, contentBytes: 0, atByte: offset)
    costs[object] = .open
    return frame
  }

  private mutating func close(_ frame: Frame) throws(PropertyListError) {
    costs[frame.object] = Cost(
      nodes: Int32(budget.nodes - frame.nodesBefore), height: frame.height,
      contentBytes: budget.contentBytes - frame.contentBytesBefore, place: built.count)
    if wantsContent { built.append(try container(frame)) }
  }
}

// MARK: Keys

extension BinaryPropertyListScan {
  /// Visits the keys of a dictionary, and checks that they differ. Keys in ascending ASCII order,
  /// which our writer produces, are compared only once.
  private mutating func visitKeys(of frame: inout Frame) throws(PropertyListError) {
    var previous: Range<Int>?
    var isAscending = true
    while frame.next < frame.keyCount {
      let object = try document.reference(frame.next, of: frame.references)
      frame.next += 1
      let offset = document.offset(of: object)
      switch try document.object(at: offset) {
      case .asciiString(let range):
        if isAscending, let previous { isAscending = document.precedes(previous, range) }
        previous = range
      case .utf16String: isAscending = false
      default: throw .malformed("a key of a dictionary is not a string", at: offset)
      }
      _ = try visit(object, depth: outer.count + 1, &frame.height)
    }
    if !isAscending, frame.keyCount > 1 { try checkUniqueKeys(of: frame) }
  }

  private func checkUniqueKeys(of frame: Frame) throws(PropertyListError) {
    var seen = Set<String>(minimumCapacity: frame.keyCount)
    for index in 0..<frame.keyCount {
      let offset = document.offset(of: try document.reference(index, of: frame.references))
      let key = try document.string(at: offset)
      guard seen.insert(key).inserted else { throw .twice(key, at: offset) }
    }
  }
}

// MARK: Building

extension BinaryPropertyListScan {
  private func container(_ frame: Frame) throws(PropertyListError) -> PropertyListValue {
    guard frame.isDictionary else {
      var elements: [PropertyListValue] = []
      elements.reserveCapacity(frame.referenceCount)
      for index in 0..<frame.referenceCount {
        elements.append(try value(of: try document.reference(index, of: frame.references)))
      }
      return .array(elements)
    }
    var entries = [String: PropertyListValue](minimumCapacity: frame.keyCount)
    for index in 0..<frame.keyCount {
      let key = try document.reference(index, of: frame.references)
      let value = try document.reference(frame.keyCount + index, of: frame.references)
      entries[try document.string(at: document.offset(of: key))] = try self.value(of: value)
    }
    return .dictionary(entries)
  }

  /// Returns the value of an object that was visited.
  private func value(of object: Int) throws(PropertyListError) -> PropertyListValue {
    switch try document.object(at: document.offset(of: object)) {
    case .boolean(let boolean): .boolean(boolean)
    case .integer(let integer): .integer(integer)
    case .unsigned(let integer): .unsigned(integer)
    case .real(let real): .real(real)
    case .date(let seconds): .date(Date(timeIntervalSinceReferenceDate: seconds))
    case .data(let range): .data(Data(document.bytes[range]))
    case .asciiString(let range): .string(document.asciiString(range))
    case .utf16String(let range): .string(document.utf16String(range))
    case .reference(let number): PropertyListValue(archiveReference: number)
    case .array, .dictionary: built[costs[object].place]
    }
  }
}
