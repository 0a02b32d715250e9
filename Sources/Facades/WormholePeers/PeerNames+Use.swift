package import WormholeInspection
import WormholePropertyLists

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
    case .wish: OwnUse("the last wish that \(peer) be started", is: "wish", isDictionary)
    case .pairing: OwnUse("the pairing of \(peer)", is: "pairing") { Pairing.State($0) != nil }
    case .complication:
      OwnUse("the complication transfers of \(peer)", is: "count of transfers", isDictionary)
    }
  }
}
