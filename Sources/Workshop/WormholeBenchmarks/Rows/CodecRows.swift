import Foundation
import WormholePropertyLists
import WormholeWorkshop

/// Encoding and decoding a typical message, against Foundation's coders for the same content.
enum CodecRows {
  private struct Message: Codable {
    let film, buyer, note: String
    let seats: [Int]
    let id: Int
    let price: Double
    let paid: Bool
    let at: Date
  }

  static func measure(_ bench: Bench) throws -> [Row] {
    let typed = Message(
      film: "Metropolis", buyer: "Freder Fredersen, Upper City",
      note: "The mediator between head and hands", seats: [7, 8, 9], id: 34340, price: 12.5,
      paid: true, at: Date(timeIntervalSinceReferenceDate: 700_000_000))
    let message = try PropertyListValue(encoding: typed)
    let bytes = try message.binaryBytes()
    let data = Data(bytes)
    let encoder = PropertyListEncoder()
    encoder.outputFormat = .binary
    let decoder = PropertyListDecoder()
    let runs = 50
    return [
      try bench.compare(
        "encode a message / PropertyListEncoder", rounds: bench.shortRounds, runs: runs,
        expected: .oursAtMost(1), notes: ["\(bytes.count) bytes"],
        ours: { _ = try message.binaryBytes() }, floor: { _ = try encoder.encode(typed) }),
      try bench.compare(
        "decode it, and check it / PropertyListDecoder", rounds: bench.shortRounds, runs: runs,
        expected: .oursAtMost(1), ours: { _ = try PropertyListValue(bytes: bytes) },
        floor: { _ = try decoder.decode(Message.self, from: data) }),
    ]
  }
}
