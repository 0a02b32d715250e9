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
  ) throws -> any Mailbox {
    try DirectoryMailbox(place(address), deliver: deliver)
  }

  func outlet(to address: String, entries: Int, bytes: Int) -> any MailboxWriter {
    DirectoryMailboxWriter(place(address), entries: entries, bytes: bytes)
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
    let queue = Blocking.queue()
    let looks = FollowUpChecks()
    // Neither on the monitor's thread nor on that of the timers, because those must not wait for
    // files.
    looks.use { [weak looks] in
      queue.async { [looks] in
        // After an error, a lack of descriptors for example, the next check reports it.
        guard (try? place.isDead()) == true, looks?.end() == true else { return }
        ended()
      }
    }
    // Unlinking changes the link count, which IN_ATTRIB reports.
    guard let owner = try place.openOwner() else { return nil }
    let watch = ChangeMonitor.shared.watchOpen(
      owner, [.closedAfterWriting, .attributes, .selfDeleted]
    ) { _ in looks.begin() }
    let observation = ObservationToken(watch: watch, delivery: looks)
    // First the watch, then the check.
    return try place.isDead() ? nil : observation
  }
}

/// A writer into the directory of a mailbox.
private final class DirectoryMailboxWriter: MailboxWriter {
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
