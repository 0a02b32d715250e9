import Dispatch
import Synchronization
import Wormhole
import WormholeSystem
import WormholeWorkshop

/// A worker's own presence, and its reports of the others'.
final class PresenceWatch: Sendable {
  static let name = "torture/here"
  /// The key among the last values that workers receive.
  static let key = "presence"

  private let seen: Seen
  private let registration: PresenceRegistration
  private let observation: ObservationToken

  private final class Seen: Sendable {
    let sums = Mutex<Set<UInt64>>([])
  }

  init(_ container: SharedContainer) throws {
    let presence = container.presence(Self.name)
    let seen = Seen()
    self.seen = seen
    registration = try presence.enter()
    observation = try presence.observe(
      startsWithCurrent: true, on: DispatchQueue(label: "torture.presence")
    ) { members in
      _ = seen.sums.withLock { $0.insert(Self.sum(members.map(\.processID))) }
    }
  }

  /// Returns the present processes as one number that does not depend on their order.
  static func sum(_ processes: [Int32]) -> UInt64 {
    processes.reduce(0) { $0 &+ mix(UInt64(UInt32(bitPattern: $1))) }
  }

  /// Returns whether exactly these processes were reported. They are present until all workers are
  /// to end.
  func hasSeen(_ sum: UInt64) -> Bool { seen.sums.withLock { $0.contains(sum) } }
}
