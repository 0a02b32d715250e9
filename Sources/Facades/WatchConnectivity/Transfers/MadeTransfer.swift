import Foundation
import Synchronization
import Wormhole
import WormholePeers
import WormholePropertyLists

/// A transfer that no session sends, for the tests of a delegate.
private final class MadeTransfer: PeerTransfer {
  let id = UUID().uuidString
  let peer = ""
  private let outcome = Mutex(QueueEntryStatus.stored)

  func status() throws -> QueueEntryStatus { outcome.withLock { $0 } }

  func finalStatus(until deadline: ContinuousClock.Instant?) async throws -> QueueEntryStatus {
    try status()
  }

  func cancel() throws -> Bool {
    outcome.withLock { $0 = .cancelled }
    return true
  }

  func removeReceipt() throws {}
}

extension TransferCourse {
  fileprivate static func making(isTransferring: Bool) -> TransferCourse {
    let course = TransferCourse(MadeTransfer())
    if !isTransferring { course.finish() }
    return course
  }
}

/// Objects from a test: handed over as a session would, if it could carry them.
struct MadeObjects {
  let value: PropertyListValue?
  let given: GivenObjects?

  init(_ objects: [String: Any]) {
    do {
      value = try Payload.value(objects, maximumBytes: .max)
      given = nil
    } catch {
      // A test may give its delegate an object that no session would: it is handed over unchanged.
      value = nil
      given = GivenObjects(objects: objects)
    }
  }
}

extension WCSessionFile {
  package static func made(_ url: URL, metadata: [String: Any]?) -> WCSessionFile {
    WCSessionFile(url, made: metadata.map { MadeObjects($0) })
  }
}

extension WCSessionUserInfoTransfer {
  package static func made(
    _ userInfo: [String: Any], isTransferring: Bool, isCurrent: Bool
  ) -> WCSessionUserInfoTransfer {
    WCSessionUserInfoTransfer(
      made: .making(isTransferring: isTransferring), MadeObjects(userInfo), isCurrent: isCurrent)
  }
}

extension WCSessionFileTransfer {
  package static func made(_ file: WCSessionFile, isTransferring: Bool) -> WCSessionFileTransfer {
    WCSessionFileTransfer(made: .making(isTransferring: isTransferring), file)
  }
}
