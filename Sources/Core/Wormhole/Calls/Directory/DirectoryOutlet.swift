import Synchronization
import WormholeSystem

/// A writer into the directory of a mailbox.
final class DirectoryOutlet: MailboxWriter {
  private struct State {
    /// The order of the last entry.
    var last: UInt64 = 0
    var admission: Admission
  }

  private let place: MailboxDirectory
  private let sender = Nonce.next()
  private let state: Mutex<State>

  var path: String { place.path }
  let spansMachines = false

  init(_ place: MailboxDirectory, entries: Int, bytes: Int) {
    self.place = place
    state = Mutex(State(admission: Admission(entries: entries, bytes: bytes)))
  }

  func post(
    _ bytes: [UInt8], until deadline: ContinuousClock.Instant?
  ) throws -> MailboxOutlet.Outcome {
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
