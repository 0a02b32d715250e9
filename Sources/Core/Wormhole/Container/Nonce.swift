import Synchronization
import WormholeSystem

/// Names that no other process and no earlier call has used: the process, its start time, and a
/// count. In practice they are also unique across machines and namespaces. They are used only where
/// a clash would be a reported error, never a loss.
package enum Nonce {
  private static let count = Atomic<UInt64>(0)
  private static let origin = UInt64.random(in: .min ... .max)

  package static func next() -> String {
    let number = nextNumber()
    return String(unsafeUninitializedCapacity: mostDigits) { write(number, to: $0, at: 0) }
  }

  /// Names of one length.
  static func nextWithAllDigits() -> String {
    let name = next()
    return String(repeating: "0", count: mostDigits - name.utf8.count) + name
  }

  /// The digits of the largest number.
  static let mostDigits = 16

  /// Writes a number in hex; such a name is made for each change.
  ///
  /// - Returns: The end of its digits.
  static func write(
    _ number: UInt64, to buffer: UnsafeMutableBufferPointer<UInt8>, at start: Int
  ) -> Int {
    let end = start + max(1, (67 - number.leadingZeroBitCount) / 4)
    var rest = number
    for place in stride(from: end - 1, through: start, by: -1) {
      let digit = UInt8(truncatingIfNeeded: rest & 0xF)
      buffer[place] = digit + UInt8(ascii: digit < 10 ? "0" : "W")
      rest >>= 4
    }
    return end
  }

  static func nextNumber() -> UInt64 {
    let number = count.wrappingAdd(1, ordering: .relaxed).newValue
    return origin &+ number &* 0x9E37_79B9_7F4A_7C15
  }

  /// Whether a byte is a lower-case hex digit, as in a nonce.
  package static func isDigit(_ byte: UInt8) -> Bool {
    (48...57).contains(byte) || (97...102).contains(byte)
  }
}
