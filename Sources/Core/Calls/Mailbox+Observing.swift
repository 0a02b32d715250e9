package import Containers
import Dispatch
import Monitoring
import Synchronization
import SystemCalls
package import Values

extension Mailbox {
  /// Calls a closure once when the owner of a mailbox has ended.
  ///
  /// - Parameters:
  ///   - address: the mailbox's.
  ///   - ended: called once, on a queue of its own.
  /// - Returns: nil if it has ended already, and for a text that is no address.
  package static func observeEnd(
    of address: String, in container: SharedContainer, ended: @escaping @Sendable () -> Void
  ) throws -> ObservationToken? {
    guard MailboxDirectory.isAddress(address) else { return nil }
    let place = MailboxDirectory(root: container.root, address: address)
    let looks = FollowUpChecks()
    let end = MailboxEnd(place, looks, ended)
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
    _ place: MailboxDirectory, _ looks: FollowUpChecks, _ ended: @escaping @Sendable () -> Void
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
