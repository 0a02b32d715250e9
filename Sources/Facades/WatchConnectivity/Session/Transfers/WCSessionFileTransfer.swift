public import Foundation
import Wormhole
import WormholePeers

/// A file on its way to the counterpart; made by `transferFile`. Two objects for one transfer are
/// equal.
///
/// ```swift
/// let transfer = WCSession.default.transferFile(file, metadata: ["id": 23523])
/// print(transfer.progress.fractionCompleted, transfer.isTransferring)
/// ```
///
/// Its `Sendable` is unchecked because it is open, like the original: its own properties are
/// constant, and a subclass is responsible for those that it adds.
open class WCSessionFileTransfer: NSObject, @unchecked Sendable {
  private let sentFile: WCSessionFile
  private let sentProgress: Progress
  let course: TransferCourse
  /// The observation of the progress; nil for a transfer that was refused.
  private let observation: ObservationToken?
  private weak let session: WCSession?

  /// - Parameters:
  ///   - sent: the transfer between the peers; nil for one that was never sent.
  ///   - isComplete: whether it is complete.
  private init(
    _ course: TransferCourse, _ file: WCSessionFile, _ sent: PeerFileTransfer? = nil,
    in session: WCSession? = nil, isComplete: Bool = false
  ) {
    self.course = course
    sentFile = file
    self.session = session
    let progress = ObservedProgress(totalUnitCount: max(sent?.progress.totalBytes ?? 1, 1))
    sentProgress = progress
    progress.completedUnitCount = isComplete ? 1 : 0
    observation = sent?.observeProgress { now in
      // The 0 bytes of an empty file would be a divisor.
      progress.totalUnitCount = max(now.totalBytes, 1)
      progress.completedUnitCount = now.totalBytes > 0 ? now.completedBytes : 1
    }
    super.init()
    progress.cancellationHandler = { [weak self] in self?.cancel() }
  }

  convenience init(_ sent: PeerFileTransfer, in link: SessionLink) {
    self.init(
      link.session.courses.course(of: sent), WCSessionFile(sent.source, .value(sent.metadata)),
      sent, in: link.session)
  }

  /// Makes a transfer that is never sent: it was refused, or is made for a test.
  ///
  /// - Parameter isComplete: whether its content was copied.
  package convenience init(
    _ file: WCSessionFile, isTransferring: Bool = false, isComplete: Bool = false
  ) {
    self.init(TransferCourse(isTransferring: isTransferring), file, isComplete: isComplete)
  }

  /// A transfer for a test, which overrides its properties: it was never sent.
  public override init() {
    course = TransferCourse(isTransferring: false)
    sentFile = WCSessionFile()
    sentProgress = Progress(totalUnitCount: 1)
    observation = nil
    session = nil
    super.init()
  }

  /// The file at the sender's place, and the metadata sent with it.
  open var file: WCSessionFile { sentFile }

  /// How much is copied, in bytes. Cancelling it cancels the transfer. Observe it with
  /// `observe(_:options:changeHandler:)`.
  open var progress: Progress { sentProgress }

  /// The class, the file, its metadata, and its progress, for people.
  open override var description: String {
    let metadata = file.metadata.map { ", " + readable($0) } ?? ""
    let percent = Int(progress.fractionCompleted * 100)
    return
      "WCSessionFileTransfer(\(file.fileURL.lastPathComponent)\(metadata), \(percent) %, \(course.state))"
  }

  /// Whether it has not yet been delivered, failed or cancelled.
  open var isTransferring: Bool { course.isTransferring }

  /// Whether `cancel()` on this object was in time: the counterpart never gets it. Apple's class
  /// has no such property.
  public var isCancelled: Bool { course.isCancelled }

  /// Takes it back, even during copying, unless the counterpart already has it: then this does
  /// nothing. The delegate is not told of the end of a transfer that was taken back.
  open func cancel() {
    course.cancel { id in
      session?.link?.fileTransfers.remove(id)
      // Its handler calls this again, on its own thread, and that call does nothing.
      progress.cancel()
    }
  }

  /// Whether the object stands for the same transfer.
  open override func isEqual(_ object: Any?) -> Bool {
    course.isSame(as: (object as? WCSessionFileTransfer)?.course)
  }

  /// Equal for equal transfers.
  open override var hash: Int { course.hashValue }
}

extension WCSessionFileTransfer: OutgoingTransfer {
  func notify(_ delegate: any WCSessionDelegate, of session: WCSession, _ error: WCError?) {
    // A delegate that reads the progress then finds it complete.
    if error == nil { progress.completedUnitCount = progress.totalUnitCount }
    delegate.session(session, didFinish: self, error: error)
    // Done here so that no façade above the session leaves anything behind.
    TemporaryContent.remove(file.fileURL)
  }
}
