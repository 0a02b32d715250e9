import FoundationEssentials
import Wormhole
import WormholeInspection
import WormholePropertyLists
import WormholeSystem

// `<prefix>/history`: the note of the first process that found the history of the cluster replaced.
// For people; no program uses it.
extension EtcdContainer {
  /// How long further discoveries count as the same replacement.
  private static let sameReplacement: TimeInterval = 60

  var historyKey: [UInt8] { start + Array("history".utf8) }

  func historyRecord() throws(EtcdError) -> ClusterReport.Replacement? {
    try item(historyKey).flatMap { .init($0.value) }
  }

  func note(_ replacement: EtcdReplacement) {
    do {
      let call = call()
      let old = try call.item(historyKey)
      let last = old.flatMap { ClusterReport.Replacement($0.value) }?.date.timeIntervalSinceNow
      if let last, abs(last) < Self.sameReplacement { return }
      let record: PropertyListValue = [
        "date": .date(Date()), "known": .integer(replacement.known),
        "found": .integer(replacement.found), "host": .string(Program.hostName),
      ]
      _ = try call.repeating(
        EtcdTransaction(
          if: [.exists(formatKey)] + .unchanged([(historyKey, old)]),
          then: [.put(key: historyKey, value: try record.binaryBytes())]))
    } catch {
      // Every other process of the container tries it, too.
      return
    }
  }
}

extension ClusterReport.Replacement {
  fileprivate init?(_ bytes: [UInt8]) {
    guard let value = PropertyListValue(found: bytes), let date = value["date"]?.dateValue,
      let known = value["known"]?.int64Value, let found = value["found"]?.int64Value
    else { return nil }
    self.init(date: date, known: known, found: found, host: value["host"]?.stringValue ?? "")
  }
}
