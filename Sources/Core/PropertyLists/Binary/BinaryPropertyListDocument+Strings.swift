import FoundationEssentials

extension BinaryPropertyListDocument {
  func checkASCII(_ range: Range<Int>) throws(PropertyListError) {
    for index in range where bytes[index] >= 0x80 {
      throw PropertyListError(.malformed, atByte: index, "a string marked as ASCII is not ASCII")
    }
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
      else {
        throw PropertyListError(.malformed, atByte: index, "a string is not valid UTF-16")
      }
      index += 4
    }
  }

  /// Returns the string whose head is at an offset.
  func string(at offset: Int) throws(PropertyListError) -> String {
    switch try object(at: offset) {
    case .asciiString(let range): asciiString(range)
    case .utf16String(let range): utf16String(range)
    default:
      throw PropertyListError(.malformed, atByte: offset, "a key of a dictionary is not a string")
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
