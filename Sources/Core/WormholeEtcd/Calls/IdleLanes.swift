/// The lanes of a mailbox that no sender has used for so long that no copy of a post can arrive.
///
/// A lane is idle if it had no post between two looks, so it stays between one and two ages.
struct IdleLanes {
  let age: Duration
  private var looked: EtcdMoment?
  private var next: ContinuousClock.Instant

  init(age: Duration) {
    self.age = age
    next = .now + age
  }

  var isDue: Bool { .now >= next }

  /// Takes a look, and returns the idle lanes in it.
  mutating func take(_ lanes: EtcdClient.Content) -> [KeyValue] {
    defer {
      looked = lanes.moment
      next = .now + age
    }
    guard let looked, looked.history == lanes.moment.history else { return [] }
    return lanes.items.filter { $0.modified <= looked.revision }
  }
}
