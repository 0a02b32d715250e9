public import WormholePropertyLists
import WormholeSystem

/// Proves that one holder still has a role or a claim. Once the next one has it, a change with this
/// proof is refused, even if its process was stopped just before.
///
/// It is checked in the same step as the change; `PresenceRegistration.confirm()` leaves a moment
/// between the two. Any process that knows the number may use it. A command gets it in
/// `WORMHOLE_FENCE` from `wormhole lock --name`, and `wormhole claim` prints it.
///
/// ```swift
/// let role = try await container.presence("cleaner").enterExclusively()
/// try await container.value("rooms").update(while: role.fence) { $0 = ["clean": true] }
/// try await container.queue("jobs").sender("cleaner").enqueue("next", while: role.fence)
/// ```
public struct Fence: Sendable {
  /// Larger for each new holder, so that other systems can refuse a smaller one than they have
  /// seen: on etcd the revision; in a directory the milliseconds since 1970, or one more than the
  /// last number.
  ///
  /// If a directory's record of the last holder was removed, for example by a sweep a day after the
  /// last use, this is true only if the clock was not set back.
  public let number: UInt64

  package let proof: RoleProof

  init(_ proof: RoleProof, _ number: UInt64) {
    self.proof = proof
    self.number = number
  }
}

extension Value {
  /// Reads the value, changes it and publishes the result, like `update` without a fence, but only
  /// while the role has the fence's number.
  ///
  /// - Parameters:
  ///   - fence: The fence of a role in the same container.
  ///   - durability: The failures that the write survives.
  ///   - deadline: The latest instant to wait for the leases; by default `standardWait` from now.
  ///   - term: As in `update`; also for the role's lease.
  ///   - body: As in `update`: may run more than once; an unchanged value is not published again.
  /// - Returns: The result of `body`.
  /// - Throws: `leaseLost` if another process has entered since, or the role has ended; then nothing
  ///   has changed. Otherwise as `update`.
  /// - Complexity: As `SharedContainer.update` of one value; on etcd two round trips, and one more if it
  ///   is refused or changes nothing.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func update<Result: Sendable>(
    while fence: Fence, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil, term: Duration = SharedContainer.standardTerm,
    _ body: @escaping @Sendable (inout Content?) throws -> Result
  ) throws -> Result {
    let terms = ChangeTerms(durability, until: deadline, term: term)
    return try change(under: fence.proof, terms, body).run()
  }

  /// Reads, changes and publishes under a fence; see the form without `async`.
  public func update<Result: Sendable>(
    while fence: Fence, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil, term: Duration = SharedContainer.standardTerm,
    _ body: @escaping @Sendable (inout Content?) throws -> Result
  ) async throws -> Result {
    let terms = ChangeTerms(durability, until: deadline, term: term)
    return try await runSuspending { self.change(under: fence.proof, terms, body) }
  }

  /// Replaces the value while the role has the fence's number; see `update(while:)`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func replace(
    with content: Content, while fence: Fence, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) throws {
    try update(while: fence, durability: durability, until: deadline) { $0 = content }
  }

  /// Replaces the value under a fence; see the form without `async`.
  public func replace(
    with content: Content, while fence: Fence, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) async throws {
    try await update(while: fence, durability: durability, until: deadline) { $0 = content }
  }
}

extension SharedContainer {
  /// Changes several values in one step, like `update` without a fence, but only while the role has
  /// the fence's number; see `Value.update(while:)`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func update<Result: Sendable>(
    _ identifiers: [String], while fence: Fence, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil, term: Duration = SharedContainer.standardTerm,
    _ body: @escaping @Sendable (inout [String: PropertyListValue]) throws -> Result
  ) throws -> Result {
    let terms = ChangeTerms(durability, until: deadline, term: term)
    return try ValuesUpdate(self, identifiers, terms: terms, under: fence.proof, body: body)
      .change().run()
  }

  /// Changes several values in one step under a fence; see the form without `async`.
  public func update<Result: Sendable>(
    _ identifiers: [String], while fence: Fence, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil, term: Duration = SharedContainer.standardTerm,
    _ body: @escaping @Sendable (inout [String: PropertyListValue]) throws -> Result
  ) async throws -> Result {
    let terms = ChangeTerms(durability, until: deadline, term: term)
    let update = try ValuesUpdate(
      self, identifiers, terms: terms, under: fence.proof, body: body)
    return try await runSuspending { update.change() }
  }
}
