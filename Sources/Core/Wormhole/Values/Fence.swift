public import WormholePropertyLists
import WormholeSystem

/// The proof that a role, or a claim, still belongs to one holder: a change with it is refused once another holder
/// has it, even if its process was stopped just before.
///
/// It is checked in the same step as the change, so unlike `PresenceRegistration.confirm()` it leaves no moment
/// between. Any process that knows the number may use it: a command under `wormhole presence enter --exclusive` has
/// it in `WORMHOLE_FENCE`, and `wormhole claim` prints it.
///
/// ```swift
/// let role = try await container.presence("cleaner").enterExclusively()
/// try await container.value("rooms").update(while: role.fence) { $0 = ["clean": true] }
/// try await container.queue("jobs").sender("cleaner").enqueue("next", while: role.fence)
/// ```
public struct Fence: Sendable {
  /// Larger with each holder under the name, so that other systems can refuse a smaller one than they have seen:
  /// on etcd the revision; in a directory the milliseconds since 1970, or one more than the last number.
  ///
  /// If the record of the last holder in a directory was removed, for example by a sweep a day after the
  /// last use, this holds only if the clock was not set back.
  public let number: UInt64

  package let proof: RoleProof

  init(_ proof: RoleProof, _ number: UInt64) {
    self.proof = proof
    self.number = number
  }
}

extension Value {
  /// Reads the value, changes it and publishes the result, as `update` without a fence, but only as
  /// long as the role belongs to the fence's entering.
  ///
  /// - Parameters:
  ///   - fence: The fence of a role in the same container.
  ///   - durability: The failures that the write survives.
  ///   - deadline: The latest instant to wait for the leases; by default `standardWait` from now.
  ///   - term: As in `update`; for the lease of the role, too.
  ///   - body: As in `update`: may run more than once; an unchanged value is not published again.
  /// - Returns: The result of `body`.
  /// - Throws: `leaseLost` if another process has entered since, or the role has ended; then nothing
  ///   has changed. Otherwise as `update`.
  /// - Complexity: As `SharedContainer.update` of one value; on etcd two round trips, and one more if it
  ///   is refused or changes nothing.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func update<Result: Sendable>(
    while fence: Fence, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil, term: Duration = Value.standardTerm,
    _ body: @escaping @Sendable (inout PropertyListValue?) throws -> Result
  ) throws -> Result {
    let terms = ChangeTerms(durability, until: deadline, term: term)
    return try change(under: fence.proof, terms, body).run()
  }

  /// Reads, changes and publishes under a fence; see the form without `async`.
  public func update<Result: Sendable>(
    while fence: Fence, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil, term: Duration = Value.standardTerm,
    _ body: @escaping @Sendable (inout PropertyListValue?) throws -> Result
  ) async throws -> Result {
    let terms = ChangeTerms(durability, until: deadline, term: term)
    return try await runSuspending { self.change(under: fence.proof, terms, body) }
  }

  /// Replaces the value as long as the role belongs to the fence's entering; see `update(while:)`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func replace(
    with value: PropertyListValue, while fence: Fence, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) throws {
    try update(while: fence, durability: durability, until: deadline) { $0 = value }
  }

  /// Replaces the value under a fence; see the form without `async`.
  public func replace(
    with value: PropertyListValue, while fence: Fence, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) async throws {
    try await update(while: fence, durability: durability, until: deadline) { $0 = value }
  }
}

extension SharedContainer {
  /// Changes several values in one step, as `update` without a fence, but only as long as the role
  /// belongs to the fence's entering; see `Value.update(while:)`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func update<Result: Sendable>(
    _ identifiers: [String], while fence: Fence, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil, term: Duration = Value.standardTerm,
    _ body: @escaping @Sendable (inout [String: PropertyListValue]) throws -> Result
  ) throws -> Result {
    let terms = ChangeTerms(durability, until: deadline, term: term)
    return try ValuesUpdate(self, identifiers, terms: terms, under: fence.proof, body: body)
      .change().run()
  }

  /// Changes several values in one step under a fence; see the form without `async`.
  public func update<Result: Sendable>(
    _ identifiers: [String], while fence: Fence, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil, term: Duration = Value.standardTerm,
    _ body: @escaping @Sendable (inout [String: PropertyListValue]) throws -> Result
  ) async throws -> Result {
    let terms = ChangeTerms(durability, until: deadline, term: term)
    let update = try ValuesUpdate(
      self, identifiers, terms: terms, under: fence.proof, body: body)
    return try await runSuspending { update.change() }
  }
}
