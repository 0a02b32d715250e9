/// What an update decided to do with a value.
package enum Edit: Sendable {
  /// It stays as it is; nothing is published.
  case keep
  case replace([UInt8])
  case remove
}

/// What the body of an update threw: never a sign that the update itself lost its lease, not even
/// where it is just that of another change that the body made.
struct BodyError: Error {
  let cause: any Error
}

/// How an update is made; the parameters of `Value.update`.
package struct ModificationTerms: Sendable {
  package var durability: Durability
  package var deadline: ContinuousClock.Instant?
  package var term: Duration
  package var repeatsAfterLoss: Bool
  /// Gets the new version just before anybody can see it; again after a lost lease.
  package var willPublish: @Sendable (Stamp) -> Void

  package init(
    _ durability: Durability = .standard, _ deadline: ContinuousClock.Instant? = nil,
    _ term: Duration = LeaseTerm.standard, _ repeatsAfterLoss: Bool = true,
    willPublish: @escaping @Sendable (Stamp) -> Void = { _ in }
  ) {
    self.durability = durability
    self.deadline = deadline
    self.term = term
    self.repeatsAfterLoss = repeatsAfterLoss
    self.willPublish = willPublish
  }
}
