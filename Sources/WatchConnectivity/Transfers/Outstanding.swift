import AppGroup
import Dispatch
import PeerConnectivity
import Synchronization

/// A transfer of either kind on its way to the counterpart.
protocol OutgoingTransfer: AnyObject, Sendable {
  /// Its id among the peers' transfers; nil for one that was refused and never sent.
  var id: String? { get }
  /// Waits until it has ended.
  func status() async throws -> QueueEntryStatus
  /// It has ended.
  func finish()
  /// Whether the app has cancelled it, and knows.
  var isCancelled: Bool { get }
  /// Whether the app takes it back or has done so.
  var isTakenBackHere: Bool { get }
  /// Its end is known to the app, and is not to be told again.
  func forget() throws
  /// Tells the delegate.
  func tell(_ delegate: any WCSessionDelegate, _ session: WCSession, _ error: WCError?)
}

/// How far a transfer is, as its app knows.
enum TransferStage: Sendable {
  case underWay
  /// The app takes it back right now, and may be too late. Others see it cancelled before `cancel()`
  /// returns, and have to know by whom.
  case takingBack
  case ended
  case takenBack

  var isTransferring: Bool { self == .underWay || self == .takingBack }

  /// - Returns: whether the caller is the one who takes it back.
  mutating func beginTakingBack() -> Bool {
    guard self == .underWay else { return false }
    self = .takingBack
    return true
  }

  mutating func endTakingBack(_ isTakenBack: Bool) {
    if isTakenBack {
      self = .takenBack
    } else if self == .takingBack {
      self = .underWay
    }
  }

  mutating func finish() {
    if isTransferring { self = .ended }
  }
}

/// What was sent and has not ended, in the order of sending; its ends are told to the delegate.
///
/// One task waits for one transfer after the other: the counterpart takes them in that order.
final class Outstanding<Transfer: OutgoingTransfer>: Sendable {
  private struct State {
    var next = 0
    var transfers: [String: (number: Int, transfer: Transfer)] = [:]
    var task: Task<Void, Never>?
    var hasEnded = false
  }

  private let state = Mutex(State())
  private let ends: AsyncStream<Transfer>
  private let adding: AsyncStream<Transfer>.Continuation

  init() { (ends, adding) = AsyncStream.makeStream() }

  /// Those that have not ended, in the order of sending.
  var all: [Transfer] {
    state.withLock { $0.transfers.values.sorted { $0.number < $1.number }.map(\.transfer) }
  }

  /// - Parameter status: of one that an earlier process sent: when it has ended, only the delegate is
  ///   to be told.
  func add(_ transfer: Transfer, _ status: QueueEntryStatus = .stored) {
    guard let id = transfer.id else { return }
    if [.stored, .taken].contains(status) {
      state.withLock { state in
        state.transfers[id] = (state.next, transfer)
        state.next += 1
      }
    } else {
      transfer.finish()
    }
    adding.yield(transfer)
  }

  /// Not to be listed any more: its app has cancelled it.
  func remove(_ id: String) { state.withLock { _ = $0.transfers.removeValue(forKey: id) } }

  /// Begins to tell the delegate of ends.
  func start(_ link: SessionLink) {
    let session = link.session
    let task = Task { [weak self, ends] in
      for await transfer in ends { await self?.end(transfer, session) }
    }
    let hasEnded = state.withLock {
      $0.task = task
      return $0.hasEnded
    }
    if hasEnded { task.cancel() }
  }

  /// Ends it: what has not ended is told of at the next activation.
  func end() {
    adding.finish()
    state.withLock { state in
      state.hasEnded = true
      return state.task
    }?.cancel()
  }

  private func end(_ transfer: Transfer, _ session: WCSession) async {
    let failure: WCError?
    do {
      switch try await transfer.status() {
      case .failed(let reason): failure = WCError(.deliveryFailed, reason: reason)
      case .expired: failure = WCError(.transferTimedOut)
      // `cancel()` concludes it.
      case .cancelled where transfer.isTakenBackHere: return
      // `wormhole peer cancel` is another process: the app has to learn of it.
      case .cancelled: failure = WCError(.deliveryFailed, reason: "Another process took it back.")
      case .superseded: return conclude(transfer)
      case .processed: failure = nil
      case .stored, .taken: return
      }
    } catch {
      guard !Task.isCancelled else { return }
      failure = WCError(error, of: .transfer)
    }
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      session.queue.async {
        self.tell(transfer, session, failure)
        continuation.resume()
      }
    }
  }

  private func tell(_ transfer: Transfer, _ session: WCSession, _ failure: WCError?) {
    // One that was taken back is forgotten, and what is forgotten counts as processed.
    guard !state.withLock({ $0.hasEnded }), !transfer.isCancelled else { return }
    transfer.finish()
    if let id = transfer.id { remove(id) }
    switch session.offer({ transfer.tell($0, session, failure) }) {
    case .handled, .declined: conclude(transfer)
    // Told at the next activation.
    case .noDelegate: return
    }
  }

  private func conclude(_ transfer: Transfer) {
    transfer.finish()
    if let id = transfer.id { remove(id) }
    do {
      try transfer.forget()
    } catch {
      // It is told of again at the next activation, which is the lesser evil.
      Diagnostics.report(error)
    }
  }
}

extension SessionLink {
  /// What an earlier process of this side sent, and whose end its app was not told of.
  func loadOutstanding() throws {
    guard let counterpart else { return }
    for sent in try place.peer.transfers(to: counterpart) {
      userInfoTransfers.add(WCSessionUserInfoTransfer(sent, in: self), try sent.status())
    }
    for sent in try place.peer.fileTransfers(to: counterpart) {
      fileTransfers.add(WCSessionFileTransfer(sent, in: self), try sent.status())
    }
  }
}
