import Dispatch
import Synchronization
import WormholePropertyLists
import WormholeSystem

/// The mailboxes of a directory.
struct DirectoryMailboxes: MailboxStore {
  let root: ContainerRoot

  private func place(_ address: String) -> MailboxDirectory {
    MailboxDirectory(root: root, address: address)
  }

  func make(
    _ address: String, deliver: @escaping @Sendable (PropertyListValue) -> Void
  ) throws -> any MailboxHold {
    try DirectoryMailbox(place(address), deliver: deliver)
  }

  func outlet(to address: String, entries: Int, bytes: Int) -> any MailboxWriter {
    DirectoryOutlet(place(address), entries: entries, bytes: bytes)
  }

  func sweep() throws {
    try reporting("sweep the mailboxes", path: root.path + "/" + MailboxDirectory.kind) {
      for mailbox in try MailboxDirectory.dead(in: root) {
        try MailboxDirectory.sweep(mailbox, in: root)
      }
    }
  }

  func observeEnd(
    of address: String, ended: @escaping @Sendable () -> Void
  ) throws -> ObservationToken? {
    let place = place(address)
    let looks = FollowUpChecks()
    let end = MailboxEnd(place, looks: looks, ended)
    looks.use { end.lookSoon() }
    let watch: Watch
    do {
      let owner = try FileDescriptor.openBeneath(
        place.relativePath + "/" + MailboxDirectory.owner,
        at: place.root.handle().descriptor.rawValue, [.readOnly, .nonBlocking])
      // Unlinking changes the link count, which IN_ATTRIB reports.
      watch = ChangeMonitor.shared.watchOpen(
        owner, [.closedAfterWriting, .attributes, .selfDeleted]
      ) { _ in looks.begin() }
    } catch let error as Errno where error == .noSuchFile {
      return nil
    }
    let observation = ObservationToken(watch: watch, delivery: looks)
    // First the watch, then the check.
    return try place.isDead() ? nil : observation
  }
}

/// Checks whether the owner of a mailbox has ended, and reports it once.
private final class MailboxEnd: Sendable {
  private let place: MailboxDirectory
  private let ended: @Sendable () -> Void
  private let isOver = Mutex(false)
  private weak let looks: FollowUpChecks?
  private let queue = Blocking.queue()

  init(
    _ place: MailboxDirectory, looks: FollowUpChecks, _ ended: @escaping @Sendable () -> Void
  ) {
    self.place = place
    self.looks = looks
    self.ended = ended
  }

  // Neither on the monitor's thread nor on that of the timers, because those must not wait for files.
  func lookSoon() { queue.async { self.look() } }

  private func look() {
    // After an error, a lack of descriptors for example, the next check reports it.
    guard (try? place.isDead()) == true else { return }
    let isFirst = isOver.withLock { isOver in
      defer { isOver = true }
      return !isOver
    }
    guard isFirst else { return }
    looks?.cancel()
    ended()
  }
}
