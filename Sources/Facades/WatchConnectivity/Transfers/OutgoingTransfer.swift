import Foundation
import Synchronization
import Wormhole
import WormholePeers

/// A transfer of either kind, on its way to the counterpart.
protocol OutgoingTransfer: AnyObject, Sendable {
  var course: TransferCourse { get }
  /// Reports its end to the delegate.
  func notify(_ delegate: any WCSessionDelegate, of session: WCSession, _ error: WCError?)
}

/// The progress of a transfer, as its app knows it; the same for both kinds.
final class TransferCourse: Sendable {
  private enum Stage: Sendable {
    case underWay
    /// The app is taking it back, and may be too late. Others see it cancelled before `cancel()`
    /// returns, and must know that the app did it.
    case takingBack
    case ended
    case takenBack
  }

  /// Nil for a transfer that was refused, and never sent.
  let sent: (any PeerTransfer)?
  private let stage: Mutex<Stage>

  init(_ sent: (any PeerTransfer)?) {
    self.sent = sent
    stage = Mutex(sent == nil ? .ended : .underWay)
  }

  /// Its id among the peers' transfers; nil for one that was refused.
  var id: String? { sent?.id }

  var isTransferring: Bool { stage.withLock { $0 == .underWay || $0 == .takingBack } }

  /// Whether the app has cancelled it, and knows.
  var isCancelled: Bool { stage.withLock { $0 == .takenBack } }

  /// Whether the app takes it back or has done so.
  var isTakenBackHere: Bool { stage.withLock { $0 == .takingBack || $0 == .takenBack } }

  /// Waits until it has ended.
  func finalStatus() async throws -> QueueEntryStatus {
    try await sent?.finalStatus(until: nil) ?? .processed
  }

  /// It has ended.
  func finish() {
    stage.withLock { if $0 == .underWay || $0 == .takingBack { $0 = .ended } }
  }

  /// The app knows its end, so it is not reported again.
  func removeReceipt() throws { try sent?.removeReceipt() }

  /// Takes it back, unless the counterpart has it already.
  ///
  /// - Parameter takenBack: called if that was in time.
  func cancel(_ takenBack: (String) -> Void) {
    let isMine = stage.withLock { stage in
      guard stage == .underWay else { return false }
      stage = .takingBack
      return true
    }
    guard let sent, isMine else { return }
    do {
      let isTakenBack = try sent.cancel()
      stage.withLock { stage in
        if isTakenBack {
          stage = .takenBack
        } else if stage == .takingBack {
          stage = .underWay
        }
      }
      guard isTakenBack else { return }
      takenBack(sent.id)
      try sent.removeReceipt()
    } catch {
      stage.withLock { if $0 == .takingBack { $0 = .underWay } }
      Diagnostics.report(error)
    }
  }

  /// Whether two objects mean the same transfer.
  func isSame(as other: TransferCourse?) -> Bool {
    self === other || (id != nil && id == other?.id)
  }

  var hashValue: Int { id?.hashValue ?? ObjectIdentifier(self).hashValue }
}

/// The objects of a refused transfer, unchanged.
// They are only handed back to the caller that passed them, and never read or changed here.
struct GivenObjects: @unchecked Sendable {
  let objects: [String: Any]?
}
