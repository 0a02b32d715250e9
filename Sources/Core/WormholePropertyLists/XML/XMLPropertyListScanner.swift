import FoundationEssentials

/// Scans an XML property list once, without recursion, and builds its value.
///
/// The accepted subset of XML is UTF-8, one document type without an internal subset, no attributes
/// but those of `plist`, no entities but the five of XML and numbers, and no processing
/// instructions. A text that passes is within the limits, and `PropertyListDecoder`, whose own
/// scanner recurses for every array, reads it without harm.
struct XMLPropertyListScanner {
  enum Tag: String {
    case plist, array, dict, key, string, data, date, real, integer
    case yes = "true"
    case no = "false"
  }

  /// A container whose end has not been reached yet.
  private struct Container {
    let tag: Tag
    var elements: [PropertyListValue] = []
    var entries: [String: PropertyListValue] = [:]
    /// The key whose value comes next.
    var key: String?

    var value: PropertyListValue { tag == .dict ? .dictionary(entries) : .array(elements) }
  }

  let bytes: [UInt8]
  var index = 0
  private var budget: PropertyListBudget
  private var containers: [Container] = []
  private var root: PropertyListValue?

  /// Scans all of the bytes.
  static func scan(
    _ bytes: [UInt8], limits: PropertyListLimits
  ) throws(PropertyListError) -> PropertyListValue {
    var scanner = XMLPropertyListScanner(bytes: bytes, limits: limits)
    try scanner.checkCharacters()
    try scanner.scanProlog()
    let value = try scanner.scanDocument()
    try scanner.scanEpilog()
    return value
  }

  private init(bytes: [UInt8], limits: PropertyListLimits) {
    self.bytes = bytes
    budget = PropertyListBudget(limits)
  }

  private mutating func scanDocument() throws(PropertyListError) -> PropertyListValue {
    let start = index
    let (tag, isEmpty) = try scanOpenTag()
    guard tag == .plist, !isEmpty else {
      throw .malformed("its first element is not <plist>", at: start)
    }
    while true {
      try skipSpaceAndComments()
      guard has("</") else {
        try scanElement()
        continue
      }
      let start = index
      guard let container = containers.popLast() else {
        guard let root else { throw .malformed("it holds no value", at: start) }
        try scanCloseTag(.plist)
        return root
      }
      guard container.key == nil else { throw .malformed("a key has no value", at: start) }
      try scanCloseTag(container.tag)
      add(container.value)
    }
  }

  private mutating func scanElement() throws(PropertyListError) {
    let start = index
    let (tag, isEmpty) = try scanOpenTag()
    try checkPosition(of: tag, at: start)
    try budget.charge(nodes: 1, contentBytes: 0, atByte: start)
    switch tag {
    case .plist: throw .malformed("<plist> stands within another element", at: start)
    case .array, .dict:
      try budget.checkDepth(containers.count + 1, atByte: start)
      let container = Container(tag: tag)
      if isEmpty { add(container.value) } else { containers.append(container) }
    case .yes, .no:
      if !isEmpty { try scanCloseTag(tag) }
      add(.boolean(tag == .yes))
    case .key:
      // PropertyListDecoder does not notice that <key/> is empty and reads on.
      guard !isEmpty else { throw .malformed("an empty key is not spelled <key></key>", at: start) }
      let key = try scanText()
      try scanCloseTag(tag)
      let last = containers.count - 1
      guard containers[last].entries[key] == nil else { throw .twice(key, at: start) }
      containers[last].key = key
    case .string:
      let text = isEmpty ? "" : try scanText()
      if !isEmpty { try scanCloseTag(tag) }
      add(.string(text))
    case .data, .date, .real, .integer:
      guard !isEmpty else { throw .malformed("<\(tag.rawValue)/> has no value", at: start) }
      add(try scanScalar(tag))
      try scanCloseTag(tag)
    }
  }

  /// Checks that an element may stand here: a key where one is due, a value elsewhere.
  private func checkPosition(of tag: Tag, at offset: Int) throws(PropertyListError) {
    guard let container = containers.last else {
      guard tag != .key, root == nil else {
        throw .malformed("it holds something other than one value", at: offset)
      }
      return
    }
    guard (tag == .key) == (container.tag == .dict && container.key == nil) else {
      throw .malformed("<\(tag.rawValue)> does not belong here", at: offset)
    }
  }

  /// Adds a value to the innermost open container.
  private mutating func add(_ value: PropertyListValue) {
    let last = containers.count - 1
    if last < 0 {
      root = value
    } else if let key = containers[last].key.take() {
      containers[last].entries[key] = value
    } else {
      containers[last].elements.append(value)
    }
  }

  private mutating func scanScalar(_ tag: Tag) throws(PropertyListError) -> PropertyListValue {
    let start = index
    while index < bytes.count, bytes[index] != UInt8(ascii: "<") { index += 1 }
    let text = bytes[start..<index]
    let value: PropertyListValue?
    switch tag {
    case .integer: value = XMLPropertyListScalars.integer(text)
    case .real: value = XMLPropertyListScalars.real(text).map(PropertyListValue.real)
    case .date: value = XMLPropertyListScalars.date(text).map(PropertyListValue.date)
    default:
      try budget.charge(nodes: 0, contentBytes: text.count / 4 * 3, atByte: start)
      value = XMLPropertyListScalars.data(text).map(PropertyListValue.data)
    }
    guard let value else {
      throw .malformed("the content of <\(tag.rawValue)> is not valid", at: start)
    }
    return value
  }

  mutating func chargeText(_ count: Int, at offset: Int) throws(PropertyListError) {
    try budget.charge(nodes: 0, contentBytes: count, atByte: offset)
  }
}

extension XMLPropertyListScanner {
  /// Returns whether these characters come next.
  func has(_ text: StaticString) -> Bool { has(text, at: index) }

  /// Returns whether these characters, or lower-case ones in any case, are at a place.
  // A string's own methods would do, but their generic types cost time at the start of a program.
  func has(_ text: StaticString, at place: Int, inAnyCase: Bool = false) -> Bool {
    let count = text.utf8CodeUnitCount
    guard count <= bytes.count - place else { return false }
    return text.withUTF8Buffer { expected in
      for offset in 0..<count {
        var byte = bytes[place + offset]
        if inAnyCase, (0x41...0x5A).contains(byte) { byte |= 0x20 }
        if byte != expected[offset] { return false }
      }
      return true
    }
  }

  /// Moves past these characters, if they come next.
  ///
  /// - Returns: Whether they do.
  mutating func take(_ text: StaticString) -> Bool {
    guard has(text) else { return false }
    index += text.utf8CodeUnitCount
    return true
  }

  /// Moves past the next place of these characters.
  ///
  /// - Returns: What lies before it.
  mutating func skip(
    past end: StaticString, orRefuse reason: String, at start: Int
  ) throws(PropertyListError) -> Range<Int> {
    let contentStart = index
    while !has(end) {
      guard index < bytes.count else { throw .malformed(reason, at: start) }
      index += 1
    }
    defer { index += end.utf8CodeUnitCount }
    return contentStart..<index
  }

  private mutating func skipSpace() {
    while index < bytes.count, XMLPropertyListScalars.isWhitespace(bytes[index]) { index += 1 }
  }

  mutating func skipSpaceAndComments() throws(PropertyListError) {
    skipSpace()
    while take("<!--") {
      _ = try skip(past: "-->", orRefuse: "a comment does not end", at: index - 4)
      skipSpace()
    }
  }

  /// Returns the name of a tag that is expected here, after its `<` or `</`.
  private mutating func scanTagName() throws(PropertyListError) -> Tag {
    let start = index
    while index < bytes.count, (0x61...0x7A).contains(bytes[index]) { index += 1 }
    // The longest name has seven letters; a string of that size needs no allocation.
    let name = String(decoding: bytes[start..<min(index, start + 8)], as: UTF8.self)
    guard let tag = Tag(rawValue: name) else {
      throw .malformed("an element is none of a property list", at: start)
    }
    return tag
  }

  private mutating func scanOpenTag() throws(PropertyListError) -> (Tag, isEmpty: Bool) {
    guard take("<") else {
      let cut = index == bytes.count
      throw .malformed(cut ? "it is cut short" : "text stands outside any value", at: index)
    }
    let start = index
    let tag = try scanTagName()
    let nameEnd = index
    skipSpace()
    if tag == .plist, index > nameEnd {
      while index < bytes.count, ![0x3C, 0x3E, 0x2F].contains(bytes[index]) { index += 1 }
    }
    let isEmpty = take("/")
    guard take(">") else { throw .malformed("a tag has attributes or does not end", at: start) }
    return (tag, isEmpty)
  }

  private mutating func scanCloseTag(_ tag: Tag) throws(PropertyListError) {
    let start = index
    guard take("</"), try scanTagName() == tag else {
      throw .malformed("</\(tag.rawValue)> is missing", at: start)
    }
    skipSpace()
    guard take(">") else { throw .malformed("a tag does not end", at: start) }
  }
}
