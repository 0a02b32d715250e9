public import Foundation
import Wormhole
import WormholePeers

/// A dictionary on its way to the counterpart; made by `transferUserInfo`. Two objects for one
/// transfer are equal.
///
/// ```swift
/// let transfer = WCSession.default.transferUserInfo(["film": "Metropolis"])
/// if transfer.isTransferring { transfer.cancel() }
/// ```
///
/// Its `Sendable` is unchecked because it is open, like the original: its own properties are
/// constant, and a subclass is responsible for those that it adds.
open class WCSessionUserInfoTransfer: NSObject, @unchecked Sendable {
  let course: TransferCourse
  private let content: CarriedObjects
  private let complications: ComplicationTransfers?
  private weak let session: WCSession?
  /// Whether it was made as the current one for the complication.
  private let isMadeCurrent: Bool

  init(_ sent: PeerMessageTransfer, in link: SessionLink) {
    course = link.session.courses.course(of: sent)
    content = .value(sent.value)
    session = link.session
    isMadeCurrent = false
    complications = link.complications
  }

  /// Makes a transfer that is never sent: it was refused, or is made for a test.
  package init(_ content: CarriedObjects, isTransferring: Bool = false, isCurrent: Bool = false) {
    course = TransferCourse(isTransferring: isTransferring)
    self.content = content
    session = nil
    isMadeCurrent = isCurrent
    complications = nil
  }

  /// A transfer for a test, which overrides its properties: it was never sent.
  public override init() {
    course = TransferCourse(isTransferring: false)
    content = .given([:])
    session = nil
    isMadeCurrent = false
    complications = nil
    super.init()
  }

  /// The class, the dictionary and the state, for people.
  open override var description: String {
    "WCSessionUserInfoTransfer(\(readable(userInfo)), \(course.state))"
  }

  /// The dictionary that is sent.
  open var userInfo: [String: Any] { content.objects ?? [:] }

  /// Whether it has not yet been delivered, failed or cancelled.
  open var isTransferring: Bool { course.isTransferring }

  /// Whether `cancel()` on this object was in time: the counterpart never gets it. Apple's class
  /// has no such property.
  public var isCancelled: Bool { course.isCancelled }

  /// Whether it is the last one sent for the complication; see
  /// `transferCurrentComplicationUserInfo`. Costs reading one file.
  open var isCurrentComplicationInfo: Bool {
    guard let id = course.id, let complications else { return isMadeCurrent }
    return Diagnostics.reporting(otherwise: false) { try complications.currentID() == id }
  }

  /// Takes it back, unless the counterpart already has it: then this does nothing. The delegate is
  /// not told of the end of a transfer that was taken back.
  open func cancel() { course.cancel { session?.link?.userInfoTransfers.remove($0) } }

  /// Whether the object stands for the same transfer.
  open override func isEqual(_ object: Any?) -> Bool {
    course.isSame(as: (object as? WCSessionUserInfoTransfer)?.course)
  }

  /// Equal for equal transfers.
  open override var hash: Int { course.hashValue }
}

extension WCSessionUserInfoTransfer: OutgoingTransfer {
  func notify(_ delegate: any WCSessionDelegate, of session: WCSession, _ error: WCError?) {
    delegate.session(session, didFinish: self, error: error)
  }
}
