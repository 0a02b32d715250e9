import AppGroup
import Dispatch
import Synchronization
import SystemCalls

/// A worker's own presence, and what it is told of the others'.
final class PresenceWatch: Sendable {
  static let name = "torture/here"
  /// Among the last values that workers are told.
  static let key = "presence"

  private let seen: Seen
  private let registration: PresenceRegistration
  private let observation: Observation

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

  /// Who is here as one number, whatever the order.
  static func sum(_ processes: [Int32]) -> UInt64 {
    processes.reduce(0) { $0 &+ mix(UInt64(UInt32(bitPattern: $1))) }
  }

  /// Whether it was told that exactly these are here. They are until they were all told to end.
  func hasSeen(_ sum: UInt64) -> Bool { seen.sums.withLock { $0.contains(sum) } }
}
