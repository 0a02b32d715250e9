package import Containers
import Dispatch
import Entries
import Monitoring
package import PropertyLists
import Synchronization
import SystemCalls
package import Values

/// The other end of calls, a process that calls or is called: a writer into its mailbox, which keeps
/// the order of posts made one after another. Thread-safe.
package final class MailboxOutlet: Sendable {
  /// How a post ended.
  package enum Outcome: Sendable {
    case posted
    /// The mailbox's owner has ended, or has closed it.
    case gone
    /// The mailbox has reached its limits.
    case full
  }

  private struct State {
    /// The order of the last entry.
    var last: UInt64 = 0
    var admission: Admission
  }

  private let place: MailboxDirectory
  var path: String { place.path }
  /// The mailbox's.
  package var address: String { place.address }
  private let sender = Nonce.next()
  private let state: Mutex<State>
  private let end: ObservationToken?
  /// Whether somebody is notified of the end of the mailbox's owner.
  var isWatched: Bool { end != nil }

  /// - Parameters:
  ///   - entries: how many entries may wait in the mailbox before a post is refused.
  ///   - bytes: how many bytes they may have together.
  ///   - end: the observation of the owner's end, if somebody is notified of it.
  /// - Returns: nil for a text that is no mailbox's address.
  package init?(
    in container: SharedContainer, to address: String, entries: Int = 10_000,
    bytes: Int = 256 << 20, notifying end: ObservationToken? = nil
  ) {
    guard MailboxDirectory.isAddress(address) else { return nil }
    place = MailboxDirectory(root: container.root, address: address)
    state = Mutex(State(admission: Admission(entries: entries, bytes: bytes)))
    self.end = end
  }

  func post(_ message: CallMessage) throws -> Outcome { try post(message.propertyList) }

  /// Posts a message that the other end can do without.
  func postLater(_ message: CallMessage) {
    // On a queue, because this may be a task, or the monitor's thread. After an error (a full disk,
    // for example) the other end times out, or learns that this one has ended.
    Blocking.queue().async { [self] in _ = try? post(message) }
  }

  /// Posts an entry: it is in the mailbox when this returns `posted`.
  ///
  /// - Throws: `AppGroupError`: `unsupportedValue` for a value that is no property list or too
  ///   large, or errors of the file system; nothing is posted then.
  /// - Complexity: create, flock, write, rename, close; a listing after each sixteenth of the
  ///   limits.
  package func post(_ value: PropertyListValue) throws -> Outcome {
    let action = "post into a mailbox"
    let bytes: [UInt8]
    do throws(PropertyListError) {
      bytes = try value.binaryBytes(limits: .standard)
      guard bytes.count <= Mailbox.maximumBytes else {
        throw PropertyListError(
          .tooManyBytes, at: .keyPath(""),
          "it has \(bytes.count) bytes, and at most \(Mailbox.maximumBytes) are taken")
      }
    } catch {
      throw AppGroupError.unacceptable(error, action, path: place.path)
    }
    return try reporting(action, path: place.path) {
      do {
        let handle = try place.root.handle()
        return try withExtendedLifetime(handle) {
          let container = handle.descriptor.rawValue
          guard try admits(bytes.count, at: container) else { return .full }
          try store(bytes, at: container)
          return .posted
        }
      } catch let error as Errno where error == .noSuchFile {
        return .gone
      }
    }
  }

  private func store(_ bytes: [UInt8], at container: Int32) throws(Errno) {
    let staging = place.relativePath + "/" + MailboxDirectory.stagedPrefix
    try place.root.store(bytes, staging: staging, at: container) { staged, _ throws(Errno) in
      let entry = state.withLock { state in
        state.last = EntryFile.order(after: state.last, now: bootTimeNanoseconds())
        return EntryFile(order: state.last, sender: sender, count: 1, bytes: bytes.count)
      }
      try rename(staged, at: container, to: place.relativePath + "/" + entry.text, at: container)
      state.withLock { $0.admission.noteStored(entry) }
    }
  }

  private func admits(_ size: Int, at container: Int32) throws(Errno) -> Bool {
    if state.withLock({ $0.admission.allows(1, size) }) { return true }
    let waiting = try SharedContainer.entries(place.relativePath, at: container)?
      .compactMap { EntryFile(bytes: $0.name.bytes) }
    return state.withLock { $0.admission.note(waiting: waiting ?? [], for: 1, size) }
  }
}
