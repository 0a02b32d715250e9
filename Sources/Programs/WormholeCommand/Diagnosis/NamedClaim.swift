import Wormhole
import WormholePropertyLists

struct NamedClaim: JSONObject {
  let claim: Claim
  let holder: Claim.Holder

  private var name: String { claim.name }

  static let head = ["CLAIM", "HOLDER", "SINCE", "UNTIL"]

  var cells: [String] {
    let process = holder.processID.map { ", process \($0)" } ?? ""
    return [name, holder.who + process, holder.since.secondsText, holder.until.secondsText]
  }

  var propertyList: PropertyListValue {
    .object([
      "name": name, "who": holder.who, "since": holder.since.wholeSeconds,
      "until": holder.until.wholeSeconds, "process": holder.processID,
      "fence": Int64(clamping: holder.fence),
    ])
  }
}
