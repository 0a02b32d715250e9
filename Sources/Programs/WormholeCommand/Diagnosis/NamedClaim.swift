import Wormhole

struct NamedClaim: Listed {
  let claim: Claim
  let holder: Claim.Holder

  private var name: String { claim.name }

  static let head = ["CLAIM", "HOLDER", "SINCE", "UNTIL"]

  var cells: [String] {
    let process = holder.processID.map { ", process \($0)" } ?? ""
    return [name, holder.who + process, holder.since.secondsText, holder.until.secondsText]
  }

  func encode(to encoder: any Encoder) throws {
    try holder.encode(to: encoder)
    try (["name": name] as JSONObject).encode(to: encoder)
  }
}
