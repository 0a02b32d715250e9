/// The open operations that have been applied already.
///
/// Operations take slots when they are called and release them when they return, so one word is
/// enough for up to 64 concurrent operations, however long the history is.
struct OpenSet: Hashable {
  private var first: UInt64 = 0
  private var rest: [UInt64] = []

  init(slots: Int) {
    if slots > 64 { rest = Array(repeating: 0, count: (slots - 1) / 64) }
  }

  mutating func insert(_ slot: Int) {
    if slot < 64 {
      first |= 1 << UInt64(slot)
    } else {
      rest[slot / 64 - 1] |= 1 << UInt64(slot % 64)
    }
  }

  mutating func remove(_ slot: Int) {
    if slot < 64 {
      first &= ~(1 << UInt64(slot))
    } else {
      rest[slot / 64 - 1] &= ~(1 << UInt64(slot % 64))
    }
  }
}
