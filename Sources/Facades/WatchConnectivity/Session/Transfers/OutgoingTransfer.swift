import Foundation
import Synchronization
import Wormhole
import WormholePeers
package import WormholePropertyLists

/// A transfer of either kind, on its way to the counterpart.
protocol OutgoingTransfer: AnyObject, Sendable {
  var course: TransferCourse { get }
  /// Reports its end to the delegate.
  func notify(_ delegate: any WCSessionDelegate, of session: WCSession, _ error: WCError?)
}

/// A transfer's progress, as its app knows it; the same for both kinds.
final class TransferCourse: Sendable {
  private enum Stage: Sendable {
    case underWay
    /// The app is cancelling it, perhaps too late. Others see it cancelled before `cancel()`
    /// returns, and must know that the app did it.
    case takingBack
    case ended
    case takenBack
  }

  /// Nil for a transfer that was never sent: it was refused, or made for a test.
  private let sent: (any PeerTransfer)?
  private let stage: Mutex<Stage>

  init(_ sent: any PeerTransfer) {
    self.sent = sent
    stage = Mutex(.underWay)
  }

  /// The course of a transfer that no session sends.
  init(isTransferring: Bool) {
    sent = nil
    stage = Mutex(isTransferring ? .underWay : .ended)
  }

  /// Its id among the peers' transfers; nil for one that was never sent.
  var id: String? { sent?.id }

  var isTransferring: Bool { stage.withLock { $0 == .underWay || $0 == .takingBack } }

  /// A word for people.
  var state: String { isCancelled ? "cancelled" : isTransferring ? "transferring" : "ended" }

  /// Whether the app has cancelled it, and knows so.
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

  /// The app knows of its end, so it is not reported again.
  func removeReceipt() throws { try sent?.removeReceipt() }

  /// Takes it back, unless the counterpart already has it.
  ///
  /// - Parameter takenBack: called if that was in time, which it always is if it was never sent.
  func cancel(_ takenBack: (_ id: String?) -> Void) {
    let isMine = stage.withLock { stage in
      guard stage == .underWay else { return false }
      stage = .takingBack
      return true
    }
    guard isMine else { return }
    do {
      let isTakenBack = try sent?.cancel() ?? true
      stage.withLock { stage in
        if isTakenBack {
          stage = .takenBack
        } else if stage == .takingBack {
          stage = .underWay
        }
      }
      guard isTakenBack else { return }
      takenBack(id)
      try removeReceipt()
    } catch {
      stage.withLock { if $0 == .takingBack { $0 = .underWay } }
      Diagnostics.report(error)
    }
  }

  /// Whether two objects stand for the same transfer.
  func isSame(as other: TransferCourse?) -> Bool {
    self === other || (id != nil && id == other?.id)
  }

  var hashValue: Int { id?.hashValue ?? ObjectIdentifier(self).hashValue }
}

/// The courses of a session's transfers. All objects of a transfer share one, because the app's
/// objects may outlive a period in which another watch is active.
final class TransferCourses: Sendable {
  private struct Reference: Sendable { weak var course: TransferCourse? }

  private let references = Mutex<[String: Reference]>([:])

  func course(of sent: any PeerTransfer) -> TransferCourse {
    references.withLock { references in
      if let known = references[sent.id]?.course { return known }
      if references.count % 64 == 63 { references = references.filter { $0.value.course != nil } }
      let course = TransferCourse(sent)
      references[sent.id] = Reference(course: course)
      return course
    }
  }
}

/// The objects of a transfer or a file.
// Objects that were given are only handed back to the caller that passed them, and never read or
// changed here.
package enum CarriedObjects: @unchecked Sendable {
  /// As a property list, which several threads may read.
  case value(PropertyListValue?)
  /// Unchanged: a session has refused them, or would.
  case given([String: Any]?)

  /// Objects from a test, in the form that a session would carry if it could.
  package init(made objects: [String: Any]?) {
    do {
      self = .value(try objects.map { try Payload.value($0, maximumBytes: .max) })
    } catch {
      // A test may give its delegate an object that no session would.
      self = .given(objects)
    }
  }

  var objects: [String: Any]? {
    switch self {
    case .value(let value): Payload.objects(value)
    case .given(let objects): objects
    }
  }
}

/// Returns a dictionary as Swift writes it, sorted by key.
func readable(_ dictionary: [String: Any]) -> String {
  let members = dictionary.sorted { $0.key < $1.key }.map { "\"\($0.key)\": \($0.value)" }
  return members.isEmpty ? "[:]" : "[\(members.joined(separator: ", "))]"
}
