package import FoundationEssentials
import Wormhole
import WormholePropertyLists
import WormholeSystem

/// `<prefix>/history`: the note of the first process that found the history of the cluster
/// replaced. For people; no program uses it.
package struct HistoryRecord: Sendable, Hashable {
  package let date: Date
  package let replacement: EtcdReplacement
  package let host: String

  package init?(_ bytes: [UInt8]) {
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
  package var historyKey: [UInt8] {
    formatKey.dropLast("format".utf8.count) + Array("history".utf8)
  }

  /// Returns the record of the last replacement; nil if there was none.
  package func historyRecord() throws(EtcdError) -> HistoryRecord? {
    try client.page(.key(historyKey), limit: 1, until: soon).items.first
      .flatMap { HistoryRecord($0.value) }
  }

  func note(_ replacement: EtcdReplacement) {
    do {
      let deadline = soon
      let old = try client.page(.key(historyKey), limit: 1, until: deadline).items.first
      let last = old.flatMap { HistoryRecord($0.value) }?.date.timeIntervalSinceNow
      if let last, abs(last) < Self.sameReplacement { return }
      _ = try repeating(
        EtcdTransaction(
          if: [.exists(formatKey)] + .unchanged([(historyKey, old)]),
          then: [.put(key: historyKey, value: try HistoryRecord.bytes(replacement))]),
        until: deadline)
    } catch {
      // Each other process of the container tries it, too.
      return
    }
  }
}
