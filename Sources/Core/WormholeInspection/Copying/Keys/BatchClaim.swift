import Wormhole
import WormholePropertyLists

/// `d/<batch>`: who has taken a batch, and how far it is. A property list:
///
/// | key | what |
/// |---|---|
/// | `stamp` | of this change alone, by which its maker recognises it |
/// | `consumer` | the name of the consumer's key |
/// | `deliveries` | the record of deliveries; see `DeliveryLog` |
/// | `settled` | the entries that have ended |
/// | `marks` | the consumer's progress with entries, by their numbers |
package struct BatchClaim: Sendable {
  package var consumer: String
  package var deliveries = ""
  package var settled: Set<Int> = []
  package var marks: [String: String] = [:]

  /// Begins the mark of a file that was claimed; its id follows.
  package static let claimedMark = "claimed "

  package init(consumer: String) { self.consumer = consumer }

  /// Anything else than a claim names no consumer, so the one that finds it takes the batch over.
  package init(_ bytes: [UInt8]) {
    do throws(PropertyListError) {
      let value = try PropertyListValue(bytes: bytes)
      consumer = value["consumer"]?.stringValue ?? ""
      deliveries = value["deliveries"]?.stringValue ?? ""
      settled = Set((value["settled"]?.arrayValue ?? []).compactMap(\.intValue))
      if case .dictionary(let marks)? = value["marks"] {
        self.marks = marks.compactMapValues(\.stringValue)
      }
    } catch {
      consumer = ""
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
