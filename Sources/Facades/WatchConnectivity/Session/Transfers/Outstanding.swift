import Synchronization
import Wormhole
import WormholePeers

/// The transfers that have not ended, in the order of sending; the delegate learns of each end.
///
/// One task waits for the transfers one by one, as the counterpart takes them in that order. A
/// transfer that may end before its turn, because it expires or is replaced, has its own task.
final class Outstanding<Transfer: OutgoingTransfer>: Sendable {
  private struct State {
    var next = 0
    var transfers: [String: (number: Int, transfer: Transfer)] = [:]
    var task: Task<Void, Never>?
    var hasEnded = false
  }

  private let state = Mutex(State())
  private let inOrder = AsyncStream<Transfer>.makeStream()
  private let early = AsyncStream<Transfer>.makeStream()

  /// All of them, in the order of sending.
  var all: [Transfer] {
    state.withLock { $0.transfers.values.sorted { $0.number < $1.number }.map(\.transfer) }
  }

  /// - Parameters:
  ///   - status: the status of a transfer from an earlier process: after its end it is not listed,
  ///     and the end is reported to the delegate.
  ///   - endsInOrder: whether it ends after all transfers added before it.
  func add(
    _ transfer: Transfer, _ status: QueueEntryStatus = .stored, endsInOrder: Bool = true
  ) {
    guard let id = transfer.course.id else { return }
    if [.stored, .taken].contains(status) {
      state.withLock { state in
        state.transfers[id] = (state.next, transfer)
        state.next += 1
      }
    } else {
      transfer.course.finish()
    }
    (endsInOrder ? inOrder : early).continuation.yield(transfer)
  }

  /// Removes a transfer from the list: its app has cancelled it.
  func remove(_ id: String?) {
    if let id { state.withLock { _ = $0.transfers.removeValue(forKey: id) } }
  }

  /// Begins to report ends to the delegate.
  func start(_ link: SessionLink) {
    let session = link.session
    let task = Task { [weak self, inOrder = inOrder.stream, early = early.stream] in
      await withDiscardingTaskGroup { group in
        group.addTask { for await transfer in inOrder { await self?.end(transfer, session) } }
        for await transfer in early {
          group.addTask { await self?.end(transfer, session) }
        }
      }
    }
    let hasEnded = state.withLock {
      $0.task = task
      return $0.hasEnded
    }
    if hasEnded { task.cancel() }
  }

  /// Stops reporting ends: later ends are reported at the next activation.
  func end() {
    inOrder.continuation.finish()
    early.continuation.finish()
    state.withLock { state in
      state.hasEnded = true
      return state.task
    }?.cancel()
  }

  /// Waits until its task has ended.
  func ended() async { await state.withLock(\.task)?.value }

  private func end(_ transfer: Transfer, _ session: WCSession) async {
    let failure: WCError?
    switch await finalStatus(of: transfer) {
    case .failed(let reason): failure = WCError(.deliveryFailed, reason: reason)
    case .expired: failure = WCError(.transferTimedOut)
    // `cancel()` concludes it.
    case .cancelled where transfer.course.isTakenBackHere: return
    // `wormhole peer transfers --remove` runs in another process: the app has to learn of it.
    case .cancelled: failure = WCError(.deliveryFailed, reason: "Another process took it back.")
    case .superseded:
      failure = WCError(.deliveryFailed, reason: "A newer one with its key took its place.")
    case .processed: failure = nil
    case .stored, .taken, nil: return
    }
    await session.onQueue { self.notify(transfer, $0, failure: failure) }
  }

  /// Asks again after a failure, because the counterpart may have the transfer by then.
  ///
  /// - Returns: nil when the task was cancelled.
  private func finalStatus(of transfer: Transfer) async -> QueueEntryStatus? {
    var pause: Duration = .seconds(1)
    while true {
      do {
        return try await transfer.course.finalStatus()
      } catch {
        guard !Task.isCancelled else { return nil }
        Diagnostics.report(error)
      }
      // An error means that it is cancelled, which ends the next attempt.
      try? await Task.sleep(for: pause)
      pause = min(pause * 2, .seconds(60))
    }
  }

  private func notify(_ transfer: Transfer, _ session: WCSession, failure: WCError?) {
    // The receipt of a transfer that was taken back is removed; without one it counts as processed.
    guard !state.withLock({ $0.hasEnded }), !transfer.course.isCancelled else { return }
    transfer.course.finish()
    remove(transfer.course.id)
    // Without a delegate it is reported at the next activation.
    guard session.offer({ transfer.notify($0, of: session, failure) }) != .noDelegate else {
      return
    }
    // After an error the end is reported again at the next activation, which is the lesser evil.
    Diagnostics.reporting { try transfer.course.removeReceipt() }
  }
}

extension SessionLink {
  /// The transfers from an earlier process of this side whose end was not reported to the app.
  func loadOutstanding() throws {
    guard let counterpart else { return }
    for sent in try setup.peer.messageTransfers(to: counterpart) {
      userInfoTransfers.add(WCSessionUserInfoTransfer(sent, in: self), try sent.status())
    }
    for sent in try setup.peer.fileTransfers(to: counterpart) {
      fileTransfers.add(WCSessionFileTransfer(sent, in: self), try sent.status())
    }
  }
}
