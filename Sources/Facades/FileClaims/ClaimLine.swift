import AppGroup
import Synchronization

/// The accesses of this process that want to claim the same item: they look at its claims one after
/// the other.
///
/// A look takes the site's lease, and the end of a claim would wake all its waiters. With hundreds of
/// tasks at one item none would get the lease any more, not even the one that is to publish. So each
/// access looks once on arrival; of those that must wait the first looks at every event, and each
/// other one the more rarely the longer the line before it is.
///
/// The line settles only the order of looks. Access is settled on the disk.
final class ClaimLine: Sendable {
  /// A place in the line of an item, until it is released.
  final class Place: Sendable {
    fileprivate let latch: WakeLatch
    private let location: ItemPath

    /// - Parameter latch: raised when it is this place's turn.
    init(at location: ItemPath, _ latch: WakeLatch) {
      self.location = location
      self.latch = latch
    }

    deinit { ClaimLine.shared.leave(ObjectIdentifier(self), location) }

    /// Whether it may look now; then no other access looks before this one has reported its finding.
    func mayLook(now: ContinuousClock.Instant = .now) -> Bool {
      ClaimLine.shared.mayLook(ObjectIdentifier(self), latch, location, now)
    }

    /// It has looked, and must wait.
    ///
    /// - Returns: how many wait before it.
    func mustWait(now: ContinuousClock.Instant = .now) -> Int {
      ClaimLine.shared.mustWait(ObjectIdentifier(self), latch, location, now)
    }
  }

  private struct Member {
    let id: ObjectIdentifier
    let latch: WakeLatch
    var nextLook: ContinuousClock.Instant?
  }

  private struct State {
    var looking: ObjectIdentifier?
    /// Want to look, in their order.
    var wanting: [Member] = []
    /// Have looked, in their order.
    var waiting: [Member] = []

    var isEmpty: Bool { looking == nil && wanting.isEmpty && waiting.isEmpty }

    /// The next one looks.
    mutating func passOn() -> WakeLatch? {
      guard !wanting.isEmpty else {
        looking = nil
        return nil
      }
      let next = wanting.removeFirst()
      looking = next.id
      return next.latch
    }
  }

  static let shared = ClaimLine()

  private let lines = Mutex<[ItemPath: State]>([:])

  private func mayLook(
    _ id: ObjectIdentifier, _ latch: WakeLatch, _ location: ItemPath,
    _ now: ContinuousClock.Instant
  ) -> Bool {
    lines.withLock { lines in
      var state = lines[location] ?? State()
      defer { lines[location] = state }
      if state.looking == id { return true }
      if let place = state.waiting.firstIndex(where: { $0.id == id }), place > 0,
        let nextLook = state.waiting[place].nextLook, now < nextLook
      {
        return false
      }
      if state.looking == nil {
        state.looking = id
        return true
      }
      if !state.wanting.contains(where: { $0.id == id }) {
        state.wanting.append(Member(id: id, latch: latch))
      }
      return false
    }
  }

  private func mustWait(
    _ id: ObjectIdentifier, _ latch: WakeLatch, _ location: ItemPath,
    _ now: ContinuousClock.Instant
  ) -> Int {
    let (place, next) = lines.withLock { lines -> (Int, WakeLatch?) in
      var state = lines[location] ?? State()
      defer { lines[location] = state }
      let place = state.waiting.firstIndex { $0.id == id } ?? state.waiting.count
      if place == state.waiting.count { state.waiting.append(Member(id: id, latch: latch)) }
      state.waiting[place].nextLook = now + Patience.interval * (place + 1)
      return (place, state.looking == id ? state.passOn() : nil)
    }
    next?.raise()
    return place
  }

  private func leave(_ id: ObjectIdentifier, _ location: ItemPath) {
    let latches = lines.withLock { lines -> [WakeLatch] in
      guard var state = lines[location] else { return [] }
      var latches: [WakeLatch] = []
      state.wanting.removeAll { $0.id == id }
      let wasFirst = state.waiting.first?.id == id
      state.waiting.removeAll { $0.id == id }
      // It has the claim, or has given up: the next one watches now.
      if wasFirst, let first = state.waiting.first { latches.append(first.latch) }
      if state.looking == id, let next = state.passOn() { latches.append(next) }
      lines[location] = state.isEmpty ? nil : state
      return latches
    }
    for latch in latches { latch.raise() }
  }
}
