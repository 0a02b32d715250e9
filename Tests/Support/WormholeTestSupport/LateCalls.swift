import Dispatch
import Synchronization
import WormholeSystem

/// Calls, each of which has a deadline that has passed.
///
/// Where no engine answers, a request whose deadline has passed takes a second, and one without a deadline
/// ten.
package struct LateCalls {
  private let calls: [(name: String, call: @Sendable () throws -> Void)]

  package init(_ calls: KeyValuePairs<String, @Sendable () throws -> Void>) {
    self.calls = calls.map { ($0, $1) }
  }

  /// Makes all calls at the same time, whether they fail or not.
  ///
  /// - Returns: Those that took longer than their deadline allows, with their outcomes and durations.
  package func late() throws -> [String] {
    let late = Mutex<[String]>([])
    let ends = DispatchGroup()
    for (name, call) in calls {
      ends.enter()
      try startThread(name: "late call") {
        let start = ContinuousClock.now
        // Most of them report that there is no answer.
        let outcome = Result { try call() }
        let duration = ContinuousClock.now - start
        if duration > .seconds(8) {
          late.withLock { $0.append("\(name): \(outcome) after \(duration)") }
        }
        ends.leave()
      }
    }
    ends.wait()
    return late.withLock(\.self)
  }
}
