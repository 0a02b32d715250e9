import Dispatch
import Synchronization
import SystemCalls

/// Tells once when the owner of a mailbox has ended, until it is forgotten.
package final class MailboxObservation: Sendable {
  private let watch: Watch
  private let looks: SecondLooks

  /// - Parameters:
  ///   - address: the mailbox's.
  ///   - ended: called once, on a queue of its own.
  /// - Returns: nil when it has ended already, or for what is no address.
  package init?(
    in container: SharedContainer, of address: String, ended: @escaping @Sendable () -> Void
  ) throws {
    guard MailboxDirectory.isAddress(address) else { return nil }
    let place = MailboxDirectory(root: container.root, address: address)
    let end = End(place, ended)
    let looks = SecondLooks { end.lookSoon() }
    end.looks.withLock { $0.looks = looks }
    do {
      let owner = try FileDescriptor.openBeneath(
        place.relativePath + "/" + MailboxDirectory.owner,
        at: place.root.handle().descriptor.rawValue, [.readOnly, .nonBlocking])
      // Its removal is a change of how many names it has.
      watch = ChangeMonitor.shared.watchOpen(
        owner, [.closedAfterWriting, .attributes, .selfDeleted]
      ) { _ in looks.begin() }
    } catch let error as Errno where error == .noSuchFile {
      return nil
    }
    self.looks = looks
    // Watch first, and look then.
    if try place.isDead() { return nil }
  }

  deinit {
    looks.end()
    watch.cancel()
  }

  private final class End: Sendable {
    struct Looks { weak var looks: SecondLooks? }

    private let place: MailboxDirectory
    private let ended: @Sendable () -> Void
    private let isOver = Mutex(false)
    let looks = Mutex(Looks())
    private let queue = Blocking.queue()

    init(_ place: MailboxDirectory, _ ended: @escaping @Sendable () -> Void) {
      self.place = place
      self.ended = ended
    }

    // Neither on the monitor's thread nor on that of the timers, which must not wait for files.
    func lookSoon() { queue.async { self.look() } }

    private func look() {
      do {
        guard try place.isDead() else { return }
      } catch {
        // For want of descriptors, perhaps: the next look tells.
        return
      }
      let isFirst = isOver.withLock { isOver in
        defer { isOver = true }
        return !isOver
      }
      guard isFirst else { return }
      looks.withLock { $0.looks }?.end()
      ended()
    }
  }
}
