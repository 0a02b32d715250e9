import AppGroup
public import Foundation
import PeerConnectivity
import Synchronization

/// A dictionary on its way to the counterpart; made by `transferUserInfo`. Two that mean the same
/// transfer are equal.
public final class WCSessionUserInfoTransfer: NSObject, Sendable {
  private enum Content {
    case sent(PeerTransfer)
    /// What could not be sent at all.
    case refused(GivenObjects)
  }

  private let content: Content
  private let complications: ComplicationTransfers?
  private let stage: Mutex<TransferStage>
  private weak let link: SessionLink?

  init(_ sent: PeerTransfer, in link: SessionLink) {
    content = .sent(sent)
    complications = link.complications
    stage = Mutex(.underWay)
    self.link = link
  }

  init(refused userInfo: [String: Any]) {
    content = .refused(GivenObjects(objects: userInfo))
    complications = nil
    stage = Mutex(.ended)
    link = nil
  }

  /// What is sent.
  public var userInfo: [String: Any] {
    switch content {
    case .sent(let sent): Payload.objects(sent.value) ?? [:]
    case .refused(let given): given.objects ?? [:]
    }
  }

  /// Whether it has neither been delivered nor failed nor been cancelled.
  public var isTransferring: Bool { stage.withLock { $0 }.isTransferring }

  /// Whether `cancel()` took it back in time, through this object: the counterpart never gets it. Not
  /// in Apple's, where nothing tells.
  public var isCancelled: Bool { stage.withLock { $0 } == .takenBack }

  /// Whether it is the latest that was sent for the complication; see
  /// `transferCurrentComplicationUserInfo`. Costs reading one file.
  public var isCurrentComplicationInfo: Bool {
    guard let id, let complications else { return false }
    do {
      return try complications.currentID() == id
    } catch {
      Diagnostics.report(error)
      return false
    }
  }

  /// Takes it back, unless the counterpart has it already: then this does nothing. The delegate is
  /// not told of the end of one that was taken back.
  public func cancel() {
    guard case .sent(let sent) = content, stage.withLock({ $0.beginTakingBack() }) else { return }
    do {
      let isTakenBack = try sent.cancel()
      stage.withLock { $0.endTakingBack(isTakenBack) }
      guard isTakenBack else { return }
      link?.userInfoTransfers.remove(sent.id)
      try sent.forget()
    } catch {
      stage.withLock { $0.endTakingBack(false) }
      Diagnostics.report(error)
    }
  }

  /// Whether it means the same transfer.
  public override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? WCSessionUserInfoTransfer else { return false }
    return self === other || (id != nil && id == other.id)
  }

  /// Equal for equal transfers.
  public override var hash: Int { id?.hashValue ?? ObjectIdentifier(self).hashValue }
}

extension WCSessionUserInfoTransfer: OutgoingTransfer {
  private var sent: PeerTransfer? {
    if case .sent(let sent) = content { sent } else { nil }
  }

  var id: String? { sent?.id }

  func status() async throws -> QueueEntryStatus { try await sent?.end() ?? .processed }

  var isTakenBackHere: Bool { stage.withLock { $0 == .takingBack || $0 == .takenBack } }

  func finish() { stage.withLock { $0.finish() } }

  func forget() throws { try sent?.forget() }

  func tell(_ delegate: any WCSessionDelegate, _ session: WCSession, _ error: WCError?) {
    delegate.session(session, didFinish: self, error: error)
  }
}
