import Dispatch
import Synchronization
package import Wormhole
package import WormholePropertyLists
import WormholeSystem
package import WormholeToolkit

/// The mailboxes of a container on etcd.
///
/// ```
/// b/<address>/o                   the owner. Hangs on the lease of its session, and so do all others
/// b/<address>/<entry>             an entry: its property list. Named as in a directory, see `EntryFile`
/// b/<address>/w/<sender>.<lane>   the order of a sender's last entry, by which it recognizes an
///                                 entry whose answer was lost, even if delivered and deleted
/// b/<address>/s                   put by each sweep that removes lanes of senders that are gone
/// ```
///
/// **Posting** is a transaction: the owner is the one that the sender knows, and the sender's last
/// entry is the previous one. So a late copy posts nothing twice. **Delivering**: the owner watches
/// its entries and deletes delivered ones. Undelivered entries end with the owner's session.
extension EtcdContainer: CallingEngine {
  package func makeMailbox(
    at address: String, _ deliver: @escaping @Sendable (PropertyListValue) -> Void
  ) throws -> any Mailbox {
    try EtcdMailbox(address, self, deliver)
  }

  package func mailboxWriter(to address: String, _ admission: Admission) -> any MailboxWriter {
    EtcdMailboxWriter(self, to: address, admission)
  }

  package func observeEnd(
    ofMailbox address: String, _ ended: @escaping @Sendable () -> Void
  ) throws -> ObservationToken? {
    let found = try read(.key(MailboxKeys(self, address).owner))
    guard let owner = found.items.first else { return nil }
    return ObservationToken(delivery: EtcdMailboxEnd(self, owner, after: found.moment, ended))
  }
}

struct MailboxKeys: Sendable {
  private let prefix: [UInt8]
  let owner: [UInt8]
  /// The mark of the last sweep.
  let sweep: [UInt8]
  /// Its entries, which begin with a hex digit. None of "o", "s" and "w" is one.
  let entries: KeyRange
  /// For messages.
  let path: String

  init(_ etcd: EtcdContainer, _ address: String) {
    prefix = etcd.key("b") + Array((address + "/").utf8)
    owner = prefix + Array("o".utf8)
    sweep = prefix + Array("s".utf8)
    entries = .range(from: prefix + Array("0".utf8), to: prefix + Array("g".utf8))
    path = etcd.location(of: prefix)
  }

  var everything: KeyRange { .prefix(prefix) }

  func entry(_ entry: EntryFile) -> [UInt8] { prefix + Array(entry.text.utf8) }

  /// - Returns: nil for any other key.
  func entry(of key: [UInt8]) -> EntryFile? { EntryFile(bytes: Array(key.dropFirst(prefix.count))) }

  var lanes: KeyRange { .prefix(prefix + Array("w/".utf8)) }

  func lane(_ lane: Int, of sender: String) -> [UInt8] {
    prefix + Array("w/\(sender).\(lane)".utf8)
  }
}

/// The watch for the end of a mailbox, which it reports once: its owner's key is put once.
private final class EtcdMailboxEnd: Cancelling, KeyFollowing {
  private let etcd: EtcdContainer
  private let owner: KeyValue
  private let ended: Mutex<(@Sendable () -> Void)?>
  private let follower: KeyFollower

  init(
    _ etcd: EtcdContainer, _ owner: KeyValue, after moment: EtcdMoment,
    _ ended: @escaping @Sendable () -> Void
  ) {
    (self.etcd, self.owner) = (etcd, owner)
    self.ended = Mutex(ended)
    follower = KeyFollower(etcd, .key(owner.key))
    follower.begin(for: self, after: moment)
  }

  func look(until deadline: ContinuousClock.Instant) throws(EtcdError) -> EtcdMoment {
    let found = try etcd.until(deadline).read(follower.range)
    if found.items.first != owner { report() }
    return found.moment
  }

  func hear(_ events: [EtcdEvent], of history: Int) { report() }

  private func report() {
    if let ended = ended.withLock({ $0.take() }) { Blocking.queue().async(execute: ended) }
  }

  func cancel() {
    ended.withLock { $0 = nil }
    follower.cancel()
  }
}
