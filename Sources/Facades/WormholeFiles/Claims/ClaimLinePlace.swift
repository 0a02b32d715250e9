import Synchronization
import WormholeSystem

/// The place of an access in the line of this process's accesses that want to claim the same item:
/// they look at its claims one after the other. The place is left when it is released.
///
/// A look takes the site's lease, and the end of a claim would wake all its waiters. With hundreds
/// of tasks at one item none would get the lease any more, not even the task that is to publish. So
/// each access looks once on arrival; among those that must wait, the first looks at every event,
/// and each other one more rarely the longer the line before it is.
///
/// The line settles only the order of looks. Access is settled on the disk.
final class ClaimLinePlace: Sendable {
  private struct Member {
    let id: ObjectIdentifier
    let latch: WakeLatch
    /// Nil before its first look.
    var nextLook: ContinuousClock.Instant?
    var wantsToLook = false
  }

  private struct Line {
    /// In the order of their arrival.
    var members: [Member] = []
    var looking: ObjectIdentifier?

    /// The next one looks.
    mutating func passOn() -> WakeLatch? {
      let next = members.firstIndex(where: \.wantsToLook)
      looking = next.map { members[$0].id }
      guard let next else { return nil }
      members[next].wantsToLook = false
      return members[next].latch
    }
  }

  private static let lines = Mutex<[ItemPath: Line]>([:])

  private let location: ItemPath
  private var id: ObjectIdentifier { ObjectIdentifier(self) }

  /// - Parameter latch: raised when it is this place's turn.
  init(at location: ItemPath, _ latch: WakeLatch) {
    self.location = location
    let member = Member(id: ObjectIdentifier(self), latch: latch)
    Self.lines.withLock { $0[location, default: Line()].members.append(member) }
  }

  deinit {
    let latches = update { line, place in
      line.members.remove(at: place)
      // It has the claim, or has given up: the next one watches now.
      let first = place == 0 ? line.members.first?.latch : nil
      return [first, line.looking == id ? line.passOn() : nil]
    }
    for latch in latches { latch?.raise() }
  }

  /// Whether it may look now; then no other access looks before this one has reported its finding.
  func mayLook(now: ContinuousClock.Instant = .now) -> Bool {
    update { line, place in
      if line.looking == id { return true }
      if place > 0, let nextLook = line.members[place].nextLook, now < nextLook { return false }
      line.members[place].wantsToLook = line.looking != nil
      if line.looking == nil { line.looking = id }
      return line.looking == id
    }
  }

  /// It has looked, and must wait.
  ///
  /// - Returns: the number of places before it.
  func mustWait(now: ContinuousClock.Instant = .now) -> Int {
    let (place, next) = update { line, place in
      line.members[place].nextLook = now + AccessTerms.interval * (place + 1)
      return (place, line.looking == id ? line.passOn() : nil)
    }
    next?.raise()
    return place
  }

  private func update<Result: Sendable>(_ body: (inout Line, Int) -> Result) -> Result {
    Self.lines.withLock { lines in
      var line = lines[location] ?? Line()
      defer { lines[location] = line.members.isEmpty ? nil : line }
      guard let place = line.members.firstIndex(where: { $0.id == id }) else {
        preconditionFailure("a place is in its line until it is released")
      }
      return body(&line, place)
    }
  }
}
