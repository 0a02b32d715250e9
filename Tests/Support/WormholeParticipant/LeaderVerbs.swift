import Foundation
import Synchronization
import Wormhole
import WormholeSystem

/// What a process does under `SharedContainer.leader`.
///
/// ```
/// lead <name>     waits until it leads, and says "leads"; takes part until the process ends
/// led <name>      how often it has led, and how many of these times have not ended
/// ```
enum LeaderVerbs {
  static let all: Set = ["lead", "led"]

  private struct Counts {
    var begun = 0
    var current = 0
  }

  private static let counts = Mutex(Counts())
  private static let latch = WakeLatch()

  static func perform(_ verb: String, _ leader: Leader) -> String {
    if verb == "lead" {
      Task {
        do {
          try await leader.lead { _ in try await work() }
        } catch {
          Diagnostics.report(error)
        }
      }
      latch.block(until: .now + .seconds(30))
      return counts.withLock { $0.begun } > 0 ? "leads" : "error late"
    }
    return counts.withLock { "\($0.begun) \($0.current)" }
  }

  private static func work() async throws {
    counts.withLock {
      $0.begun += 1
      $0.current += 1
    }
    defer { counts.withLock { $0.current -= 1 } }
    latch.raise()
    while true { try await Task.sleep(for: .seconds(60)) }
  }
}
