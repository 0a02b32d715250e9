import WormholePropertyLists

/// A send on its way.
package struct Submission: Sendable {
  package let entry: Batch.Entry
  /// The bytes that it adds to its file.
  let footprint: PropertyListFootprint
  let durability: Durability
  let place: Place
  /// The role under which it is stored; nil for any process at any time.
  let role: RoleProof?
  let settle: @Sendable (Result<QueueEntryID, any Error>) -> Void

  /// Its place in the queue.
  package struct Place: Hashable {
    package let priority: EntryPriority
    /// Nanoseconds; nil for none.
    package let delay: UInt64?

    /// The longest delay: a century.
    private static let longest: Int64 = 3_155_760_000

    package init(_ priority: EntryPriority = .standard, _ delay: Duration? = nil) {
      self.priority = priority
      let delay = delay.flatMap { $0 > .zero ? min($0, .seconds(Self.longest)) : nil }
      self.delay = delay.map { max(1, UInt64($0 / .nanoseconds(1))) }
    }
  }

  init(
    _ entry: Batch.Entry, durability: Durability, place: Place = .init(),
    under role: RoleProof? = nil,
    _ settle: @escaping @Sendable (Result<QueueEntryID, any Error>) -> Void
  ) {
    self.entry = entry
    footprint = entry.footprint
    self.durability = durability
    self.place = place
    self.role = role
    self.settle = settle
  }
}
