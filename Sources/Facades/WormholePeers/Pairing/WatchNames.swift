import Wormhole
package import WormholeInspection
import WormholePropertyLists

/// The package's own names under which a phone's and a watch's values are found, beside `PeerNames`.
///
/// ```
/// value     peer/pairing/<side>         its companions
/// value     peer/complication/<watch>   the transfers for its complication
/// ```
package enum WatchNames {
  private enum Kind: String {
    case pairing, complication
  }

  package static func pairing(_ side: String) -> String {
    PeerNames.name(Kind.pairing.rawValue, side)
  }

  package static func complication(_ watch: String) -> String {
    PeerNames.name(Kind.complication.rawValue, watch)
  }

  /// What the package keeps in one of its own values, for programs that show a container to people;
  /// nil for any other name.
  package static func use(ofOwnValue name: String) -> OwnUse? {
    guard let parts = PeerNames.parts(of: name), parts.count == 2 else { return nil }
    switch Kind(rawValue: parts[0]) {
    case .pairing:
      return OwnUse("the pairing of \"\(parts[1])\"", is: "pairing") { Pairing.State($0) != nil }
    case .complication:
      return OwnUse("the complication transfers of \"\(parts[1])\"", is: "count of transfers") {
        $0.dictionaryValue != nil
      }
    case nil: return nil
    }
  }
}
