import Synchronization
import SystemCalls

/// Names that no other process and no earlier call has used: the process, when it started, and a
/// count. Also unique between machines and namespaces in practice, and only used where a clash
/// would be an error that is reported, never a loss.
package enum Nonce {
  private static let count = Atomic<UInt64>(0)
  private static let origin = UInt64.random(in: .min ... .max)

  package static func next() -> String {
    let number = count.wrappingAdd(1, ordering: .relaxed).newValue
    return String(origin &+ number &* 0x9E37_79B9_7F4A_7C15, radix: 16)
  }
}
