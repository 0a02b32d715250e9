public import WormholePropertyLists
import WormholeSystem

extension Value {
  /// Replaces the value, whatever the old one is.
  ///
  /// - Parameters:
  ///   - content: Any value that a property list can hold, even a string or a number.
  ///   - durability: The failures that the write survives.
  ///   - lifetime: The lifetime of the value from now; nil means forever. See <doc:ExpiryOfValues>.
  ///   - deadline: The latest instant to wait for the lease; an instant in the past means "only if
  ///     it is free now". By default `standardWait` from now.
  /// - Throws: The error of encoding, or `WormholeError.Code.timedOut` with the holder;
  ///   `.unsupportedValue`; `.noSpace` and other errors of the file system. If it throws, the old
  ///   value is intact; but after an error of the last fsync of `.durable` the new one is visible,
  ///   and a power failure may undo it.
  /// - Complexity: Create, write, rename, unlink, and six or seven cheap calls for the lease;
  ///   `.durable` adds one fsync on ext4 and xfs, three elsewhere, two more if identifiers were
  ///   created recently. Content of 256 KiB or more, and durable content, is written before the
  ///   lease is taken.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func replace(
    with content: Content, durability: Durability = .standard,
    expiresAfter lifetime: Duration? = nil, until deadline: ContinuousClock.Instant? = nil
  ) throws {
    try replace(
      withBytes: encode(content), durability: durability, expiresAfter: lifetime, until: deadline)
  }

  /// Replaces the bytes; the caller guarantees that the new ones are a property list.
  ///
  /// - Parameter willPublish: Receives the version just before it becomes visible.
  package func replace(
    withBytes bytes: [UInt8], durability: Durability = .standard,
    expiresAfter lifetime: Duration? = nil, until deadline: ContinuousClock.Instant? = nil,
    willPublish: @escaping @Sendable (Stamp) -> Void = { _ in }
  ) throws {
    let terms = ChangeTerms(
      durability, until: deadline, expiresAfter: lifetime, peer: peer, willPublish: willPublish)
    try store.replace(bytes, terms)
  }

  /// Removes the value; afterwards it reads as never written.
  ///
  /// - Returns: Whether there was one.
  /// - Throws: `WormholeError.Code.timedOut` with the holder, or an error of the file system.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  @discardableResult
  public func remove(
    durability: Durability = .standard, until deadline: ContinuousClock.Instant? = nil
  ) throws -> Bool {
    try store.replacement(nil, .init(durability, until: deadline)).run()
  }

  /// Reads the value, changes it and publishes the result atomically: no other change comes
  /// between.
  ///
  /// - Parameters:
  ///   - durability: The failures that the write survives.
  ///   - deadline: The latest instant to wait for the lease; by default `standardWait` from now.
  ///   - term: The time that `body` may take before other processes may take over the lease. It may
  ///     have any length while other processes see this one run; processes that cannot see it wait
  ///     an hour at most.
  ///   - repeatsAfterLoss: Whether to begin again silently after a takeover (for example because
  ///     this process was stopped in the middle). `body` then runs **more than once**, each time
  ///     with the latest value, so it should have no other effects. Otherwise `leaseLost` is
  ///     thrown.
  ///   - lifetime: The lifetime of the new value from the call; nil means forever.
  ///   - body: Receives the value, nil if there is none, and leaves the new one there; nil removes
  ///     it. An unchanged value is not published again (`.durable` flushes it to the disk), and keeps
  ///     its expiry. If the closure throws, nothing changes.
  /// - Returns: The result of `body`.
  /// - Throws: The error of `body` or of encoding, or `WormholeError.Code.timedOut`, `.damaged`,
  ///   `.leaseLost` with the new holder, or an error of the file system.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func update<Result: Sendable>(
    durability: Durability = .standard, until deadline: ContinuousClock.Instant? = nil,
    term: Duration = SharedContainer.standardTerm, repeatsAfterLoss: Bool = true,
    expiresAfter lifetime: Duration? = nil,
    _ body: @escaping @Sendable (inout Content?) throws -> Result
  ) throws -> Result {
    let terms = ChangeTerms(
      durability, until: deadline, term: term, repeatsAfterLoss: repeatsAfterLoss,
      expiresAfter: lifetime)
    return try edit(terms, edited(body))
  }

  /// Reads the bytes and publishes the decision of a closure; see `update`.
  package func edit<Result: Sendable>(
    _ terms: ChangeTerms = .init(),
    _ body: @escaping @Sendable (PlainSnapshot) throws -> (Edit, Result)
  ) throws -> Result {
    try store.modify(publishing(terms), body)
  }

  // MARK: The same for tasks

  /// Reads the bytes and publishes the decision of a closure; see `update`.
  package func edit<Result: Sendable>(
    _ terms: ChangeTerms = .init(),
    _ body: @escaping @Sendable (PlainSnapshot) throws -> (Edit, Result)
  ) async throws -> Result {
    try await runSuspending { store.modification(publishing(terms), body) }
  }

  /// Replaces the value; see the form without `async`. Cancelling the task ends the wait for the
  /// lease with `CancellationError`.
  public func replace(
    with content: Content, durability: Durability = .standard,
    expiresAfter lifetime: Duration? = nil, until deadline: ContinuousClock.Instant? = nil
  ) async throws {
    let bytes = try encode(content)
    return try await replace(
      withBytes: bytes, durability: durability, expiresAfter: lifetime, until: deadline)
  }

  /// Replaces the bytes; see the form without `async`.
  package func replace(
    withBytes bytes: [UInt8], durability: Durability = .standard,
    expiresAfter lifetime: Duration? = nil, until deadline: ContinuousClock.Instant? = nil,
    willPublish: @escaping @Sendable (Stamp) -> Void = { _ in }
  ) async throws {
    let terms = ChangeTerms(
      durability, until: deadline, expiresAfter: lifetime, peer: peer, willPublish: willPublish)
    _ = try await runSuspending { store.replacement(bytes, terms) }
  }

  /// Removes the value; see the form without `async`.
  @discardableResult
  public func remove(
    durability: Durability = .standard, until deadline: ContinuousClock.Instant? = nil
  ) async throws -> Bool {
    try await runSuspending { store.replacement(nil, .init(durability, until: deadline)) }
  }

  /// Reads, changes and publishes; see the form without `async`. `body` runs on a thread that may
  /// block.
  public func update<Result: Sendable>(
    durability: Durability = .standard, until deadline: ContinuousClock.Instant? = nil,
    term: Duration = SharedContainer.standardTerm, repeatsAfterLoss: Bool = true,
    expiresAfter lifetime: Duration? = nil,
    _ body: @escaping @Sendable (inout Content?) throws -> Result
  ) async throws -> Result {
    let terms = ChangeTerms(
      durability, until: deadline, term: term, repeatsAfterLoss: repeatsAfterLoss,
      expiresAfter: lifetime)
    return try await edit(terms, edited(body))
  }

  /// Returns the current value; see the form without `async`.
  public func read(limits: PropertyListLimits = .standard) async throws -> Content? {
    try await Blocking.run { try read(limits: limits) }
  }

  /// Returns the current value as bytes, with its version; see the form without `async`.
  public func snapshot(
    limits: PropertyListLimits = .standard
  ) async throws -> ValueSnapshot<Content> {
    try await Blocking.run { try snapshot(limits: limits) }
  }
}

extension Value {
  /// Removes the file of a value that has expired.
  ///
  /// - Returns: Whether it had expired.
  package func removeExpired(until deadline: ContinuousClock.Instant) throws -> Bool {
    guard try snapshot().isExpired else { return false }
    return try edit(.init(until: deadline)) { (.keep, $0.isExpired) }
  }

  private func publishing(_ terms: ChangeTerms) -> ChangeTerms {
    var terms = terms
    terms.peer = peer
    return terms
  }

  func encode(_ content: Content) throws -> [UInt8] {
    do {
      return try PropertyListCoding.bytes(of: content)
    } catch let error as PropertyListError {
      throw WormholeError(
        .unsupportedValue, "write the value", path: path,
        reason: "no reader would accept it: \(error.reason)",
        remedy: "a value is meant to be small; share large content as a file")
    }
  }

  func edited<Result: Sendable>(
    _ body: @escaping @Sendable (inout Content?) throws -> Result
  ) -> @Sendable (PlainSnapshot) throws -> (Edit, Result) {
    { snapshot in
      var content: Content? = try snapshot.decode()
      let wasAbsent = content == nil
      // Another type is compared as bytes: a copy would keep it from being changed in place.
      let old = content as? PropertyListValue
      let result = try body(&content)
      guard let content else { return (wasAbsent ? .keep : .remove, result) }
      if let old, old == content as? PropertyListValue { return (.keep, result) }
      let bytes = try encode(content)
      return (try snapshot.bytes() == bytes ? .keep : .replace(bytes), result)
    }
  }
}
