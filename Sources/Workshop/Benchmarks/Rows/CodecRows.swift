import Foundation
import PropertyLists

/// Encoding and decoding a typical message, against Foundation's codec for the same content.
enum CodecRows {
  private static let message: PropertyListValue = [
    "film": "Metropolis", "seats": [7, 8, 9], "price": 12.5, "paid": true, "id": 34340,
    "buyer": "Freder Fredersen, Upper City", "note": "The mediator between head and hands",
    "at": .date(Date(timeIntervalSinceReferenceDate: 700_000_000)),
  ]

  static func measure(_ bench: Bench) throws -> [Row] {
    let bytes = try message.binaryBytes()
    let data = Data(bytes)
    let object = message.propertyListObject
    let runs = 50
    return [
      try bench.compare(
        "encode a message / PropertyListSerialization", rounds: bench.shortRounds, runs: runs,
        expected: .oursAtMost(1), notes: ["\(bytes.count) bytes"],
        ours: { _ = try message.binaryBytes() },
        floor: {
          _ = try PropertyListSerialization.data(
            fromPropertyList: object, format: .binary, options: 0)
        }),
      try bench.compare(
        "decode it, and check it / PropertyListSerialization", rounds: bench.shortRounds,
        runs: runs, expected: .oursAtMost(1),
        ours: { _ = try PropertyListValue(bytes: bytes) },
        floor: { _ = try PropertyListSerialization.propertyList(from: data, format: nil) }),
    ]
  }
}
