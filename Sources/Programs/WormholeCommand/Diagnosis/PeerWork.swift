import AppGroup
import PeerConnectivity
import PropertyLists

/// A peer, with the messages and files that wait for it.
struct PeerWork {
  let peer: Peer
  let messages: ContainerReport.NamedQueue?
  let files: ContainerReport.NamedQueue?

  init(_ peer: Peer, in report: ContainerReport) {
    self.peer = peer
    let queue = { (name: String) in
      report.own.queues.first { $0.name.utf8.elementsEqual(name.utf8) }
    }
    messages = queue(PeerNames.messages(peer.name))
    files = queue(PeerNames.files(peer.name))
  }

  /// Whether a queue is one of the peer's.
  func has(_ queue: ContainerReport.NamedQueue) -> Bool {
    [messages?.path, files?.path].contains(queue.path)
  }

  /// `3 messages (received by process 4711), 1 file`; entries that were taken and not acknowledged count.
  var text: String {
    let parts = [("message", messages), ("file", files)].compactMap { noun, queue -> String? in
      guard let queue, queue.outstanding + queue.failed > 0 || queue.consumer != nil else {
        return nil
      }
      let receiver = queue.consumer.map { " (received by process \($0.processID))" } ?? ""
      let failed = queue.failed > 0 ? ", \(queue.failed) failed" : ""
      return "\(queue.outstanding) \(noun)\(queue.outstanding == 1 ? "" : "s")\(receiver)\(failed)"
    }
    return parts.isEmpty ? "-" : parts.joined(separator: ", ")
  }

  /// Keys are only ever added.
  var propertyList: PropertyListValue {
    var line = peer.propertyList
    line["messages"] = .integer(Int64(messages?.outstanding ?? 0))
    line["files"] = .integer(Int64(files?.outstanding ?? 0))
    line["failed"] = .integer(Int64((messages?.failed ?? 0) + (files?.failed ?? 0)))
    return line
  }
}

extension ContainerReport.NamedQueue {
  fileprivate var outstanding: Int { waiting + taken }
}
