import Synchronization
import WormholeSystem

/// Names that no other process and no earlier call has used: a number that is drawn at the first
/// use, a count, and, in a forked child, which has both from its parent, the process. In practice
/// they are also unique across machines and namespaces. They are used only where a clash would be a
/// reported error, never a loss.
package enum Nonce {
  private static let count = Atomic<UInt64>(0)
  private static let origin = UInt64.random(in: .min ... .max)

  package static func next() -> String { text(nextNumber()) }

  package static func text(_ number: UInt64) -> String {
    NameWriter.text(capacity: NameWriter.hexDigits) { $0.append(hex: number) }
  }

  /// Returns a nonce; all of these have the same length.
  package static func nextWithAllDigits() -> String {
    NameWriter.text(capacity: NameWriter.hexDigits) {
      $0.append(hex: nextNumber(), width: NameWriter.hexDigits)
    }
  }

  package static func nextNumber() -> UInt64 {
    let number = count.wrappingAdd(1, ordering: .relaxed).newValue
    let process = UInt64(ProcessIdentity.forkID ?? 0)
    return origin &+ (process << 32 ^ number) &* 0x9E37_79B9_7F4A_7C15
  }

  /// Whether a text may be a nonce of this package; fewer than ten digits are not worth the doubt.
  package static func isOne(_ text: some StringProtocol) -> Bool {
    (10...NameWriter.hexDigits).contains(text.utf8.count) && text.utf8.allSatisfy(isDigit)
  }

  /// Whether a byte is a lower-case hex digit, as in a nonce.
  package static func isDigit(_ byte: UInt8) -> Bool {
    (48...57).contains(byte) || (97...102).contains(byte)
  }
}
