import Foundation
import GroupDefaults
import Wormhole
import WormholePropertyLists
import WormholeTerminals
import WormholeToolkit
import WormholeWorkshop

/// Reading and setting one of ten keys, against Foundation's `UserDefaults(suiteName:)` with the
/// `synchronize()` that it needs to exchange changes with another process.
enum DefaultsRows {
  private static let key = "key5"

  static func measure(_ bench: Bench) throws -> [Row] {
    let container = try bench.container("defaults")
    let ours = GroupDefaults(in: container)
    // Its file is in the user's configuration, so on that file system.
    let name = "benchmarks-\(ProcessInfo.processInfo.processIdentifier)"
    guard let theirs = UserDefaults(suiteName: name) else {
      throw Failure(description: "there are no UserDefaults here")
    }
    defer {
      theirs.removePersistentDomain(forName: name)
      theirs.synchronize()
    }
    let keys = Dictionary(
      uniqueKeysWithValues: (0..<10).map { ("key\($0)", PropertyListValue.integer(0)) })
    for key in keys.keys {
      try ours.write(.integer(0), forKey: key)
      theirs.set(0, forKey: key)
    }
    theirs.synchronize()
    let rows = [try get(bench, ours, theirs: theirs)] + (try set(bench, ours, theirs: theirs))
    // An update of a value with the same content.
    let value = container.value("ten keys")
    try value.replace(with: .dictionary(keys))
    var number = 0
    let besideUpdate = try bench.compare(
      "defaults, set / update", rounds: bench.shortRounds, runs: 4,
      expected: .ratioAtMost(1.2),
      ours: {
        number += 1
        ours.set(number, forKey: key)
      },
      floor: {
        number += 1
        let content = PropertyListValue(number)
        try value.update { $0?[key] = content }
      })
    return rows + [besideUpdate, try setAmongMany(bench, container)]
  }

  /// One of 1,000 settings, against the only one in a suite: each set writes the whole suite.
  private static func setAmongMany(_ bench: Bench, _ container: SharedContainer) throws -> Row {
    let (many, one) = (
      GroupDefaults(suite: "many", in: container), GroupDefaults(suite: "one", in: container)
    )
    for number in 0..<1_000 { try many.write(.string("value \(number)"), forKey: "key\(number)") }
    try one.write(.integer(0), forKey: key)
    var number = 0
    return try bench.compare(
      "defaults, set among 1,000 keys / in one", rounds: bench.shortRounds, runs: 4,
      expected: .ratioAtMost(6),
      ours: {
        number += 1
        many.set(number, forKey: key)
      },
      floor: {
        number += 1
        one.set(number, forKey: key)
      })
  }

  private static func get(
    _ bench: Bench, _ ours: GroupDefaults, theirs: UserDefaults
  ) throws -> Row {
    var sum = 0
    let results = try alternate(
      rounds: bench.shortRounds, runs: 50,
      [
        { sum += ours.integer(forKey: key) },
        {
          theirs.synchronize()
          sum += theirs.integer(forKey: key)
        },
        { sum += theirs.integer(forKey: key) },
      ])
    guard sum == 0 else { throw Failure(description: "other values were read") }
    return Row(
      "defaults, get / UserDefaults with synchronize()", ours: results[0], floor: results[1],
      expected: .ratioAtMost(1),
      notes: [
        "without it, and so without other processes' changes, \(fixed(results[2].median / 1_000, 2)) µs"
      ])
  }

  private static func set(
    _ bench: Bench, _ ours: GroupDefaults, theirs: UserDefaults
  ) throws -> [Row] {
    var number = 0
    let set = {
      number += 1
      ours.set(number, forKey: key)
    }
    let setTheirs = {
      number += 1
      theirs.set(number, forKey: key)
      theirs.synchronize()
    }
    let results = try alternate(
      rounds: bench.shortRounds, runs: 4,
      [
        set, setTheirs,
        {
          number += 1
          try ours.write(PropertyListValue(number), forKey: key, durability: .durable)
        },
      ])
    let expected = try bench.onExt4(0.2)
    return [
      Row(
        "defaults, set / UserDefaults with synchronize()", ours: results[0], floor: results[1],
        expected: expected,
        notes: [
          "UserDefaults waits for the disk, and a loss of power may leave it empty; "
            + "ours with .durable takes \(fixed(results[2].median / 1_000, 0)) µs"
        ]),
      // Many in a row: the first change after an fsync pays for the fsync's writes.
      try bench.compare(
        "defaults, set, 50 in a row / the same", rounds: bench.rounds, runs: 50,
        expected: expected, ours: set, floor: setTheirs),
    ]
  }
}

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
