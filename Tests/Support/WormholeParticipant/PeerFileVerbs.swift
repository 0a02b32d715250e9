import FoundationEssentials
import Synchronization
import Wormhole
import WormholePeers
import WormholePropertyLists
import WormholeSystem

/// The verbs of a participant about files, as a peer of a name.
///
/// ```
/// file-intend ME PEER PATH   stores the intention to send a file, and does not copy it
/// file-send ME PEER PATH     sends a file, and waits until it is stored
/// file-copy ME               copies the files to send, on this very thread
/// file-end ME                the outcome of the last sent file
/// file-receive ME [SECONDS]  becomes the receiver within SECONDS
/// file-next ME               takes a file and keeps it: "SENDER NAME SIZE [again]"
/// file-acknowledge ME        acknowledges the last taken file
/// file-fail ME               fails the last taken file
/// file-move ME PATH          moves the last taken file
/// file-work ME DIRECTORY     receives until none waits: moves each file to DIRECTORY/NAME
/// ```
enum PeerFileVerbs {
  private struct Kept {
    var receivers: [String: PeerReceiver<PeerFile>] = [:]
    var files: [String: PeerFile] = [:]
    var transfers: [String: PeerFileTransfer] = [:]
  }

  private static let kept = Mutex(Kept())

  static func perform(_ verb: String, _ session: PeerSession, _ rest: [String]) throws -> String {
    let name = session.name
    let file = kept.withLock { $0.files[name] }
    switch verb {
    case "file-intend", "file-send":
      let url = URL(filePath: rest[1])
      let transfer =
        verb == "file-send"
        ? try session.transfer(fileAt: url, to: rest[0])
        : try session.intendTransfer(fileAt: url, to: rest[0])
      kept.withLock { $0.transfers[name] = transfer }
      if verb == "file-send" { try transfer.waitUntilStored(until: .now + .seconds(100)) }
    case "file-copy": try session.sendOutgoingFiles()
    case "file-end":
      let transfer = kept.withLock { $0.transfers[name] }
      return "\(try transfer?.finalStatus(until: .now + .seconds(100)) ?? .stored)"
    case "file-receive":
      let wait = Duration.seconds(rest.first.flatMap { Int($0) } ?? 0)
      let receiver = try session.receiveFiles(until: .now + wait)
      kept.withLock { $0.receivers[name] = receiver }
    case "file-next":
      guard let next = try kept.withLock({ $0.receivers[name] })?.next(until: .now) else {
        return "nothing"
      }
      kept.withLock { $0.files[name] = next }
      return describe(next)
    case "file-acknowledge": try file?.acknowledge()
    case "file-fail": try file?.fail("on purpose")
    case "file-move": try file?.move(to: URL(filePath: rest[0]))
    case "file-work":
      let receiver = try session.receiveFiles(until: .now + .seconds(5))
      while let next = try receiver.next(until: .now) {
        try next.move(to: URL(filePath: rest[0] + "/" + next.name))
        try next.acknowledge()
      }
    default: return "error usage"
    }
    return "done"
  }

  private static func describe(_ file: PeerFile) -> String {
    "\(file.sender) \(file.name) \(file.size)" + (file.isRedelivery ? " again" : "")
  }
}
