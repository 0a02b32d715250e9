import AppGroup

/// Names a guaranteed message among all transfers of a container, as text to be kept: its peer's name,
/// encoded as those of values are, and its entry's: `peer/<peer>/messages/<batch>/<number>`.
///
/// It is one line of ASCII that no shell takes apart, whatever the peer is called.
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
      let name = text[..<slash].split(separator: "/", omittingEmptySubsequences: false).nth(1),
      case .identifier(let peer) = EncodedName.decode(name.utf8), PeerNames.isName(peer),
      text[..<slash].utf8.elementsEqual(Self.place(of: peer).utf8)
    else { return nil }
    self.init(peer: peer, entry: entry)
  }

  var description: String { "\(Self.place(of: peer))/\(entry)" }

  private static func place(of peer: String) -> String {
    "peer/\(EncodedName(peer).component)/messages"
  }
}

extension Collection {
  fileprivate func nth(_ number: Int) -> Element? { dropFirst(number).first }
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
