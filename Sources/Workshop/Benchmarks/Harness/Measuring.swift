/// Returns the nanoseconds for each of `count` runs of an operation.
func nanosecondsPerRun(_ count: Int, _ operation: () throws -> Void) rethrows -> Double {
  let begin = ContinuousClock.now
  for _ in 0..<count { try operation() }
  return (ContinuousClock.now - begin).nanoseconds / Double(count)
}

/// Measures several things alternately (A B C, C B A, …), so that other activity of the machine
/// affects all of them alike.
///
/// - Returns: For each thing, its result in each round.
func alternate(rounds: Int, _ things: [() throws -> Double]) throws -> [[Double]] {
  var results = [[Double]](repeating: [], count: things.count)
  // The first round fills caches and does not count.
  for thing in things { _ = try thing() }
  for round in 0..<rounds {
    let order = round.isMultiple(of: 2) ? Array(things.indices) : things.indices.reversed()
    for index in order { results[index].append(try things[index]()) }
  }
  return results
}

extension Duration {
  var nanoseconds: Double {
    let (seconds, attoseconds) = components
    return Double(seconds) * 1e9 + Double(attoseconds) / 1e9
  }
}

extension [Double] {
  var median: Double { quantile(0.5) }

  /// Returns the value below which a part of all values lies.
  func quantile(_ part: Double) -> Double {
    precondition(!isEmpty, "nothing was measured")
    let sorted = self.sorted()
    return sorted[Swift.min(Int(part * Double(count)), count - 1)]
  }
}
