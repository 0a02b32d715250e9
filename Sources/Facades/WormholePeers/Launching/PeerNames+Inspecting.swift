import Wormhole
package import WormholeInspection
import WormholePropertyLists

/// For programs that show a container to people.
extension PeerNames {
  /// What the package uses one of its own values for; nil for any other name.
  package static func use(ofOwnValue name: String) -> OwnUse? {
    guard let (kept, peers) = kept(name) else { return nil }
    let peer = "\"\(peers[0])\""
    let isDictionary: @Sendable (PropertyListValue) -> Bool = { $0.dictionaryValue != nil }
    return switch kept {
    case .outgoing:
      OwnUse("the state of the files that \(peer) sends", is: "state of files", isDictionary)
    case .context: OwnUse("the context from \(peer) for \"\(peers[1])\"")
    case .seen:
      OwnUse(
        "the note which context from \(peer) \"\(peers[1])\" has seen", is: "version of a context"
      ) { $0.stringValue != nil }
    case .launch:
      OwnUse("the registration of how \(peer) is started", is: "registration of a program") {
        PeerLaunch($0) != nil
      }
    case .launching:
      OwnUse("the notes on the starts of \(peer)", is: "notes on starts", isDictionary)
    }
  }

  /// What the package uses one of its own queues for; nil for any other name.
  package static func title(ofOwnQueue name: String) -> String? {
    if let peer = peer(ofOutgoingFiles: name) { return "the files that \"\(peer)\" sends" }
    if let peer = peer(ofMessages: name) { return "the messages for \"\(peer)\"" }
    return peer(ofQueue: name).map { "the files for \"\($0)\"" }
  }
}
