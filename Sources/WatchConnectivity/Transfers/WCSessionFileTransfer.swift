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
  private let isUnderWay: Mutex<Bool>
  private let isTakenBack = Mutex(false)
  private weak let link: SessionLink?

  init(_ sent: PeerFileTransfer, in link: SessionLink) {
    self.sent = sent
    self.link = link
    file = WCSessionFile(sent.source, sent.metadata)
    isUnderWay = Mutex(true)
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
    isUnderWay = Mutex(false)
    progress = Progress(totalUnitCount: 1)
  }

  /// Whether it has neither been delivered nor failed nor been cancelled.
  public var isTransferring: Bool { isUnderWay.withLock { $0 } }

  /// Whether `cancel()` took it back in time, through this object: the counterpart never gets it. Not
  /// in Apple's, where nothing tells.
  public var isCancelled: Bool { isTakenBack.withLock { $0 } }

  /// Takes it back, also in the middle of copying, unless the counterpart has it already: then this
  /// does nothing. The delegate is not told of the end of one that was taken back.
  public func cancel() { progress.cancel() }

  private func takeBack() {
    guard let sent, isTransferring else { return }
    do {
      guard try sent.cancel() else { return }
      isTakenBack.withLock { $0 = true }
      isUnderWay.withLock { $0 = false }
      link?.fileTransfers.remove(sent.id)
    } catch {
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

  func finish() { isUnderWay.withLock { $0 = false } }

  func forget() throws { try sent?.forget() }

  func tell(_ delegate: any WCSessionDelegate, _ session: WCSession, _ error: WCError?) {
    delegate.session(session, didFinish: self, error: error)
  }
}
