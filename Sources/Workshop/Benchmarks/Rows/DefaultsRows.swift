import AppGroup
import Foundation
import GroupDefaults
import PropertyLists

/// Reading and setting one of ten keys, against Foundation's `UserDefaults(suiteName:)` with the
/// `synchronize()` that it needs to exchange changes with another process.
enum DefaultsRows {
  static func measure(_ bench: Bench) throws -> [Row] {
    let ours = GroupDefaults(in: try bench.container("defaults"))
    // Its file lies in the user's configuration, so on that file system.
    let name = "benchmarks-\(ProcessInfo.processInfo.processIdentifier)"
    guard let theirs = UserDefaults(suiteName: name) else {
      throw Worker.Failure(description: "there are no UserDefaults here")
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
    return try get(bench, ours, theirs) + set(bench, ours, theirs)
  }

  private static func get(
    _ bench: Bench, _ ours: GroupDefaults, _ theirs: UserDefaults
  ) throws -> [Row] {
    let count = 50
    var sum = 0
    let results = try alternate(
      rounds: bench.shortRounds,
      [
        { nanosecondsPerRun(count) { sum += ours.integer(forKey: "key5") } },
        {
          nanosecondsPerRun(count) {
            theirs.synchronize()
            sum += theirs.integer(forKey: "key5")
          }
        },
        { nanosecondsPerRun(count) { sum += theirs.integer(forKey: "key5") } },
      ])
    guard sum == 0 else { throw Worker.Failure(description: "other values were read") }
    return [
      Row(
        "defaults, get / UserDefaults with synchronize()", ours: results[0], floor: results[1],
        expected: .ratioAtMost(1),
        notes: [
          "without it, and so without other processes' changes, \(fixed(results[2].median / 1_000, 2)) µs"
        ])
    ]
  }

  private static func set(
    _ bench: Bench, _ ours: GroupDefaults, _ theirs: UserDefaults
  ) throws -> [Row] {
    let count = 4
    var number = 0
    func next() -> Int {
      number += 1
      return number
    }
    let results = try alternate(
      rounds: bench.shortRounds,
      [
        { nanosecondsPerRun(count) { ours.set(next(), forKey: "key5") } },
        {
          nanosecondsPerRun(count) {
            theirs.set(next(), forKey: "key5")
            theirs.synchronize()
          }
        },
        {
          try nanosecondsPerRun(count) {
            try ours.write(.integer(Int64(next())), forKey: "key5", durability: .durable)
          }
        },
      ])
    // Many in a row: the first change after an fsync pays for the fsync's writes.
    let many = try alternate(
      rounds: bench.rounds,
      [
        { nanosecondsPerRun(50) { ours.set(next(), forKey: "key5") } },
        {
          nanosecondsPerRun(50) {
            theirs.set(next(), forKey: "key5")
            theirs.synchronize()
          }
        },
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
      Row(
        "defaults, set, 50 in a row / the same", ours: many[0], floor: many[1],
        expected: expected),
    ]
  }
}
