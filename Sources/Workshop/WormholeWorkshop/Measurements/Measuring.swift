import Dispatch
import Synchronization
package import Wormhole
import WormholeSystem
package import WormholeToolkit

/// Why a row cannot be measured.
package typealias Failure = LineProcess.Failure

/// Returns the nanoseconds for each of `count` runs of an operation.
package func nanosecondsPerRun(
  _ count: Int = 1, _ operation: () throws -> Void
) rethrows -> Double {
  let begin = ContinuousClock.now
  for _ in 0..<count { try operation() }
  return (ContinuousClock.now - begin).nanoseconds / Double(count)
}

package func median(of count: Int, _ measure: () throws -> Double) rethrows -> Double {
  try (0..<count).map { _ in try measure() }.median
}

/// Measures several operations alternately (A B C, C B A, …), so that other activity of the machine
/// affects all of them alike.
///
/// - Returns: For each operation, its result in each round.
package func alternate(rounds: Int, _ things: [() throws -> Double]) throws -> [[Double]] {
  var results = [[Double]](repeating: [], count: things.count)
  // The first round fills caches and does not count.
  for thing in things { _ = try thing() }
  for round in 0..<rounds {
    let order = round.isMultiple(of: 2) ? Array(things.indices) : things.indices.reversed()
    for index in order { results[index].append(try things[index]()) }
  }
  return results
}

/// As above, for operations that are run `count` times in each round.
///
/// - Returns: For each operation, the nanoseconds of a run in each round.
package func alternate(
  rounds: Int, runs count: Int, _ operations: [() throws -> Void]
) throws -> [[Double]] {
  try alternate(
    rounds: rounds, operations.map { operation in { try nanosecondsPerRun(count, operation) } })
}

/// Measures `count` senders that work at once, each `each` times on its own thread.
///
/// - Parameter make: Returns the operation of a sender.
/// - Returns: Each run's share of the whole in nanoseconds.
package func nanosecondsPerRun(
  threads count: Int, each: Int, _ make: (Int) -> @Sendable () throws -> Void
) throws -> Double {
  let group = DispatchGroup()
  let failure = FirstFailure()
  let time = nanosecondsPerRun {
    for number in 0..<count {
      let run = make(number)
      Blocking.queue().async(group: group) {
        failure.noting { for _ in 0..<each { try run() } }
      }
    }
    group.wait()
  }
  try failure.check()
  return time / Double(count * each)
}

/// The first failure of several threads.
package final class FirstFailure: Sendable {
  private let first = Mutex<(any Error)?>(nil)

  package init() {}

  package func note(_ error: any Error) { first.withLock { $0 = $0 ?? error } }

  /// Runs a thread's code, which has no caller for its errors.
  package func noting(_ body: () throws -> Void) { do { try body() } catch { note(error) } }

  package func check() throws { if let error = first.withLock({ $0 }) { throw error } }
}

extension Bench {
  /// Measures an operation and its floor, each `count` times in a round.
  package func compare(
    _ name: String, rounds: Int, runs count: Int, expected expectation: Row.Expectation? = nil,
    notes: [String] = [], ours: @escaping () throws -> Void, floor: @escaping () throws -> Void
  ) throws -> Row {
    try compare(
      name, rounds: rounds, expected: expectation, notes: notes,
      ours: { try nanosecondsPerRun(count, ours) }, floor: { try nanosecondsPerRun(count, floor) })
  }

  /// As above, for sides that measure their own time: each returns the nanoseconds of a round.
  package func compare(
    _ name: String, _ unit: Row.Unit = .microseconds, rounds: Int,
    expected expectation: Row.Expectation? = nil, notes: [String] = [],
    ours: @escaping () throws -> Double, floor: @escaping () throws -> Double
  ) throws -> Row {
    let results = try alternate(rounds: rounds, [ours, floor])
    return Row(name, unit, ours: results[0], floor: results[1], expected: expectation, notes: notes)
  }
}

extension Duration {
  package var nanoseconds: Double { self / .nanoseconds(1) }
}

extension [Double] {
  /// The median of measurements, of which there is at least one.
  package var median: Double { quantile(0.5) ?? .nan }

  /// Returns the value below which a part of all values is; nil without values.
  package func quantile(_ part: Double) -> Double? {
    guard !isEmpty else { return nil }
    return sorted()[Swift.min(Int(part * Double(count)), count - 1)]
  }
}

/// The place of a run: its own directory, which `remove` removes at the end.
package final class Bench {
  package let path: String
  package let isQuick: Bool

  /// The number of rounds for rows with other processes.
  package var rounds: Int { isQuick ? 5 : 15 }

  /// The number of short rounds in this process alone. As a rule, each is over before the scheduler
  /// gives the core to another process, so a busy machine hardly disturbs the median.
  package var shortRounds: Int { isQuick ? 25 : 201 }

  /// Makes the directory.
  package init(under directory: String, isQuick: Bool) throws {
    let base =
      directory.hasPrefix("/") ? directory : try linkTarget("/proc/self/cwd") + "/" + directory
    path = "\(base)/benchmarks-\(Program.processID)"
    self.isQuick = isQuick
    try makeDirectory(path)
    // ext4 skips every inode of a group that was freed in the last minute, so rows in one group slow
    // each other down, and so do other programs. With this attribute each row's directory gets its
    // own group (chattr(1), "T"). Elsewhere the rows disturb each other, but ours as much as the
    // floor.
    try? runQuietly("chattr", ["+T", path])
  }

  package func remove() throws { try removeTree(path) }

  /// Creates an empty directory below the run's.
  package func directory(_ name: String) throws -> String {
    let made = path + "/" + name
    try makeDirectory(made)
    return made
  }

  package func container(_ name: String) throws -> SharedContainer {
    try SharedContainer(path: try directory(name))
  }

  /// Makes a container with a value, and the floor's value beside it.
  package func value(_ name: String) throws -> (ours: PlainValue, floor: RawValue) {
    (try container(name).value("value"), try RawValue(path + "/" + name, "raw"))
  }

  /// Returns the number itself, or a tenth of it in a quick run.
  package func scaled(_ number: Int) -> Int { isQuick ? max(number / 10, 1) : number }

  package func fileSystemName() throws -> String {
    let magic = try FileDescriptor.open(path, [.pathOnly, .directory]).fileSystem().magic
    // The numbers are those of statfs(2).
    let names: [UInt32: String] = [
      0xEF53: "ext4", 0x0102_1994: "tmpfs", 0x5846_5342: "xfs", 0x9123_683E: "btrfs",
      0x794C_7630: "overlayfs", 0x2FC1_2FC1: "zfs", 0xF2F5_2010: "f2fs",
    ]
    return names[magic] ?? "file system 0x" + String(magic, radix: 16)
  }

  /// An expected ratio on ext4; there is none on other file systems.
  package func onExt4(_ limit: Double) throws -> Row.Expectation? {
    try fileSystemName() == "ext4" ? .ratioAtMost(limit) : nil
  }
}
