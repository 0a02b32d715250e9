import AppGroup
import Dispatch
import PropertyLists
import Synchronization

/// Copies the files that are sent under a name, one after another, in the order in which they were sent.
///
/// **First the intention, then the content.** `transfer` stores the intention to send in the sender's own
/// queue `outgoing`, and returns. The consumer of this queue, one process of that name at a time, copies
/// the content into an attachment (`AttachmentPlace`) of the peer's queue `files`, stores the entry that
/// names it, and only then acknowledges the intention. So the next process of the name repeats a transfer
/// that a killed one has begun; a stopped one is replaced.
///
/// **Not twice.** When the content is whole, and before the entry is stored, the intention is marked
/// (`QueueEntry.mark`). One that is delivered again, and is marked, was either stored, and is found in the
/// peer's queue or has left it, or its attachment still waits: then it gets another name, which the
/// sender that began it does not know, and the entry is stored now. See `FileSending`.
///
/// **Given up.** `cancel` of an intention that is taken notes its id in the value `outgoing` of this name;
/// the sender that copies looks there between pieces.
final class OutgoingFiles: Sendable {
  let container: SharedContainer
  let name: String

  private struct State {
    var isWorking = false
    /// Something was stored since the worker looked last.
    var isWanted = false
    /// The transfers of this process that are still referred to.
    var live: [String: Weak] = [:]
    var senders: [[UInt8]: Queue.Sender] = [:]
    /// When to look again for receipts that have expired.
    var expiry = ContinuousClock.now
  }

  private struct Weak { weak let process: FileProcess? }

  private let state = Mutex(State())
  /// Entered while this process copies.
  private let working = DispatchGroup()
  private static let retry: Duration = .milliseconds(500)
  /// How often a failure for lack of descriptors or space, or because of a takeover, is tried again.
  private static let attempts = 20

  init(of name: String, in container: SharedContainer) {
    self.container = container
    self.name = name
  }

  var queue: Queue { container.own.queue(PeerNames.outgoingFiles(name)) }

  /// The notes on files on their way, in the container: `cancelled`, a dictionary of those that are given
  /// up.
  var notes: Value { container.own.value(PeerNames.outgoingState(name)) }

  /// The sender of intentions, or to a peer.
  func sender(to peer: String? = nil) throws -> Queue.Sender {
    if let peer { try PeerNames.check(peer) }
    // By bytes: two names may be equal as strings. No peer's name is empty.
    let key = Array((peer ?? "").utf8)
    return try state.withLock { state in
      if let sender = state.senders[key] { return sender }
      let queue = peer.map { container.own.queue(PeerNames.files($0)) } ?? queue
      let sender = try queue.sender(name)
      state.senders[key] = sender
      return sender
    }
  }

  /// This process's knowledge of a transfer, one object for all callers.
  func process(of intention: FileIntention) -> FileProcess {
    state.withLock { state in
      if let process = state.live[intention.id]?.process { return process }
      state.live = state.live.filter { $0.value.process != nil }
      let process = FileProcess(totalBytes: intention.size)
      state.live[intention.id] = Weak(process: process)
      return process
    }
  }

  // MARK: Working

  private func unfinished() -> [FileProcess] {
    state.withLock { $0.live.values.compactMap(\.process) }.filter { !$0.isFinished }
  }

  /// Sends the files that wait, on a thread of its own, unless that is under way; also those that an
  /// earlier process of this name has left.
  func begin() {
    for process in unfinished() { process.halt = nil }
    let mustStart = state.withLock { state in
      state.isWanted = true
      defer { state.isWorking = true }
      return !state.isWorking
    }
    guard mustStart else { return }
    working.enter()
    Blocking.queue().async {
      self.work()
      self.working.leave()
    }
  }

  /// Waits until nothing is under way here any more; a process that exits then leaves nothing behind.
  func waitUntilIdle(until deadline: ContinuousClock.Instant) {
    _ = working.wait(timeout: .now() + (deadline - .now) / .seconds(1))
  }

  /// Sends the files that an earlier process of this name has left, if there are any.
  ///
  /// - Complexity: two or three listings; blocks its thread for them.
  func resume() {
    do {
      if try queue.hasEntries() { begin() }
    } catch {
      // No reason for the activation to fail: it is tried again with the next file that is sent.
      return
    }
  }

  private func work() {
    var failures = 0
    while true {
      let mustGoOn = state.withLock { state in
        // Excludes: something that is stored after the last look, and finds a worker that has just ended.
        defer { state.isWanted = false }
        state.isWorking = state.isWanted
        return state.isWanted
      }
      guard mustGoOn else { return }
      do {
        try sendAll()
        failures = 0
        expireSoon()
      } catch {
        // Replaced, or no descriptors left: unacknowledged intentions are there still. They are tried again
        // for a while, and when something else is sent or the next session of this name is active.
        failures += 1
        guard failures < Self.attempts else {
          for process in unfinished() { process.halt = error }
          continue
        }
        state.withLock { $0.isWanted = true }
        WakeLatch().block(until: .now + Self.retry)
      }
    }
  }

  // Once an hour, and on this thread of the senders' own.
  private func expireSoon() {
    let isDue = state.withLock { state in
      guard .now >= state.expiry else { return false }
      state.expiry = .now + .seconds(3_600)
      return true
    }
    guard isDue else { return }
    do {
      _ = try expire()
    } catch {
      // The files are sent. The next sender tries it again, or a sweep.
      return
    }
  }

  /// Sends the files that wait, one after another, blocking the calling thread.
  func sendAll() throws {
    // Another process of this name may be at it: it sends ours, too, unless it ends or is stopped.
    let consumer: Queue.Consumer
    do {
      consumer = try queue.consume(until: .now + .seconds(60))
    } catch let error as AppGroupError where error.code == .timedOut {
      guard try queue.hasEntries() else { return }
      throw error
    }
    defer { consumer.close() }
    while let entry = try consumer.next(until: .now) { try send(entry) }
  }

  private func send(_ entry: QueueEntry) throws {
    guard let intention = FileIntention(entry.payload) else {
      return try entry.fail("it is no transfer of a file")
    }
    let process = process(of: intention)
    let stored: QueueEntryID?
    do {
      stored = try FileSending(intention, as: entry, of: self, process: process).run()
    } catch is FileSending.GivenUp {
      try entry.cancel()
      process.finish(nil, isStored: false)
      return try note(intention.id, isGivenUp: false)
    } catch let error as FileSending.Unfinished {
      throw error.cause
    } catch let error as AppGroupError
      where [.leaseLost, .tooManyOpenFiles].contains(error.code)
    {
      throw error
    } catch {
      try entry.fail(Self.reason(error))
      return process.finish(nil, isStored: false)
    }
    process.finish(stored)
    // After a failure here, the next delivery of the intention finds the file stored.
    try entry.acknowledge()
  }

  // The sentence that its sender gets names the transfer already.
  private static func reason(_ error: any Error) -> String {
    guard let error = error as? PeerError else { return "\(error)" }
    return error.reason + (error.remedy.map { "; \($0)" } ?? "")
  }

  /// Notes that a transfer is given up, for the process that copies it, or that this is done.
  func note(_ id: String, isGivenUp: Bool) throws {
    try notes.update { notes in
      var changed = notes ?? [:]
      var cancelled = changed["cancelled"] ?? [:]
      cancelled[id] = isGivenUp ? true : nil
      // A name that tells of nothing can go.
      changed["cancelled"] = cancelled == [:] ? nil : cancelled
      notes = changed == [:] ? nil : changed
    }
  }
}
