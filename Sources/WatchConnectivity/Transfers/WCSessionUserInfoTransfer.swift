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
  private let isUnderWay: Mutex<Bool>
  private let isTakenBack = Mutex(false)
  private weak let link: SessionLink?

  init(_ sent: PeerTransfer, in link: SessionLink) {
    content = .sent(sent)
    complications = link.complications
    isUnderWay = Mutex(true)
    self.link = link
  }

  init(refused userInfo: [String: Any]) {
    content = .refused(GivenObjects(objects: userInfo))
    complications = nil
    isUnderWay = Mutex(false)
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
  public var isTransferring: Bool { isUnderWay.withLock { $0 } }

  /// Whether `cancel()` took it back in time, through this object: the counterpart never gets it. Not
  /// in Apple's, where nothing tells.
  public var isCancelled: Bool { isTakenBack.withLock { $0 } }

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
    guard case .sent(let sent) = content, isTransferring else { return }
    do {
      guard try sent.cancel() else { return }
      isTakenBack.withLock { $0 = true }
      isUnderWay.withLock { $0 = false }
      link?.userInfoTransfers.remove(sent.id)
    } catch {
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

  func finish() { isUnderWay.withLock { $0 = false } }

  func forget() throws { try sent?.forget() }

  func tell(_ delegate: any WCSessionDelegate, _ session: WCSession, _ error: WCError?) {
    delegate.session(session, didFinish: self, error: error)
  }
}
