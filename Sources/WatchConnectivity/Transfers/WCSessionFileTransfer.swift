import AppGroup
public import Foundation
import PeerConnectivity
import Synchronization

/// A file on its way to the counterpart; made by `transferFile`. Two that mean the same transfer are
/// equal.
public final class WCSessionFileTransfer: NSObject, Sendable {
  /// The file, where its sender has it, and what is sent with it.
  public let file: WCSessionFile
  /// How much is copied, in bytes. Cancelling it cancels the transfer. Its values cannot be observed
  /// as keys on Linux: ask for them.
  public let progress: Progress
  private let sent: PeerFileTransfer?
  private let stage: Mutex<TransferStage>
  private weak let link: SessionLink?

  init(_ sent: PeerFileTransfer, in link: SessionLink) {
    self.sent = sent
    self.link = link
    file = WCSessionFile(sent.source, sent.metadata)
    stage = Mutex(.underWay)
    progress = Progress(totalUnitCount: max(sent.progress.totalBytes, 1))
    super.init()
    progress.cancellationHandler = { [weak self] in self?.takeBack() }
    sent.observeProgress { [progress] now in
      // Nothing is to be divided by the 0 bytes of an empty file.
      progress.totalUnitCount = max(now.totalBytes, 1)
      progress.completedUnitCount = now.totalBytes > 0 ? now.completedBytes : 1
    }
  }

  init(refused url: URL, _ metadata: [String: Any]?) {
    sent = nil
    link = nil
    file = WCSessionFile(url, refused: metadata)
    stage = Mutex(.ended)
    progress = Progress(totalUnitCount: 1)
  }

  /// Whether it has neither been delivered nor failed nor been cancelled.
  public var isTransferring: Bool { stage.withLock { $0 }.isTransferring }

  /// Whether `cancel()` took it back in time, through this object: the counterpart never gets it. Not
  /// in Apple's, where nothing tells.
  public var isCancelled: Bool { stage.withLock { $0 } == .takenBack }

  /// Takes it back, also in the middle of copying, unless the counterpart has it already: then this
  /// does nothing. The delegate is not told of the end of one that was taken back.
  public func cancel() { takeBack() }

  private func takeBack() {
    guard let sent, stage.withLock({ $0.beginTakingBack() }) else { return }
    do {
      let isTakenBack = try sent.cancel()
      stage.withLock { $0.endTakingBack(isTakenBack) }
      guard isTakenBack else { return }
      link?.fileTransfers.remove(sent.id)
      // Comes back here, on a thread of its own, and finds it done.
      progress.cancel()
      try sent.forget()
    } catch {
      stage.withLock { $0.endTakingBack(false) }
      Diagnostics.report(error)
    }
  }

  /// Whether it means the same transfer.
  public override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? WCSessionFileTransfer else { return false }
    return self === other || (id != nil && id == other.id)
  }

  /// Equal for equal transfers.
  public override var hash: Int { id?.hashValue ?? ObjectIdentifier(self).hashValue }
}

extension WCSessionFileTransfer: OutgoingTransfer {
  var id: String? { sent?.id }

  func status() async throws -> QueueEntryStatus { try await sent?.end() ?? .processed }

  var isTakenBackHere: Bool { stage.withLock { $0 == .takingBack || $0 == .takenBack } }

  func finish() { stage.withLock { $0.finish() } }

  func forget() throws { try sent?.forget() }

  func tell(_ delegate: any WCSessionDelegate, _ session: WCSession, _ error: WCError?) {
    // Who reads it then is not to find it a step behind.
    if error == nil { progress.completedUnitCount = progress.totalUnitCount }
    delegate.session(session, didFinish: self, error: error)
  }
}
