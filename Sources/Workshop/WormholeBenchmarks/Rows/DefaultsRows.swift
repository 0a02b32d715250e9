import Foundation
import GroupDefaults
import Wormhole
import WormholePropertyLists
import WormholeWorkshop

/// Reading and setting one of ten keys, against Foundation's `UserDefaults(suiteName:)` with the
/// `synchronize()` that it needs to exchange changes with another process.
enum DefaultsRows {
  static func measure(_ bench: Bench) throws -> [Row] {
    let container = try bench.container("defaults")
    let ours = GroupDefaults(in: container)
    // Its file lies in the user's configuration, so on that file system.
    let name = "benchmarks-\(ProcessInfo.processInfo.processIdentifier)"
    guard let theirs = UserDefaults(suiteName: name) else {
      throw Failure(description: "there are no UserDefaults here")
    }
    defer {
      theirs.removePersistentDomain(forName: name)
      theirs.synchronize()
    }
    for index in 0..<10 {
      try ours.write(.integer(0), forKey: "key\(index)")
      theirs.set(0, forKey: "key\(index)")
    }
    theirs.synchronize()
    return [try get(bench, ours, theirs: theirs)] + (try set(bench, ours, theirs: theirs))
      + [try set(bench, ours, besideUpdateIn: container)]
  }

  /// Measures setting a key beside an update of a value with the same content.
  private static func set(
    _ bench: Bench, _ ours: GroupDefaults, besideUpdateIn container: SharedContainer
  ) throws -> Row {
    let value = container.value("ten keys")
    var keys: [String: PropertyListValue] = [:]
    for index in 0..<10 { keys["key\(index)"] = .integer(0) }
    try value.replace(with: .dictionary(keys))
    var number = 0
    return try bench.compare(
      "defaults, set / update", rounds: bench.shortRounds, runs: 4,
      expected: .ratioAtMost(1.2),
      ours: {
        number += 1
        ours.set(number, forKey: "key5")
      },
      floor: {
        number += 1
        let content = PropertyListValue(number)
        try value.update { $0?["key5"] = content }
      })
  }

  private static func get(
    _ bench: Bench, _ ours: GroupDefaults, theirs: UserDefaults
  ) throws -> Row {
    var sum = 0
    let results = try alternate(
      rounds: bench.shortRounds, runs: 50,
      [
        { sum += ours.integer(forKey: "key5") },
        {
          theirs.synchronize()
          sum += theirs.integer(forKey: "key5")
        },
        { sum += theirs.integer(forKey: "key5") },
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
    func next() -> Int {
      number += 1
      return number
    }
    let set = { ours.set(next(), forKey: "key5") }
    let setTheirs = {
      theirs.set(next(), forKey: "key5")
      theirs.synchronize()
    }
    let results = try alternate(
      rounds: bench.shortRounds, runs: 4,
      [
        set, setTheirs,
        { try ours.write(.integer(Int64(next())), forKey: "key5", durability: .durable) },
      ])
    let expected: Row.Expectation? = try bench.fileSystemName() == "ext4" ? .ratioAtMost(0.2) : nil
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
