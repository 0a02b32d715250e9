package import WormholePropertyLists
import WormholeSystem

/// The mailboxes of a container: the part that depends on its engine.
package protocol MailboxStore: Sendable {
  /// Creates a mailbox; see `SharedContainer.makeMailbox`.
  func make(
    _ address: String, deliver: @escaping @Sendable (PropertyListValue) -> Void
  ) throws -> any Mailbox

  /// Returns a writer into a mailbox; see `MailboxOutlet`.
  ///
  /// - Parameters:
  ///   - entries: How many entries may wait before a post is refused.
  ///   - bytes: How many bytes they may have together.
  func outlet(to address: String, entries: Int, bytes: Int) -> any MailboxWriter

  /// Calls a closure once when the owner of a mailbox has ended; see `observeEnd(ofMailbox:)`.
  func observeEnd(
    of address: String, ended: @escaping @Sendable () -> Void
  ) throws -> ObservationToken?

  /// Removes what ended processes have left behind.
  func sweep() throws
}

/// A queue of one process that ends with the process, or when it is released: requests and replies
/// between living processes. Thread-safe.
///
/// Each entry is delivered at most once, and the entries of one sender in their order.
package protocol Mailbox: AnyObject, Sendable {
  /// The address that others post to: hex digits and "-".
  var address: String { get }

  /// Closes the mailbox: undelivered entries are lost, and posts are refused. Further calls have no
  /// effect.
  ///
  /// - Parameter asDeath: Whether other processes should find what a dead process leaves behind: its
  ///   directory remains, without its lock. On etcd nothing remains.
  func end(asDeath: Bool)

  /// Waits until everything posted before this call is delivered; blocks.
  ///
  /// For callers that learn in another way that nothing more will arrive: that news may be faster.
  func catchUp()

  /// Looks at all waiting entries, as after lost news.
  func lookAgain()
}

/// A writer into one mailbox, which keeps the order of posts made one after another.
package protocol MailboxWriter: Sendable {
  /// The place of the mailbox, for messages.
  var path: String { get }
  /// Whether its owner may be on another machine, with another clock.
  var spansMachines: Bool { get }

  /// Posts an entry; see `MailboxOutlet.post`.
  func post(
    _ bytes: [UInt8], until deadline: ContinuousClock.Instant?
  ) throws -> MailboxOutlet.Outcome
}

extension SharedContainer {
  var mailboxes: any MailboxStore { engine.mailboxes }

  /// Creates a mailbox; it ends with `end`, when it is released, or with the process.
  ///
  /// - Parameter deliver: called with each entry, one at a time, possibly on the monitor's thread,
  ///   so it must be short.
  package func makeMailbox(
    _ deliver: @escaping @Sendable (PropertyListValue) -> Void
  ) throws -> any Mailbox {
    // With the process number, because a forked child continues its parent's nonces.
    let process = String(ProcessIdentity.current.processID, radix: 16)
    return try mailboxes.make(process + "-" + Nonce.next(), deliver: deliver)
  }

  /// Calls a closure once when the owner of a mailbox has ended.
  ///
  /// - Parameter ended: called once, on a queue of its own.
  /// - Returns: nil if it has ended already, or if the text cannot be an address.
  package func observeEnd(
    ofMailbox address: String, _ ended: @escaping @Sendable () -> Void
  ) throws -> ObservationToken? {
    guard MailboxOutlet.isAddress(address) else { return nil }
    return try mailboxes.observeEnd(of: address, ended: ended)
  }

  /// Removes the mailboxes of processes that have ended.
  ///
  /// On etcd there is nothing to remove.
  ///
  /// - Complexity: one listing of the directory of mailboxes, and open, flock and close for each.
  package func sweepMailboxes() throws { try mailboxes.sweep() }
}
