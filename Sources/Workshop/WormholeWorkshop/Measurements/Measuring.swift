import Dispatch
import Synchronization
import Wormhole
package import WormholeSystem

/// The reason why a row cannot be measured.
package typealias Failure = LineProcess.Failure

/// Returns the nanoseconds for each of `count` runs of an operation.
package func nanosecondsPerRun(
  _ count: Int = 1, _ operation: () throws -> Void
) rethrows -> Double {
  let begin = ContinuousClock.now
  for _ in 0..<count { try operation() }
  return (ContinuousClock.now - begin).nanoseconds / Double(count)
}

/// Returns the median of `count` measurements.
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

/// Measures `count` senders that work at once, each `each` times on a thread of its own.
///
/// - Parameter make: Returns the operation of a sender.
/// - Returns: The nanoseconds that each run takes of the whole.
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

  /// Runs the code of a thread, which has no caller for its errors.
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

  /// Returns the value below which a part of all values lies; nil without values.
  package func quantile(_ part: Double) -> Double? {
    guard !isEmpty else { return nil }
    return sorted()[Swift.min(Int(part * Double(count)), count - 1)]
  }
}
