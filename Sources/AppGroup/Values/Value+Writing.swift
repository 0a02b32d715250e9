public import PropertyLists
import SystemCalls

extension Value {
  /// Puts a new value where the old one is, whatever that is.
  ///
  /// - Parameters:
  ///   - value: the new value.
  ///   - durability: what the write survives.
  ///   - deadline: until when to wait for the lease; already past means "only if it is free now".
  ///     By default `standardWait` from now.
  /// - Throws: `AppGroupError`: `timedOut`, naming the holder; `unsupportedValue`; `noSpace` and
  ///   what else the file system refuses. The old value is intact then.
  /// - Complexity: create, write, rename and unlink, and eight cheap calls for the lease;
  ///   `.durable` adds three fsyncs, and two more where identifiers were new lately. Content of 64 KiB and more, and durable content, is written
  ///   before the lease is taken.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func replace(
    with value: PropertyListValue, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) throws {
    try replace(withBytes: encode(value), durability: durability, until: deadline)
  }

  /// Puts new bytes, which the caller vouches are a property list, where the old ones are.
  ///
  /// - Parameter willPublish: gets the version just before anybody can see it.
  package func replace(
    withBytes bytes: [UInt8], durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil,
    willPublish: @escaping @Sendable (Stamp) -> Void = { _ in }
  ) throws {
    try replacement(bytes, durability, deadline, willPublish).run()
  }

  /// Removes the value: afterwards it reads as never written.
  ///
  /// - Returns: whether there was one.
  /// - Throws: `AppGroupError`: `timedOut`, naming the holder, or what the file system refuses.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  @discardableResult
  public func remove(
    durability: Durability = .standard, until deadline: ContinuousClock.Instant? = nil
  ) throws -> Bool {
    try removal(durability, deadline).run()
  }

  /// Reads the value, changes it and publishes the result, and nobody else's change comes between.
  ///
  /// - Parameters:
  ///   - durability: what the write survives.
  ///   - deadline: until when to wait for the lease; by default `standardWait` from now.
  ///   - term: how long `body` may take before others may take the lease away.
  ///   - repeatsAfterLoss: whether to begin again, silently, when they did (because this process was
  ///     stopped in the middle, for example). `body` then runs **more than once**, each time with
  ///     the latest value: it should have no other effects. Otherwise `leaseLost` is thrown.
  ///   - body: gets the value, nil if there is none, and leaves the new one there; nil removes it.
  ///     A value left as it was is not published again (`.durable` puts it on the disk). What it
  ///     throws leaves everything as it was.
  /// - Returns: what `body` returns.
  /// - Throws: what `body` throws, or `AppGroupError`: `timedOut`, `damaged`, `leaseLost` naming who
  ///   took it, or what the file system refuses.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func update<Result: Sendable>(
    durability: Durability = .standard, until deadline: ContinuousClock.Instant? = nil,
    term: Duration = LeaseTerm.standard, repeatsAfterLoss: Bool = true,
    _ body: @escaping @Sendable (inout PropertyListValue?) throws -> Result
  ) throws -> Result {
    try modification(
      .init(durability, deadline, term, repeatsAfterLoss), edited(body)
    ).run()
  }

  /// Reads the bytes, decides, and publishes what was decided; see `update`.
  package func edit<Result: Sendable>(
    _ terms: ModificationTerms = .init(),
    _ body: @escaping @Sendable (Snapshot) throws -> (Edit, Result)
  ) throws -> Result {
    try modification(terms, body).run()
  }

  // MARK: The same for tasks

  /// Reads the bytes, decides, and publishes what was decided; see `update`.
  package func edit<Result: Sendable>(
    _ terms: ModificationTerms = .init(),
    _ body: @escaping @Sendable (Snapshot) throws -> (Edit, Result)
  ) async throws -> Result {
    try await runSuspending { modification(terms, body) }
  }

  /// Puts a new value where the old one is; see the form without `async`. Cancelling the task ends
  /// the wait for the lease with `CancellationError`.
  public func replace(
    with value: PropertyListValue, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) async throws {
    let bytes = try encode(value)
    return try await replace(withBytes: bytes, durability: durability, until: deadline)
  }

  /// Puts new bytes where the old ones are; see the form without `async`.
  package func replace(
    withBytes bytes: [UInt8], durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil,
    willPublish: @escaping @Sendable (Stamp) -> Void = { _ in }
  ) async throws {
    try await runSuspending { replacement(bytes, durability, deadline, willPublish) }
  }

  /// Removes the value; see the form without `async`.
  @discardableResult
  public func remove(
    durability: Durability = .standard, until deadline: ContinuousClock.Instant? = nil
  ) async throws -> Bool {
    try await runSuspending { removal(durability, deadline) }
  }

  /// Reads, changes and publishes; see the form without `async`. `body` runs on a thread that may
  /// block.
  public func update<Result: Sendable>(
    durability: Durability = .standard, until deadline: ContinuousClock.Instant? = nil,
    term: Duration = LeaseTerm.standard, repeatsAfterLoss: Bool = true,
    _ body: @escaping @Sendable (inout PropertyListValue?) throws -> Result
  ) async throws -> Result {
    let edit = edited(body)
    let terms = ModificationTerms(durability, deadline, term, repeatsAfterLoss)
    return try await runSuspending { modification(terms, edit) }
  }

  /// The value now; see the form without `async`.
  public func read(limits: PropertyListLimits = .standard) async throws -> PropertyListValue? {
    try await Blocking.run { try read(limits: limits) }
  }

  /// The value now as bytes, with its version; see the form without `async`.
  public func snapshot(limits: PropertyListLimits = .standard) async throws -> Snapshot {
    try await Blocking.run { try snapshot(limits: limits) }
  }
}

extension Value {
  private func encode(_ value: PropertyListValue) throws -> [UInt8] {
    do throws(PropertyListError) {
      let bytes = try value.binaryBytes()
      // What no reader would accept within its limits is not published.
      try PropertyListGuard.check(bytes)
      return bytes
    } catch {
      throw AppGroupError(
        .unsupportedValue, "write the value", path: path,
        reason: "no reader would accept it: \(error.reason)",
        remedy: "a value is meant to be small; share large content as a file")
    }
  }

  private func deadline(_ given: ContinuousClock.Instant?) -> ContinuousClock.Instant {
    given ?? .now.advanced(by: Self.standardWait)
  }

  private func replacement(
    _ bytes: [UInt8], _ durability: Durability, _ given: ContinuousClock.Instant?,
    _ willPublish: @escaping @Sendable (Stamp) -> Void = { _ in }
  ) -> sending Change<Void> {
    let name = fileName
    let value = self
    let isPrepared = durability == .durable || bytes.count >= Preparation.worthwhileBytes
    let firstTime = directoryDurability(durability)
    return Change(self, .init(deadline: deadline(given))) { site in
      try firstTime()
      guard isPrepared else {
        return { lease in
          try lease.publish(
            bytes, as: name, exists: true, diligence: try value.diligence(durability, bytes),
            willPublish: willPublish)
          value.followUp(durability)
        }
      }
      let prepared = try Preparation(bytes, at: site, durability: durability)
      return { lease in
        willPublish(prepared.stamp)
        try lease.publish(prepared: prepared, as: name, exists: true, durability: durability)
        value.followUp(durability)
      }
    }
  }

  private func removal(
    _ durability: Durability, _ given: ContinuousClock.Instant?
  ) -> sending Change<Bool> {
    let value = self
    return Change(self, .init(deadline: deadline(given))) { _ in
      { lease in try value.remove(lease, durability) }
    }
  }

  private func modification<Result: Sendable>(
    _ given: ModificationTerms, _ edit: @escaping @Sendable (Snapshot) throws -> (Edit, Result)
  ) -> sending Change<Result> {
    let terms = Change<Result>.Terms(
      term: given.term, deadline: deadline(given.deadline),
      repeatsAfterLoss: given.repeatsAfterLoss)
    let name = fileName
    let value = self
    let durability = given.durability
    let willPublish = given.willPublish
    let firstTime = directoryDurability(durability)
    return Change(self, terms) { _ in
      try firstTime()
      return { lease in
        let old = try snapshot()
        let (edit, result) = try Self.asOwn { try edit(old) }
        switch edit {
        case .keep: if durability == .durable { try lease.synchronize(name) }
        case .replace(let bytes):
          try lease.publish(
            bytes, as: name, exists: !old.isAbsent,
            diligence: try value.diligence(durability, bytes), willPublish: willPublish)
          value.followUp(durability)
        case .remove: _ = try value.remove(lease, durability)
        }
        return result
      }
    }
  }

  private func remove(_ lease: Lease, _ durability: Durability) throws -> Bool {
    let wasThere = try lease.remove(fileName, durability: durability)
    followUp(durability)
    return wasThere
  }

  private func diligence(_ durability: Durability, _ bytes: [UInt8]) throws -> Diligence {
    guard durability == .standard else { return .durable }
    let root = container.root
    guard try bytes.count <= min(KeptVersion.maximumBytes, root.handle().status.blockBytes) else {
      return .written
    }
    return .relaxed(isFollowedUp: root.followUps.contains(relativePath))
  }

  private func followUp(_ durability: Durability) {
    guard durability == .standard else { return }
    container.root.followUps.add(relativePath, directory.kind, in: container.root)
  }

  private static func asOwn<Result>(_ body: () throws -> Result) throws -> Result {
    do { return try body() } catch { throw BodyError(cause: error) }
  }

  private func edited<Result: Sendable>(
    _ body: @escaping @Sendable (inout PropertyListValue?) throws -> Result
  ) -> @Sendable (Snapshot) throws -> (Edit, Result) {
    { snapshot in
      let old = try snapshot.propertyList()
      var new = old
      let result = try body(&new)
      guard new != old else { return (.keep, result) }
      return (try new.map { .replace(try encode($0)) } ?? .remove, result)
    }
  }

  // What was made of directories above the value's own may have been made without durability.
  private func directoryDurability(_ durability: Durability) -> @Sendable () throws -> Void {
    guard durability == .durable else { return {} }
    return {
      let handle = try container.root.handle()
      try handle.synchronizedNames.synchronize(directory.kind, in: handle.descriptor)
    }
  }
}
