import FoundationEssentials

/// Builds the value of a binary property list that passed `BinaryPropertyListScan`.
struct BinaryPropertyListReader {
  private struct Frame {
    let references: Int
    let keyCount: Int
    let valueCount: Int
    var next = 0
  }

  private let document: BinaryPropertyListDocument
  private var builder = PropertyListTreeBuilder()
  private var frames: [Frame] = []

  static func value(
    of document: BinaryPropertyListDocument
  ) throws(PropertyListError) -> PropertyListValue {
    var reader = BinaryPropertyListReader(document: document)
    try reader.read(document.topObject)
    while !reader.frames.isEmpty { try reader.advance() }
    return try reader.builder.value()
  }

  private init(document: BinaryPropertyListDocument) {
    self.document = document
  }

  private mutating func advance() throws(PropertyListError) {
    let top = frames.count - 1
    let frame = frames[top]
    guard frame.next < frame.valueCount else {
      frames.removeLast()
      builder.closeContainer()
      return
    }
    frames[top].next += 1
    if frame.keyCount > 0 {
      let offset = document.offset(of: try document.reference(frame.next, of: frame.references))
      let key = try document.string(at: offset)
      guard builder.name(key) else {
        throw PropertyListError(.duplicateKey, atByte: offset, PropertyListError.twice(key))
      }
    }
    try read(try document.reference(frame.keyCount + frame.next, of: frame.references))
  }

  private mutating func read(_ object: Int) throws(PropertyListError) {
    switch try document.object(at: document.offset(of: object)) {
    case .scalar(let value): builder.add(value)
    case .data(let range): builder.add(.data(Data(document.bytes[range])))
    case .asciiString(let range): builder.add(.string(document.asciiString(range)))
    case .utf16String(let range): builder.add(.string(document.utf16String(range)))
    case .array(let references, let count):
      builder.openArray(count: count)
      frames.append(Frame(references: references, keyCount: 0, valueCount: count))
    case .dictionary(let references, let count):
      builder.openDictionary(count: count)
      frames.append(Frame(references: references, keyCount: count, valueCount: count))
    }
  }
}
