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

  private struct Container {
    let tag: Tag
    var hasKey = false
  }

  let bytes: [UInt8]
  var index = 0
  private var builder = PropertyListTreeBuilder()
  private var budget: PropertyListBudget
  private var containers: [Container] = []
  private var hasRoot = false

  /// Scans all of the bytes.
  static func scan(
    _ bytes: [UInt8], limits: PropertyListLimits
  ) throws(PropertyListError) -> PropertyListValue {
    var scanner = XMLPropertyListScanner(bytes: bytes, limits: limits)
    try scanner.checkCharacters()
    try scanner.scanProlog()
    try scanner.scanDocument()
    try scanner.scanEpilog()
    return try scanner.builder.value()
  }

  private init(bytes: [UInt8], limits: PropertyListLimits) {
    self.bytes = bytes
    budget = PropertyListBudget(limits)
  }

  private mutating func scanDocument() throws(PropertyListError) {
    let start = index
    let (tag, isEmpty) = try scanOpenTag()
    guard tag == .plist, !isEmpty else {
      throw malformed("its first element is not <plist>", at: start)
    }
    while true {
      try skipSpaceAndComments()
      guard has("</") else {
        try scanElement()
        continue
      }
      let start = index
      guard let container = containers.popLast() else {
        guard hasRoot else { throw malformed("it holds no value", at: start) }
        return try scanCloseTag(.plist)
      }
      guard !container.hasKey else { throw malformed("a key has no value", at: start) }
      try scanCloseTag(container.tag)
      builder.closeContainer()
    }
  }

  private mutating func scanElement() throws(PropertyListError) {
    let start = index
    let (tag, isEmpty) = try scanOpenTag()
    try takePlace(of: tag, at: start)
    try budget.charge(nodes: 1, contentBytes: 0, atByte: start)
    switch tag {
    case .plist: throw malformed("<plist> stands within another element", at: start)
    case .array, .dict:
      try budget.checkDepth(containers.count + 1, atByte: start)
      if tag == .array { builder.openArray() } else { builder.openDictionary() }
      if isEmpty { builder.closeContainer() } else { containers.append(Container(tag: tag)) }
    case .yes, .no:
      if !isEmpty { try scanCloseTag(tag) }
      builder.add(.boolean(tag == .yes))
    case .key:
      // PropertyListDecoder does not notice that <key/> is empty and reads on.
      guard !isEmpty else { throw malformed("an empty key is not spelled <key></key>", at: start) }
      let key = try scanText()
      try scanCloseTag(tag)
      guard builder.name(key) else {
        throw PropertyListError(.duplicateKey, atByte: start, PropertyListError.twice(key))
      }
    case .string:
      let text = isEmpty ? "" : try scanText()
      if !isEmpty { try scanCloseTag(tag) }
      builder.add(.string(text))
    case .data, .date, .real, .integer:
      guard !isEmpty else { throw malformed("<\(tag.rawValue)/> has no value", at: start) }
      builder.add(try scanScalar(tag))
      try scanCloseTag(tag)
    }
  }

  /// Checks that an element may stand here: a key where one is due, a value elsewhere.
  private mutating func takePlace(of tag: Tag, at offset: Int) throws(PropertyListError) {
    guard let container = containers.last else {
      guard tag != .key, !hasRoot else {
        throw malformed("it holds something other than one value", at: offset)
      }
      hasRoot = true
      return
    }
    guard (tag == .key) == (container.tag == .dict && !container.hasKey) else {
      throw malformed("<\(tag.rawValue)> does not belong here", at: offset)
    }
    if container.tag == .dict { containers[containers.count - 1].hasKey.toggle() }
  }

  private mutating func scanScalar(_ tag: Tag) throws(PropertyListError) -> PropertyListValue {
    let start = index
    skipTo(UInt8(ascii: "<"))
    let text = bytes[start..<index]
    let value: PropertyListValue?
    switch tag {
    case .integer: value = XMLPropertyListScalars.integer(text)
    case .real: value = XMLPropertyListScalars.real(text).map(PropertyListValue.real)
    case .date: value = XMLPropertyListScalars.date(text).map(PropertyListValue.date)
    default:
      try budget.charge(nodes: 0, contentBytes: text.count / 4 * 3, atByte: start)
      value = Base64.bytes(of: text).map { .data(Data($0)) }
    }
    guard let value else {
      throw malformed("the content of <\(tag.rawValue)> is not valid", at: start)
    }
    return value
  }

  mutating func chargeText(_ count: Int, at offset: Int) throws(PropertyListError) {
    try budget.charge(nodes: 0, contentBytes: count, atByte: offset)
  }
}

extension XMLPropertyListScanner {
  func malformed(_ reason: String, at offset: Int) -> PropertyListError {
    PropertyListError(.malformed, atByte: offset, reason)
  }

  /// Returns whether these characters come next.
  func has(_ text: StaticString) -> Bool {
    let count = text.utf8CodeUnitCount
    guard count <= bytes.count - index else { return false }
    return text.withUTF8Buffer { expected in
      for offset in 0..<count where bytes[index + offset] != expected[offset] { return false }
      return true
    }
  }

  mutating func skipTo(_ byte: UInt8) {
    while index < bytes.count, bytes[index] != byte { index += 1 }
  }

  mutating func skipSpace() {
    while index < bytes.count, XMLPropertyListScalars.isWhitespace(bytes[index]) { index += 1 }
  }

  mutating func skipSpaceAndComments() throws(PropertyListError) {
    skipSpace()
    while has("<!--") {
      let start = index
      index += 4
      while !has("-->") {
        guard index < bytes.count else { throw malformed("a comment does not end", at: start) }
        index += 1
      }
      index += 3
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
      throw malformed("an element is none of a property list", at: start)
    }
    return tag
  }

  mutating func scanOpenTag() throws(PropertyListError) -> (Tag, isEmpty: Bool) {
    guard has("<") else {
      let cut = index == bytes.count
      throw malformed(cut ? "it is cut short" : "text stands outside any value", at: index)
    }
    index += 1
    let start = index
    let tag = try scanTagName()
    let nameEnd = index
    skipSpace()
    if tag == .plist, index > nameEnd {
      while index < bytes.count, ![0x3C, 0x3E, 0x2F].contains(bytes[index]) { index += 1 }
    }
    let isEmpty = has("/")
    if isEmpty { index += 1 }
    guard has(">") else { throw malformed("a tag has attributes or does not end", at: start) }
    index += 1
    return (tag, isEmpty)
  }

  mutating func scanCloseTag(_ tag: Tag) throws(PropertyListError) {
    let start = index
    guard has("</") else { throw malformed("</\(tag.rawValue)> is missing", at: start) }
    index += 2
    guard try scanTagName() == tag else {
      throw malformed("</\(tag.rawValue)> is missing", at: start)
    }
    skipSpace()
    guard has(">") else { throw malformed("a tag does not end", at: start) }
    index += 1
  }
}
