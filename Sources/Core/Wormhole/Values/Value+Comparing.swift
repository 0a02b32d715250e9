/// Changes that are made only if the value has not changed since the caller read it: for decisions
/// that take longer than a lease, such as a person's.
extension Value {
  /// Replaces or removes the value if it still has the version that the caller has seen.
  ///
  /// - Parameters:
  ///   - version: The version from a snapshot or `version()`; nil means that there was no value.
  ///   - new: The new value; nil removes it.
  ///   - durability: The failures that the write survives.
  ///   - deadline: The latest instant to wait for the lease; by default `standardWait` from now.
  /// - Returns: Whether it had that version. Otherwise nothing has changed.
  /// - Throws: `WormholeError`, as `replace`.
  /// - Complexity: As `update`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func compareAndSet(
    _ version: Version?, _ new: Content?, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) throws -> Bool {
    try edit(.init(durability, until: deadline), comparison({ $0 == version }, new))
  }

  /// The same for a program that has the version as `Version.text`.
  ///
  /// - Parameters:
  ///   - text: Nil means that there was no value.
  ///   - lifetime: The lifetime of the new value from now; nil means forever.
  package func compareAndSet(
    versionText text: String?, _ new: Content?, durability: Durability = .standard,
    expiresAfter lifetime: Duration? = nil, until deadline: ContinuousClock.Instant? = nil
  ) throws -> Bool {
    try edit(
      .init(durability, until: deadline, expiresAfter: lifetime),
      comparison({ $0?.text == text }, new))
  }

  /// Replaces or removes the value if it still has a version; see the form without `async`.
  public func compareAndSet(
    _ version: Version?, _ new: Content?, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) async throws -> Bool {
    try await edit(.init(durability, until: deadline), comparison({ $0 == version }, new))
  }

  private func comparison(
    _ isExpected: @escaping @Sendable (Version?) -> Bool, _ new: Content?
  ) throws -> @Sendable (PlainSnapshot) -> (Edit, Bool) {
    let edit = try new.map { Edit.replace(try encode($0)) }
    return { snapshot in
      guard isExpected(snapshot.version) else { return (.keep, false) }
      return (edit ?? (snapshot.isAbsent ? .keep : .remove), true)
    }
  }
}
