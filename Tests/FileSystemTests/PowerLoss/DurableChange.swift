import FoundationEssentials
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem

/// One durable change, with the state before it and the required state after it has returned.
struct DurableChange: Sendable, CustomTestStringConvertible {
  let testDescription: String
  var identifier = "seats"
  /// Done, and on the disk, before the change.
  var before: @Sendable (PlainValue) throws -> Void = { _ in }
  let change: @Sendable (PlainValue) throws -> Void
  let result: PropertyListValue?

  static let all: [DurableChange] = [
    DurableChange(
      testDescription: "the first write of a name",
      change: { try $0.replace(with: 7, durability: .durable) }, result: 7),
    DurableChange(
      testDescription: "an update that makes a value",
      change: { try $0.update(durability: .durable) { $0 = 7 } }, result: 7),
    DurableChange(
      testDescription: "the first write of an identifier too long for a file name",
      identifier: String(repeating: "émission/", count: 40),
      change: { try $0.replace(with: 7, durability: .durable) }, result: 7),
    DurableChange(
      testDescription: "a replacement",
      before: { try $0.replace(with: 6, durability: .durable) },
      change: { try $0.replace(with: 7, durability: .durable) }, result: 7),
    DurableChange(
      testDescription: "an update",
      before: { try $0.replace(with: 6, durability: .durable) },
      change: { try $0.update(durability: .durable) { $0 = .integer(($0?.int64Value ?? 0) + 1) } },
      result: 7),
    DurableChange(
      testDescription: "a replacement by 1 MiB",
      before: { try $0.replace(with: 6, durability: .durable) },
      change: { try $0.replace(with: large, durability: .durable) }, result: large),
    DurableChange(
      testDescription: "a removal",
      before: { try $0.replace(with: 6, durability: .durable) },
      change: { try $0.remove(durability: .durable) }, result: nil),
    DurableChange(
      testDescription: "an update that removes",
      before: { try $0.replace(with: 6, durability: .durable) },
      change: { try $0.update(durability: .durable) { $0 = nil } }, result: nil),
    // Other processes' changes without durability are not on the disk yet, and this change leaves
    // the value unchanged.
    DurableChange(
      testDescription: "an update that leaves the value as it was",
      before: { try $0.replace(with: 6, durability: .durable) },
      change: {
        try $0.replace(with: 7)
        try $0.update(durability: .durable) { $0 = 7 }
      }, result: 7),
    DurableChange(
      testDescription: "a removal of an absent value",
      before: { try $0.replace(with: 6, durability: .durable) },
      change: {
        try $0.remove()
        try $0.remove(durability: .durable)
      }, result: nil),
  ]

  private static let large = PropertyListValue.data(
    Data((0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31) }))
}
