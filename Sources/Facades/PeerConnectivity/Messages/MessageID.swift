import AppGroup

/// Names a guaranteed message among all transfers of a container, as text to be kept: its peer's name,
/// encoded as those of values are, and its entry's: `peer/<peer>/messages/<batch>/<number>`; and so, with
/// `files`, the entry of a file.
///
/// It is one line of ASCII that no shell takes apart, whatever the peer is called.
struct MessageID: CustomStringConvertible {
  let peer: String
  let entry: QueueEntryID
  let isFile: Bool

  init(peer: String, entry: QueueEntryID, isFile: Bool = false) {
    self.peer = peer
    self.entry = entry
    self.isFile = isFile
  }

  /// Reads the text that `description` gave; nil for any other.
  init?(_ text: String) {
    // An entry's own id has one slash.
    let slashes = text.utf8.indices.filter { text.utf8[$0] == UInt8(ascii: "/") }
    guard slashes.count > 1 else { return nil }
    let slash = slashes[slashes.count - 2]
    guard let entry = QueueEntryID(String(text[text.utf8.index(after: slash)...])),
      let name = text[..<slash].split(separator: "/", omittingEmptySubsequences: false).nth(1),
      case .identifier(let peer) = EncodedName.decode(name.utf8), PeerNames.isName(peer),
      let isFile = [false, true].first(where: {
        text[..<slash].utf8.elementsEqual(Self.place(of: peer, isFile: $0).utf8)
      })
    else { return nil }
    self.init(peer: peer, entry: entry, isFile: isFile)
  }

  var description: String { "\(Self.place(of: peer, isFile: isFile))/\(entry)" }

  private static func place(of peer: String, isFile: Bool) -> String {
    "peer/\(EncodedName(peer).component)/\(isFile ? "files" : "messages")"
  }
}

extension Collection {
  fileprivate func nth(_ number: Int) -> Element? { dropFirst(number).first }
}

extension PeerNames {
  /// The peer whose messages a queue holds; nil for any other queue.
  static func peer(ofMessages queue: String) -> String? {
    guard let peer = peer(ofQueue: queue), messages(peer).utf8.elementsEqual(queue.utf8) else {
      return nil
    }
    return peer
  }
}
