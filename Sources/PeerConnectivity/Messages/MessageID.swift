import AppGroup

/// Names a guaranteed message among all transfers of a container, as text to be kept: its queue's
/// name and its entry's, `peer/<peer>/messages/<batch>/<number>`.
struct MessageID: CustomStringConvertible {
  let peer: String
  let entry: QueueEntryID

  init(peer: String, entry: QueueEntryID) {
    self.peer = peer
    self.entry = entry
  }

  /// Reads what `description` gave; nil for any other text.
  init?(_ text: String) {
    // An entry's own id has one slash.
    let slashes = text.utf8.indices.filter { text.utf8[$0] == UInt8(ascii: "/") }
    guard slashes.count > 1 else { return nil }
    let slash = slashes[slashes.count - 2]
    guard let entry = QueueEntryID(String(text[text.utf8.index(after: slash)...])),
      let peer = PeerNames.peer(ofMessages: String(text[..<slash]))
    else { return nil }
    self.init(peer: peer, entry: entry)
  }

  var description: String { "\(PeerNames.messages(peer))/\(entry)" }
}

extension PeerNames {
  /// For whom the messages of a queue are; nil for any other queue.
  static func peer(ofMessages queue: String) -> String? {
    guard let peer = peer(ofQueue: queue), messages(peer).utf8.elementsEqual(queue.utf8) else {
      return nil
    }
    return peer
  }
}
