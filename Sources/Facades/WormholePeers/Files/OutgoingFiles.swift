import Dispatch
import Synchronization
package import Wormhole
package import WormholeInspection
import WormholePropertyLists
import WormholeSystem

/// Copies the files sent under a name, one after another, in the order of sending.
///
/// **First the intention, then the content.** `transfer` stores the intention to send in the
/// sender's own queue `outgoing`, and returns. This queue's consumer, one process of that name at a
/// time, copies the content into an attachment (`AttachmentLayout`) of the peer's queue `files`,
/// stores the entry that names it, and only then acknowledges the intention. So the name's next
/// process repeats a transfer that a killed process has begun; a stopped process is replaced.
///
/// **Not twice.** An intention is marked before its entry is stored: see `FileSending`.
///
/// **Given up.** `cancel` of an intention that is taken notes its id in the value `outgoing` of
/// this name; the sender that copies reads the value between pieces.
final class OutgoingFiles: Sendable {
  private struct State {
    var isWorking = false
    /// Something was stored since the worker last looked.
    var isWanted = false
    /// The transfers of this process that are still referred to.
    var live: [String: Weak] = [:]
    /// When to look again for receipts that have expired.
    var expiry = ContinuousClock.now
  }

  private struct Weak { weak let transfer: PeerFileTransfer? }

  let outbox: Outbox
  private let state = Mutex(State())
  /// Entered while this process copies.
  private let working = DispatchGroup()
  private static let retry: Duration = .milliseconds(500)
  /// Failures of a step that say nothing about the file, so it is tried again. A container on etcd
  /// may be unreachable for a while.
  private static let mayPass: Set<WormholeError.Code> = [
    .leaseLost, .tooManyOpenFiles, .clusterUnreachable, .outcomeUnknown,
  ]
  /// How often a failure that may pass is tried again.
  private static let attempts = 20

  init(_ outbox: Outbox) { self.outbox = outbox }

  var container: SharedContainer { outbox.container }
  var name: String { outbox.name }

  private var queue: PlainQueue { container.own.queue(PeerNames.outgoingFiles(name)) }

  /// The notes on files under way, in the container: `cancelled`, a dictionary of the transfers
  /// that were given up.
  var notes: PlainValue { container.own.value(PeerNames.outgoingState(name)) }

  func intentions() throws -> PlainSender { try outbox.sender(to: name, PeerNames.outgoingFiles) }

  func sender(to peer: String) throws -> PlainSender {
    try outbox.sender(to: peer, PeerNames.files)
  }

  /// The transfer of an intention, one object for all callers of this process.
  func transfer(of intention: FileIntention, as entry: QueueEntryID) -> PeerFileTransfer {
    state.withLock { state in
      if let known = state.live[intention.id]?.transfer, known.entry == entry { return known }
      state.live = state.live.filter { $0.value.transfer != nil }
      let transfer = PeerFileTransfer(intention, as: entry, of: self)
      state.live[intention.id] = Weak(transfer: transfer)
      return transfer
    }
  }

  // MARK: Working

  // By this process, until `begin()`.
  private func halt(_ error: (any Error)?) {
    for transfer in state.withLock({ $0.live.values.compactMap(\.transfer) }) {
      transfer.state.withLock { if !$0.isFinished { $0.halt = error } }
    }
  }

  /// Sends the waiting files, on its own thread, unless that is under way; includes files left by
  /// an earlier process of this name.
  func begin() {
    halt(nil)
    let mustStart = state.withLock { state in
      state.isWanted = true
      defer { state.isWorking = true }
      return !state.isWorking
    }
    guard mustStart else { return }
    Blocking.queue().async(group: working) { self.work() }
    expireSoon()
  }

  /// Waits until nothing is under way here; a process that then exits leaves nothing behind.
  func waitUntilIdle(until deadline: ContinuousClock.Instant) {
    _ = working.wait(timeout: .now() + (deadline - .now) / .seconds(1))
  }

  /// Sends the files that an earlier process of this name left, if there are any.
  ///
  /// - Complexity: two or three listings; blocks its thread for them.
  func resume() {
    // An error does not make the activation fail: it is tried again with the next file.
    if (try? queue.hasEntries()) == true { begin() }
  }

  /// Tries again after a minute, without a thread until then.
  private func resumeLater() {
    Blocking.queue().after(.seconds(60)) { [weak self] in
      guard let self else { return }
      do {
        if try queue.hasEntries() { begin() }
      } catch {
        resumeLater()
      }
    }
  }

  private func work() {
    var failures = 0
    while true {
      let mustGoOn = state.withLock { state in
        // Excludes: a file stored after the last look, which finds a worker that has just ended.
        defer { state.isWanted = false }
        state.isWorking = state.isWanted
        return state.isWanted
      }
      guard mustGoOn else { return }
      do {
        try sendAll()
        failures = 0
      } catch {
        // Replaced, or out of descriptors: unacknowledged intentions remain. They are tried again
        // for a while, then seldom, and when something else is sent or the next session of this
        // name is active.
        failures += 1
        guard failures < Self.attempts else {
          halt(error)
          resumeLater()
          continue
        }
        state.withLock { $0.isWanted = true }
        WakeLatch().block(until: .now + Self.retry)
      }
    }
  }

  // Once an hour, on its own thread, so that no file waits for it.
  private func expireSoon() {
    let isDue = state.withLock { state in
      guard .now >= state.expiry else { return false }
      state.expiry = .now + .seconds(3_600)
      return true
    }
    guard isDue else { return }
    // If it fails, the next sender or a sweep tries it again.
    Blocking.queue().async(group: working) { _ = try? self.expire() }
  }

  /// Sends the waiting files, one after another, blocking the calling thread.
  func sendAll() throws {
    // Another process of this name may also send our files, unless it ends or is stopped.
    let consumer: PlainConsumer
    do {
      consumer = try queue.join(ConsumerTerms(joinsAgain: false), until: .now + .seconds(60))
    } catch let error as WormholeError where error.code == .timedOut {
      guard try queue.hasEntries() else { return }
      throw error
    }
    defer { consumer.close() }
    while let entry = try consumer.next(until: .now) { try send(entry) }
  }

  private func send(_ entry: PlainEntry) throws {
    guard let intention = FileIntention(entry.payload) else {
      return try entry.fail("it is not a file transfer")
    }
    let transfer = transfer(of: intention, as: entry.id)
    let stored: QueueEntryID?
    do {
      stored = try FileSending(transfer, as: entry).run()
    } catch is FileSending.GivenUp {
      try entry.cancel()
      transfer.finish(nil, isStored: false)
      return try note(intention.id, isGivenUp: false)
    } catch let error as FileSending.Unfinished {
      throw error.cause
    } catch let error as WormholeError where Self.mayPass.contains(error.code) {
      throw error
    } catch {
      try entry.fail(Self.reason(error))
      return transfer.finish(nil, isStored: false)
    }
    transfer.finish(stored)
    // After a failure here, the intention's next delivery finds the file stored.
    try entry.acknowledge()
  }

  // The sender's sentence already names the transfer, as an error between peers does.
  private static func reason(_ error: any Error) -> String {
    guard let error = error as? WormholeError, error.isBetweenPeers else { return "\(error)" }
    return error.reason + (error.remedy.map { "; \($0)" } ?? "")
  }

  /// Notes, for the process that copies a transfer, that it is given up; or that giving up is done.
  func note(_ id: String, isGivenUp: Bool) throws {
    try notes.update { notes in
      var changed = notes ?? [:]
      var cancelled = changed["cancelled"] ?? [:]
      cancelled[id] = isGivenUp ? true : nil
      // A name without a note can go.
      changed["cancelled"] = cancelled == [:] ? nil : cancelled
      notes = changed == [:] ? nil : changed
    }
  }
}

/// Receipts of files are removed automatically if they have a term.
///
/// A transfer has two: the intention's receipt, by which it is listed, and the file's, in its
/// peer's queue. The second has the term and is removed a day after the file was processed, by a
/// later send or by a sweep. The intention's receipt must not expire by age, because the file may
/// wait for weeks after it was copied. It is removed when the peer's queue has nothing of it.
extension OutgoingFiles {
  /// Removes the receipts of files sent with a term by this name and processed a day ago.
  ///
  /// - Returns: the ids of the transfers.
  /// - Complexity: reads every receipt of this name, and all at the peers of expired ones.
  func expire() throws -> [String] {
    let intentions = try self.intentions()
    // By bytes: two names may be equal as strings.
    var kept: [[UInt8]: Set<String>] = [:]
    var expired: [String] = []
    for receipt in try intentions.receipts() where receipt.status == .processed {
      guard let intention = FileIntention(receipt.payload), PeerNames.isName(intention.peer),
        intention.options.receiptTerm == .dayAfterProcessing
      else { continue }
      let peer = Array(intention.peer.utf8)
      let sender = try self.sender(to: intention.peer)
      let listed =
        try kept[peer] ?? Set(sender.receipts().compactMap { FileNotice($0.payload)?.id })
      kept[peer] = listed
      // A sender that was killed before it had the receipt has still stored the file.
      guard !listed.contains(intention.id),
        try sender.queue.entry(of: name, attachmentPrefix: intention.attachmentPrefix) == nil
      else { continue }
      try intentions.forget(receipt.id)
      expired.append(intention.id)
    }
    return expired
  }
}

extension SharedContainer {
  /// Like `sweep(patience:)`; also removes the receipts of files whose senders are not running.
  ///
  /// - Throws: as `sweep(patience:)`.
  package func sweepWithFiles() throws -> SweepReport {
    try sweep { report in
      for queue in try own.queueNames() {
        guard let sender = PeerNames.peer(ofOutgoingFiles: queue), PeerNames.isName(sender) else {
          continue
        }
        let path = own.queue(queue).path
        report.attempt("sweep what has expired", path: path) {
          $0.removed += try OutgoingFiles(Outbox(of: sender, in: self)).expire().map {
            path + "/sent (transfer \($0))"
          }
        }
      }
    }
  }
}
