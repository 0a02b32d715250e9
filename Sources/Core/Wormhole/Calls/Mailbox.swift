package import WormholePropertyLists
import WormholeSystem

/// A queue of one process that ends with the process: requests and replies between living
/// processes. Thread-safe.
///
/// Each entry is delivered at most once, and the entries of one sender in their order.
package final class Mailbox: Sendable {
  /// The address that others post to: hex digits and "-".
  package let address: String
  /// The mailbox in its container.
  let hold: any MailboxHold

  /// The size of the largest entry.
  package static let maximumBytes = 16 << 20

  /// Creates a mailbox; it ends with `close()`, when it is released, or with the process.
  ///
  /// - Parameter deliver: called with each entry, one at a time, possibly on the monitor's thread,
  ///   so it must be short.
  package init(
    in container: SharedContainer, deliver: @escaping @Sendable (PropertyListValue) -> Void
  ) throws {
    // With the process number, because a forked child continues its parent's nonces.
    address = String(ProcessIdentity.current.processID, radix: 16) + "-" + Nonce.next()
    hold = try container.mailboxes.make(address, deliver: deliver)
  }

  /// Closes the mailbox: undelivered entries are lost, and posts are refused. Further calls have no
  /// effect.
  package func close() { hold.end(asDeath: false) }

  /// Closes the mailbox as the death of its process would: its directory remains, without its lock.
  /// On etcd nothing remains.
  package func abandon() { hold.end(asDeath: true) }

  /// Waits until everything posted before this call is delivered; blocks.
  ///
  /// For callers that learn in another way that nothing more will arrive: that news may be faster.
  package func catchUp() { hold.catchUp() }

  /// Calls a closure once when the owner of a mailbox has ended.
  ///
  /// - Parameters:
  ///   - address: the mailbox's.
  ///   - ended: called once, on a queue of its own.
  /// - Returns: nil if it has ended already, or if the text cannot be an address.
  package static func observeEnd(
    of address: String, in container: SharedContainer, ended: @escaping @Sendable () -> Void
  ) throws -> ObservationToken? {
    guard isAddress(address) else { return nil }
    return try container.mailboxes.observeEnd(of: address, ended: ended)
  }

  /// Returns whether a text is an address; other programs may have written it.
  static func isAddress(_ text: String) -> Bool {
    (1...64).contains(text.utf8.count)
      && text.utf8.allSatisfy { Nonce.isDigit($0) || $0 == UInt8(ascii: "-") }
  }
}
