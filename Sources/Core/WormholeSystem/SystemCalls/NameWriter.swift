/// Writes the name of an entry in place, because each change creates one.
package struct NameWriter: ~Copyable {
  private let buffer: UnsafeMutableBufferPointer<UInt8>
  private var count = 0

  /// The digits of the largest number in hex, and in decimal.
  package static let hexDigits = 16
  package static let decimalDigits = 20

  private init(_ buffer: UnsafeMutableBufferPointer<UInt8>) { self.buffer = buffer }

  /// Returns the text that a closure writes.
  ///
  /// - Parameter capacity: The largest number of bytes that it writes.
  package static func text(
    capacity: Int, _ body: (inout NameWriter) -> Void
  ) -> String {
    String(unsafeUninitializedCapacity: capacity) { buffer in
      var writer = NameWriter(buffer)
      body(&writer)
      return writer.count
    }
  }

  /// Returns texts one after another. An interpolation takes several times as long.
  package static func text(joining parts: [String]) -> String {
    text(capacity: parts.reduce(0) { $0 + $1.utf8.count }) { writer in
      for part in parts { writer.append(part) }
    }
  }

  /// Writes a number in hex, with leading zeros, over the last bytes.
  static func replaceEnd(of bytes: UnsafeMutableBufferPointer<UInt8>, hex number: UInt64) {
    precondition(bytes.count >= hexDigits, "the number has a place")
    var writer = NameWriter(UnsafeMutableBufferPointer(rebasing: bytes.suffix(hexDigits)))
    writer.append(hex: number, width: hexDigits)
  }

  package mutating func append(_ byte: UInt8) {
    precondition(count < buffer.count, "a name fits into its capacity")
    buffer[count] = byte
    count += 1
  }

  package mutating func append(_ text: String) {
    // Byte by byte takes an iterator.
    let isDone: Void? = text.utf8.withContiguousStorageIfAvailable { bytes in
      precondition(count + bytes.count <= buffer.count, "a name fits into its capacity")
      _ = buffer[count...].update(fromContentsOf: bytes)
      count += bytes.count
    }
    if isDone == nil { for byte in text.utf8 { append(byte) } }
  }

  /// - Parameter width: The least number of digits.
  package mutating func append(hex number: UInt64, width: Int = 1) {
    let digits = max(width, (67 - number.leadingZeroBitCount) / 4)
    precondition(count + digits <= buffer.count, "a name fits into its capacity")
    var rest = number
    var place = count + digits
    while place > count {
      place -= 1
      let digit = UInt8(truncatingIfNeeded: rest & 0xF)
      buffer[place] = digit &+ UInt8(ascii: digit < 10 ? "0" : "W")
      rest >>= 4
    }
    count += digits
  }

  package mutating func append(decimal number: UInt64) {
    var digits = 1
    var limit = number / 10
    while limit > 0 {
      digits += 1
      limit /= 10
    }
    precondition(count + digits <= buffer.count, "a name fits into its capacity")
    var rest = number
    for place in stride(from: count + digits - 1, through: count, by: -1) {
      buffer[place] = UInt8(ascii: "0") + UInt8(rest % 10)
      rest /= 10
    }
    count += digits
  }
}
