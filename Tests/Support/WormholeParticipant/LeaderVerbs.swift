import Foundation
import Synchronization
import Wormhole
import WormholeSystem

/// What a process does under `SharedContainer.leader`.
///
/// ```
/// lead <name>     waits for its first turn, and says "leads"; takes part until the process ends
/// turns <name>    the number of its turns, and of those that have not ended
/// ```
enum LeaderVerbs {
  static let all: Set = ["lead", "turns"]

  private struct Turns {
    var begun = 0
    var current = 0
  }

  private static let turns = Mutex(Turns())
  private static let latch = WakeLatch()

  static func perform(_ verb: String, _ leader: Leader) -> String {
    if verb == "lead" {
      Task {
        do {
          try await leader.lead { _ in try await takeTurn() }
        } catch {
          Diagnostics.report(error)
        }
      }
      latch.block(until: .now + .seconds(30))
      return turns.withLock { $0.begun } > 0 ? "leads" : "error late"
    }
    return turns.withLock { "\($0.begun) \($0.current)" }
  }

  private static func takeTurn() async throws {
    turns.withLock {
      $0.begun += 1
      $0.current += 1
    }
    defer { turns.withLock { $0.current -= 1 } }
    latch.raise()
    while true { try await Task.sleep(for: .seconds(60)) }
  }
}
