/// The calls and returns of steps in the order of time, as a list from which steps can be lifted
/// and put back (Wing & Gong, “Testing and verifying concurrent objects”, 1993).
///
/// Entry 2·s is the call of step s and entry 2·s+1 its return; steps that may be left out never
/// return. At equal times calls come before returns, so operations that only touch count as
/// concurrent.
struct Timeline {
  /// The steps in the order of their returns.
  let returns: [Int]
  /// The slot of each step in an `OpenSet`.
  let slots: [Int]
  let slotCount: Int

  private var next: [Int]
  private var previous: [Int]
  private let head: Int

  init(_ steps: [Step]) {
    var events: [(time: UInt64, entry: Int)] = []
    events.reserveCapacity(2 * steps.count)
    for (step, details) in steps.enumerated() {
      events.append((details.invocation, 2 * step))
      if let response = details.response { events.append((response, 2 * step + 1)) }
    }
    events.sort { left, right in
      if left.time != right.time { return left.time < right.time }
      return (left.entry % 2, left.entry) < (right.entry % 2, right.entry)
    }

    head = 2 * steps.count
    next = Array(repeating: head, count: head + 1)
    previous = next
    var returns: [Int] = []
    var slots = Array(repeating: 0, count: steps.count)
    var free: [Int] = []
    var used = 0
    var last = head
    for (_, entry) in events {
      next[last] = entry
      previous[entry] = last
      last = entry
      let step = entry / 2
      if entry % 2 == 1 {
        returns.append(step)
        free.append(slots[step])
      } else if let slot = free.popLast() {
        slots[step] = slot
      } else {
        slots[step] = used
        used += 1
      }
    }
    next[last] = head
    previous[head] = last
    self.returns = returns
    self.slots = slots
    slotCount = used
  }

  /// Returns the first unapplied step that is called before the first outstanding return, or the
  /// next one after a step.
  func firstOpen() -> Int? { open(next[head]) }
  func nextOpen(after step: Int) -> Int? { open(next[2 * step]) }

  private func open(_ entry: Int) -> Int? { entry == head || entry % 2 == 1 ? nil : entry / 2 }

  mutating func lift(_ step: Int, returning: Bool) {
    unlink(2 * step)
    if returning { unlink(2 * step + 1) }
  }

  /// Undoes the latest `lift` that is not undone.
  mutating func putBack(_ step: Int, returning: Bool) {
    if returning { relink(2 * step + 1) }
    relink(2 * step)
  }

  private mutating func unlink(_ entry: Int) {
    next[previous[entry]] = next[entry]
    previous[next[entry]] = previous[entry]
  }

  private mutating func relink(_ entry: Int) {
    next[previous[entry]] = entry
    previous[next[entry]] = entry
  }
}

/// The open operations that have been applied already.
///
/// Operations take slots when they are called and release them when they return, so one word is
/// enough for up to 64 concurrent operations, however long the history is.
struct OpenSet: Hashable {
  private var words: [UInt64]

  init(slots: Int) { words = Array(repeating: 0, count: slots / 64 + 1) }

  mutating func insert(_ slot: Int) { words[slot / 64] |= 1 << UInt64(slot % 64) }

  mutating func remove(_ slot: Int) { words[slot / 64] &= ~(1 << UInt64(slot % 64)) }
}
