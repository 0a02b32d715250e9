import Synchronization
import WormholeSystem

/// An access's place in the line of this process's accesses that want to change the same item, or in
/// the line of its readers: they look for its holder one after another. The place is left when it is
/// released.
///
/// The end of an access would wake all its waiters, hundreds perhaps, each with its own descriptor of the
/// lease. So each access looks once on arrival. Of those that must wait, the first looks at every
/// event, and each other one less often the longer the line before it is.
///
/// The line settles only the order of looks. Access is settled on the disk.
final class LinePlace: Sendable {
  private struct Member {
    enum Turn { case waits, wantsToLook, looks }

    let id: ObjectIdentifier
    let latch: WakeLatch
    /// Nil before its first look.
    var nextLook: ContinuousClock.Instant?
    var turn = Turn.waits
  }

  /// In the order of their arrival.
  private typealias Line = [Member]

  private struct Key: Hashable {
    let location: ItemPath
    let isReading: Bool
  }

  private static let lines = Mutex<[Key: Line]>([:])

  private let key: Key
  private var id: ObjectIdentifier { ObjectIdentifier(self) }

  /// - Parameter latch: raised when it is this place's turn.
  init(at location: ItemPath, isReading: Bool, _ latch: WakeLatch) {
    key = Key(location: location, isReading: isReading)
    let member = Member(id: ObjectIdentifier(self), latch: latch)
    Self.lines.withLock { [key] in $0[key, default: []].append(member) }
  }

  deinit {
    let latches = update { line, place in
      let left = line.remove(at: place)
      // It has access, or has given up: the next one now watches.
      let first = place == 0 ? line.first?.latch : nil
      return [first, left.turn == .looks ? Self.passOn(&line) : nil]
    }
    for latch in latches { latch?.raise() }
  }

  /// - Returns: nil if it may look now; no other access then looks before this one has reported its
  ///   finding. Otherwise when to ask again, unless the latch is raised first.
  func nextLook(until deadline: ContinuousClock.Instant) -> ContinuousClock.Instant? {
    update { line, place in
      if line[place].turn == .looks { return nil }
      if place > 0, let nextLook = line[place].nextLook, .now < nextLook {
        return min(nextLook, deadline)
      }
      line[place].turn = line.contains { $0.turn == .looks } ? .wantsToLook : .looks
      return line[place].turn == .looks ? nil : deadline
    }
  }

  /// It has looked, and must wait.
  ///
  /// - Returns: the number of places before it.
  func mustWait() -> Int {
    let (place, next) = update { line, place in
      line[place].nextLook = .now + AccessTerms.interval * (place + 1)
      let looked = line[place].turn == .looks
      line[place].turn = .waits
      return (place, looked ? Self.passOn(&line) : nil)
    }
    next?.raise()
    return place
  }

  /// The next one looks.
  private static func passOn(_ line: inout Line) -> WakeLatch? {
    guard let next = line.firstIndex(where: { $0.turn == .wantsToLook }) else { return nil }
    line[next].turn = .looks
    return line[next].latch
  }

  private func update<Result: Sendable>(_ body: (inout Line, Int) -> Result) -> Result {
    Self.lines.withLock { lines in
      // Changed in place: a copy for each look makes thousands of waiting accesses stand still.
      func inPlace(_ line: inout Line) -> Result {
        guard let place = line.firstIndex(where: { $0.id == id }) else {
          preconditionFailure("a place is in its line until it is released")
        }
        return body(&line, place)
      }
      defer { if lines[key]?.isEmpty == true { lines[key] = nil } }
      return inPlace(&lines[key, default: []])
    }
  }
}
