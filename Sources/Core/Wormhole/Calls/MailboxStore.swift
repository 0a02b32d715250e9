import WormholePropertyLists

/// The mailboxes of a container: the part that depends on its engine.
package protocol MailboxStore: Sendable {
  /// Creates a mailbox; see `Mailbox`.
  func make(
    _ address: String, deliver: @escaping @Sendable (PropertyListValue) -> Void
  ) throws -> any MailboxHold

  /// Returns a writer into a mailbox; see `MailboxOutlet`.
  ///
  /// - Parameters:
  ///   - entries: How many entries may wait before a post is refused.
  ///   - bytes: How many bytes they may have together.
  func outlet(to address: String, entries: Int, bytes: Int) -> any MailboxWriter

  /// Calls a closure once when the owner of a mailbox has ended; see `Mailbox.observeEnd`.
  func observeEnd(
    of address: String, ended: @escaping @Sendable () -> Void
  ) throws -> ObservationToken?

  /// Removes what ended processes have left behind.
  func sweep() throws
}

/// A mailbox of this process, which ends when it is released at the latest.
package protocol MailboxHold: AnyObject, Sendable {
  /// Ends it; further calls have no effect.
  ///
  /// - Parameter asDeath: Whether other processes should find what a dead process leaves behind.
  func end(asDeath: Bool)

  /// Waits until everything posted before this call is delivered; blocks.
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

  /// Removes the mailboxes of processes that have ended.
  ///
  /// On etcd there is nothing to remove.
  ///
  /// - Complexity: one listing of the directory of mailboxes, and open, flock and close for each.
  package func sweepMailboxes() throws { try mailboxes.sweep() }
}
