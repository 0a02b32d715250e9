import Wormhole

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
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 5, case .identifier(let peer) = EncodedName.decode(parts[1].utf8),
      PeerNames.isName(peer), let entry = QueueEntryID("\(parts[3])/\(parts[4])")
    else { return nil }
    self.init(peer: peer, entry: entry, isFile: parts[2] == "files")
    guard description.utf8.elementsEqual(text.utf8) else { return nil }
  }

  var description: String {
    "peer/\(EncodedName(peer).component)/\(isFile ? "files" : "messages")/\(entry)"
  }
}
