import FoundationEssentials
import Wormhole
import WormholePropertyLists
import WormholeSystem

/// `<prefix>/history`: the note of the first process that found the history of the cluster
/// replaced. For people; no program uses it.
struct HistoryRecord: Sendable, Hashable {
  let date: Date
  let replacement: EtcdReplacement
  let host: String

  init?(_ bytes: [UInt8]) {
    do throws(PropertyListError) {
      let value = try PropertyListValue(bytes: bytes)
      guard let date = value["date"]?.dateValue, let known = value["known"]?.int64Value,
        let found = value["found"]?.int64Value
      else { return nil }
      self.date = date
      replacement = EtcdReplacement(known: known, found: found)
      host = value["host"]?.stringValue ?? ""
    } catch {
      return nil
    }
  }

  fileprivate static func bytes(_ replacement: EtcdReplacement) throws -> [UInt8] {
    let value: PropertyListValue = [
      "date": .date(Date()), "known": .integer(replacement.known),
      "found": .integer(replacement.found), "host": .string(Program.hostName),
    ]
    return try value.binaryBytes()
  }
}

extension EtcdContainer {
  /// How long further discoveries count as the same replacement.
  private static let sameReplacement: TimeInterval = 60

  /// The key of the record.
  var historyKey: [UInt8] {
    formatKey.dropLast("format".utf8.count) + Array("history".utf8)
  }

  /// Returns the record of the last replacement; nil if there was none.
  func historyRecord() throws(EtcdError) -> HistoryRecord? {
    try item(historyKey).flatMap { HistoryRecord($0.value) }
  }

  func note(_ replacement: EtcdReplacement) {
    do {
      let call = call()
      let old = try call.item(historyKey)
      let last = old.flatMap { HistoryRecord($0.value) }?.date.timeIntervalSinceNow
      if let last, abs(last) < Self.sameReplacement { return }
      _ = try call.repeating(
        EtcdTransaction(
          if: [.exists(formatKey)] + .unchanged([(historyKey, old)]),
          then: [.put(key: historyKey, value: try HistoryRecord.bytes(replacement))]))
    } catch {
      // Each other process of the container tries it, too.
      return
    }
  }
}
