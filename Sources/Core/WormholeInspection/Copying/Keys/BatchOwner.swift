import Wormhole
import WormholePropertyLists

/// `d/<batch>`: the consumer that has taken a batch, and its progress. A property list:
///
/// | key | content |
/// |---|---|
/// | `stamp` | unique to this change, by which its maker recognizes it |
/// | `consumer` | the name of the consumer's key |
/// | `deliveries` | the record of deliveries; see `DeliveryLog` |
/// | `settled` | the entries that have ended |
/// | `marks` | the consumer's progress with entries, by their numbers |
package struct BatchOwner: Sendable {
  package var consumer: String
  package var deliveries = ""
  package var settled: Set<Int> = []
  package var marks: [String: String] = [:]

  /// Begins the mark of a file that was moved away; its id follows. The name in etcd is older than the word.
  package static let movedAwayMark = "claimed "

  package init(consumer: String) { self.consumer = consumer }

  /// Other content names no consumer, so the consumer that finds it takes the batch over.
  package init(_ bytes: [UInt8]) {
    let value = PropertyListValue(found: bytes)
    consumer = value?["consumer"]?.stringValue ?? ""
    deliveries = value?["deliveries"]?.stringValue ?? ""
    settled = Set((value?["settled"]?.arrayValue ?? []).compactMap(\.intValue))
    if case .dictionary(let marks)? = value?["marks"] {
      self.marks = marks.compactMapValues(\.stringValue)
    }
  }

  package func bytes(stamp: String) throws -> [UInt8] {
    var value: PropertyListValue = [
      "stamp": .string(stamp), "consumer": .string(consumer), "deliveries": .string(deliveries),
    ]
    if !settled.isEmpty {
      value["settled"] = .array(settled.sorted().map { PropertyListValue($0) })
    }
    if !marks.isEmpty { value["marks"] = .dictionary(marks.mapValues { .string($0) }) }
    return try value.binaryBytes()
  }
}
