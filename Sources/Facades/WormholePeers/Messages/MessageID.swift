import Wormhole

/// Identifies a guaranteed message among all transfers of a container, as text that can be stored:
/// the peer's name, encoded as the names of values are, and the entry's:
/// `peer/<peer>/messages/<batch>/<number>`. The entry of a file is named so, too, with `files`.
///
/// It is one line of ASCII that no shell splits, whatever the peer's name is.
struct MessageID: CustomStringConvertible {
  let peer: String
  let entry: QueueEntryID
  let isFile: Bool

  init(peer: String, entry: QueueEntryID, isFile: Bool = false) {
    self.peer = peer
    self.entry = entry
    self.isFile = isFile
  }

  /// Reads the text that `description` returned; nil for any other text.
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
