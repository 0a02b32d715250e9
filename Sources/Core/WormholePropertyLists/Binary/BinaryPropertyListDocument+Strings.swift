import FoundationEssentials

extension BinaryPropertyListDocument {
  func checkASCII(_ range: Range<Int>) throws(PropertyListError) {
    // All at once, which the processor does fast; the place matters only for the error.
    let all = bytes.withUnsafeBufferPointer { $0[range].reduce(0, |) }
    guard all >= 0x80, let index = range.first(where: { bytes[$0] >= 0x80 }) else { return }
    throw .malformed("a string marked as ASCII is not ASCII", at: index)
  }

  /// Refuses lone surrogates, because no Swift string can hold one.
  func checkUTF16(_ range: Range<Int>) throws(PropertyListError) {
    var index = range.lowerBound
    while index < range.upperBound {
      let high = bytes[index]
      guard high & 0xF8 == 0xD8 else {
        index += 2
        continue
      }
      guard high & 0xFC == 0xD8, index + 2 < range.upperBound, bytes[index + 2] & 0xFC == 0xDC
      else { throw .malformed("a string is not valid UTF-16", at: index) }
      index += 4
    }
  }

  /// Returns whether one range of bytes precedes another one in the order of bytes.
  func precedes(_ one: Range<Int>, _ other: Range<Int>) -> Bool {
    for index in 0..<min(one.count, other.count) {
      let (byte, otherByte) = (bytes[one.lowerBound + index], bytes[other.lowerBound + index])
      if byte != otherByte { return byte < otherByte }
    }
    return one.count < other.count
  }

  /// Returns the string whose head is at an offset.
  func string(at offset: Int) throws(PropertyListError) -> String {
    switch try object(at: offset) {
    case .asciiString(let range): asciiString(range)
    case .utf16String(let range): utf16String(range)
    default: throw .malformed("a key of a dictionary is not a string", at: offset)
    }
  }

  func asciiString(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }

  func utf16String(_ range: Range<Int>) -> String {
    let units = stride(from: range.lowerBound, to: range.upperBound, by: 2).map {
      UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1])
    }
    return String(decoding: units, as: UTF16.self)
  }
}
