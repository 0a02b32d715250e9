import Dispatch
import Synchronization
import Wormhole
import WormholePropertyLists
import WormholeSystem

/// The mailboxes of a container on etcd.
///
/// ```
/// b/<address>/o                   the owner. Hangs on the lease of its session, and so do all others
/// b/<address>/<entry>             an entry: its property list. Named as in a directory, see `EntryFile`
/// b/<address>/w/<sender>.<lane>   the order of the last entry of a sender: by it the sender recognises an
///                                 entry whose answer was lost, even if it was delivered and deleted
/// b/<address>/s                   put by each sweep that removes lanes of senders that are gone
/// ```
///
/// **Posting** is a transaction: the owner is the one that the sender knows, and the sender's last entry is
/// the one before. So a late copy of it posts nothing twice. **Delivering**: the owner watches its
/// entries and deletes delivered ones. Undelivered entries end with the owner's session.
struct EtcdMailboxes: MailboxStore {
  let etcd: EtcdContainer
  /// How long the lane of a sender stays at least after its last post.
  var laneAge: Duration = .seconds(600)

  func make(
    _ address: String, deliver: @escaping @Sendable (PropertyListValue) -> Void
  ) throws -> any Mailbox {
    let keys = MailboxKeys(etcd, address)
    let mailbox = EtcdMailbox(address, etcd, keys, laneAge: laneAge, deliver)
    try reporting("make a mailbox", path: keys.path) { try mailbox.begin() }
    return mailbox
  }

  func outlet(to address: String, entries: Int, bytes: Int) -> any MailboxWriter {
    EtcdMailboxWriter(etcd, MailboxKeys(etcd, address), entries: entries, bytes: bytes)
  }

  func observeEnd(
    of address: String, ended: @escaping @Sendable () -> Void
  ) throws -> ObservationToken? {
    let end = EtcdMailboxEnd(MailboxKeys(etcd, address).owner, ended)
    return try end.begin(etcd).map { ObservationToken(watch: $0, delivery: end) }
  }

  // The end of a session has removed all of its keys.
  func sweep() throws {}
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

/// The watch for the end of a mailbox's owner, which it reports once.
private final class EtcdMailboxEnd: Cancelling {
  private struct State {
    /// The owner's key; nil before the first look.
    var owner: KeyValue?
    var isOver = false
  }

  private let key: [UInt8]
  private let ended: @Sendable () -> Void
  private let state = Mutex(State())

  init(_ key: [UInt8], _ ended: @escaping @Sendable () -> Void) {
    self.key = key
    self.ended = ended
  }

  /// - Returns: nil if it has ended already.
  func begin(_ etcd: EtcdContainer) throws(EtcdError) -> EtcdMirror? {
    let mirror = try EtcdMirror(etcd, range: .key(key)) { [weak self] in self?.look(at: $0) }
    guard let owner = mirror.item(key) else { return nil }
    state.withLock { $0.owner = owner }
    // Changes between the first look and now.
    look(at: mirror)
    return mirror
  }

  // On the thread of the watches.
  private func look(at mirror: EtcdMirror) {
    let isNews = state.withLock { state in
      guard !state.isOver, let owner = state.owner, mirror.item(key) != owner else { return false }
      state.isOver = true
      return true
    }
    if isNews { Blocking.queue().async(execute: ended) }
  }

  func cancel() { state.withLock { $0.isOver = true } }
}
