import Dispatch
package import Wormhole
package import WormholePropertyLists
import WormholeSystem

/// An engine whose processes can call each other, through mailboxes.
package protocol CallingEngine: ContainerEngine {
  /// Creates a mailbox; see `SharedContainer.makeMailbox`.
  func makeMailbox(
    at address: String, _ deliver: @escaping @Sendable (PropertyListValue) -> Void
  ) throws -> any Mailbox

  /// Returns a writer into a mailbox.
  ///
  /// - Parameter admission: The limit beyond which a post is refused.
  func mailboxWriter(to address: String, _ admission: Admission) -> any MailboxWriter

  /// Calls a closure once when the owner of a mailbox has ended.
  ///
  /// - Parameter ended: called once, on a queue of its own.
  /// - Returns: nil if it has ended already.
  func observeEnd(
    ofMailbox address: String, _ ended: @escaping @Sendable () -> Void
  ) throws -> ObservationToken?
}

/// A queue of one process that ends with the process, or when it is released: requests and replies
/// between living processes. Thread-safe.
///
/// Each entry is delivered at most once, and the entries of one sender in their order.
package protocol Mailbox: AnyObject, Sendable {
  /// The address that others post to: hex digits and "-".
  var address: String { get }

  /// Closes the mailbox: undelivered entries are lost, posts are refused. Further calls do nothing.
  ///
  /// - Parameter asDeath: Whether other processes should find what a dead process leaves behind: its
  ///   directory remains, without its lock. On etcd nothing remains.
  func end(asDeath: Bool)

  /// Looks at all waiting entries, and waits until everything posted before this call is delivered;
  /// blocks.
  ///
  /// For callers that learn in another way that nothing more will arrive: that news may be faster.
  func catchUp()

  /// Blocks the calling thread until a latch is raised or a deadline has passed, and delivers what
  /// comes meanwhile, if it can: then this thread alone is woken for its answer.
  func lead(for latch: WakeLatch, until deadline: ContinuousClock.Instant)
}

extension Mailbox {
  package func lead(for latch: WakeLatch, until deadline: ContinuousClock.Instant) {
    latch.block(until: deadline)
  }
}

/// A writer into one mailbox, whose owner is the other end of calls. It keeps the order of posts made
/// one after another. Thread-safe.
package protocol MailboxWriter: AnyObject, Located {
  /// Posts an entry; see `post(_:until:)` with a value.
  func post(_ bytes: [UInt8], until deadline: ContinuousClock.Instant?) throws -> PostOutcome
}

package enum PostOutcome: Sendable {
  case posted
  /// The mailbox's owner has ended, or has closed it.
  case gone
  case full
}

extension MailboxWriter {
  /// Posts a message that the other end does not depend on.
  func postLater(_ message: PropertyListValue) {
    // On a queue, because this may be a task, or the monitor's thread. After an error (a full disk,
    // for example) the other end times out, or learns that this one has ended.
    Blocking.queue().async { [self] in _ = try? post(message) }
  }

  /// Posts an entry: it is in the mailbox when this returns `posted`.
  ///
  /// - Parameter deadline: The caller's deadline; nil for a caller without one.
  /// - Throws: `WormholeError`: `unsupportedValue` for a value outside property lists or too
  ///   large, or errors of the file system; nothing is posted then. On etcd `tooLarge` beyond 1 MiB,
  ///   and `outcomeUnknown` if an answer was lost and the mailbox ended, or no other answer came in
  ///   10 seconds, or by the deadline.
  /// - Complexity: connect and send for a small one; otherwise create, flock, write, rename, close,
  ///   and a listing after each sixteenth of the limits. On etcd one transaction.
  package func post(
    _ value: PropertyListValue, until deadline: ContinuousClock.Instant? = nil
  ) throws -> PostOutcome {
    let action = "post into a mailbox"
    let bytes: [UInt8]
    do throws(PropertyListError) {
      bytes = try value.binaryBytes(limits: .standard)
      guard bytes.count <= MailboxAddress.maximumEntryBytes else {
        throw PropertyListError(
          .tooManyBytes, at: .keyPath(""),
          "it has \(bytes.count) bytes, and at most \(MailboxAddress.maximumEntryBytes) are taken")
      }
    } catch {
      throw WormholeError.unacceptable(error, action, path: path)
    }
    return try reporting(action, path: path) { try post(bytes, until: deadline) }
  }
}

/// What every mailbox has.
enum MailboxAddress {
  static let maximumEntryBytes = 16 << 20

  /// Returns whether a text is an address; other programs may have written it.
  static func isOne(_ text: String) -> Bool {
    (1...64).contains(text.utf8.count)
      && text.utf8.allSatisfy { Nonce.isDigit($0) || $0 == UInt8(ascii: "-") }
  }
}

extension SharedContainer {
  package var callingEngine: any CallingEngine { engine(as: (any CallingEngine).self) }

  /// Creates a mailbox; it ends with `end`, when it is released, or with the process.
  ///
  /// - Parameter deliver: called with each entry, one at a time, possibly on the monitor's thread,
  ///   so it must be short.
  package func makeMailbox(
    _ deliver: @escaping @Sendable (PropertyListValue) -> Void
  ) throws -> any Mailbox {
    // With the process number, because a forked child continues its parent's nonces.
    let process = String(ProcessIdentity.current.processID, radix: 16)
    return try callingEngine.makeMailbox(at: process + "-" + Nonce.next(), deliver)
  }

  /// Returns a writer into a mailbox; nil if the text cannot be an address.
  ///
  /// - Parameters:
  ///   - entries: how many entries may wait in the mailbox before a post is refused.
  ///   - bytes: how many bytes they may have together.
  package func mailboxWriter(
    to address: String, entries: Int = 10_000, bytes: Int = 256 << 20
  ) -> (any MailboxWriter)? {
    guard MailboxAddress.isOne(address) else { return nil }
    return callingEngine.mailboxWriter(
      to: address, Admission(entries: entries, bytes: bytes))
  }
}
