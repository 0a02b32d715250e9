public import Containers
import Monitoring
public import PropertyLists
import Publications
import Synchronization
import SystemCalls

extension SharedContainer {
  /// Reads several values, changes them and publishes all changes in one step: every process sees
  /// all of them or none, and no other change comes between.
  ///
  /// The leases of all values are taken in one order, so two such updates never wait for each other.
  /// If this process is killed or stopped in the middle, the next process that changes one of the
  /// values finishes the update or undoes it; a reader sees the result of that before.
  ///
  /// - Parameters:
  ///   - identifiers: The values that `body` may read and change.
  ///   - durability: The failures that the changes survive.
  ///   - deadline: The latest instant to wait for the leases; by default `Value.standardWait` from
  ///     now.
  ///   - term: As in `Value.update`, for each lease from the moment when it is taken.
  ///   - repeatsAfterLoss: As in `Value.update`; the loss of one lease is enough.
  ///   - body: Receives the values that exist, and leaves the new ones there. A value that is missing
  ///     then is removed; an unchanged one is not published again. If the closure throws, nothing
  ///     changes.
  /// - Returns: The result of `body`.
  /// - Throws: The error of `body`, or `AppGroupError`: as `Value.update`; `unsupportedValue` for a
  ///   value that is not among `identifiers`; `inputOutput` on a file system without hard links or permissions.
  /// - Complexity: About 20 system calls for each changed value, 10 for an unchanged one, and 10 more.
  ///   The content is written before the change becomes visible. `.durable` adds five fsyncs for each
  ///   value, and two.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func update<Result: Sendable>(
    _ identifiers: [String], durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil, term: Duration = Value.standardTerm,
    repeatsAfterLoss: Bool = true,
    _ body: @escaping @Sendable (inout [String: PropertyListValue]) throws -> Result
  ) throws -> Result {
    let terms = ChangeTerms(
      durability, until: deadline, term: term, repeatsAfterLoss: repeatsAfterLoss)
    return try TransactionWork(self, identifiers, terms, body).change().run()
  }

  /// Reads, changes and publishes several values; see the form without `async`. `body` runs on a
  /// thread that may block.
  public func update<Result: Sendable>(
    _ identifiers: [String], durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil, term: Duration = Value.standardTerm,
    repeatsAfterLoss: Bool = true,
    _ body: @escaping @Sendable (inout [String: PropertyListValue]) throws -> Result
  ) async throws -> Result {
    let terms = ChangeTerms(
      durability, until: deadline, term: term, repeatsAfterLoss: repeatsAfterLoss)
    let work = TransactionWork(self, identifiers, terms, body)
    return try await runSuspending { work.change() }
  }

  /// Returns several values as they were at one moment.
  ///
  /// - Returns: The values that existed.
  /// - Throws: As `Value.read`. `timedOut` if the values change so often that this process has to
  ///   wait for their leases, and does not get them within `Value.standardWait`.
  /// - Complexity: As reading each value, and one more call for each; again if one of them was
  ///   changed meanwhile.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func read(_ identifiers: [String]) throws -> [String: PropertyListValue] {
    let values = Set(identifiers).map(value)
    for _ in 0..<renameRaceLimit {
      let found = try values.map { try $0.snapshot() }
      guard try zip(values, found).allSatisfy({ try $0.version() == $1.version }) else { continue }
      return try TransactionWork<Void>.content(of: values, found)
    }
    return try update(identifiers) { $0 }
  }

  /// Returns several values as they were at one moment; see the form without `async`.
  public func read(_ identifiers: [String]) async throws -> [String: PropertyListValue] {
    try await Blocking.run { try self.read(identifiers) }
  }
}

/// One update of several values under their leases.
private struct TransactionWork<Result: Sendable>: Sendable {
  typealias Body = @Sendable (inout [String: PropertyListValue]) throws -> Result

  let container: SharedContainer
  /// In the order in which all processes take their leases.
  let values: [Value]
  let terms: ChangeTerms
  let body: Body

  private var durability: Durability { terms.durability }

  init(
    _ container: SharedContainer, _ identifiers: [String], _ terms: ChangeTerms,
    _ body: @escaping Body
  ) {
    self.container = container
    values = Set(identifiers).map(container.value).sorted { $0.relativePath < $1.relativePath }
    self.terms = terms
    self.body = body
  }

  func change() -> sending Change<Result> {
    Change(values.map { ($0.directory, LeaseSite.value) }, terms) { leases, _ in
      try perform(leases)
    }
  }

  static func content(
    of values: [Value], _ found: [ValueSnapshot]
  ) throws -> [String: PropertyListValue] {
    var content: [String: PropertyListValue] = [:]
    for (value, snapshot) in zip(values, found) {
      content[value.identifier] = try snapshot.propertyList()
    }
    return content
  }

  private func perform(_ leases: [Lease]) throws -> Result {
    let found = try values.map { try $0.snapshot() }
    let old = try Self.content(of: values, found)
    var new = old
    let result: Result
    do { result = try body(&new) } catch { throw BodyError(cause: error) }
    if let other = new.keys.first(where: { key in !values.contains { $0.identifier == key } }) {
      throw AppGroupError(
        .unsupportedValue, "change several values", path: container.root.path,
        reason: "the closure has set \"\(other)\", which is not among the values to change",
        remedy: "name it among the identifiers")
    }
    var edits: [Transaction.Kind] = []
    var contents: [PublishedContent?] = []
    for (value, snapshot) in zip(values, found) {
      let content = new[value.identifier]
      let isKept = content == old[value.identifier]
      edits.append(isKept ? .keep : content == nil ? .remove : .replace)
      contents.append(
        isKept
          ? nil
          : try content.map { value.content(try value.encode($0), terms, after: snapshot) })
    }
    guard edits.contains(where: { $0 != .keep }) else {
      if durability == .durable { for lease in leases { try lease.synchronize(LeaseSite.value) } }
      return result
    }
    let transaction = Transaction(nonce: Nonce.next())
    let parts = edits.enumerated().map { number, kind in
      Transaction.Part(transaction: transaction, number: number, kind: kind)
    }
    try publish(transaction, parts, contents, replacing: found, leases)
    for (value, part) in zip(values, parts) where part.kind != .keep { value.followUp(durability) }
    return result
  }

  private func publish(
    _ transaction: Transaction, _ parts: [Transaction.Part], _ contents: [PublishedContent?],
    replacing found: [ValueSnapshot], _ leases: [Lease]
  ) throws {
    let handle = try container.root.handle()
    let directory = handle.descriptor.rawValue
    for path in [NameKind.own, Transaction.directory, transaction.path] {
      try container.root.makeDirectoryIfMissing(path, at: directory)
    }
    // Locked until all is settled: without a lock it was left by a dead process.
    let state = try container.root.access.createFile(transaction.open, at: directory)
    var staged: [Int: String] = [:]
    do {
      _ = try state.tryLock(.exclusive)
      for (part, content) in zip(parts, contents) where part.kind != .keep {
        let file = try container.root.access.createFile(part.content, at: directory)
        try content?.write(to: file)
        _ = try container.root.stamp(file)
        if durability == .durable { try file.synchronize() } else { try file.writeBack() }
      }
      for (number, lease) in leases.enumerated() {
        let part = parts[number]
        try lease.note(part)
        if part.kind == .replace { staged[number] = try nameInLease(part, lease, directory) }
        if part.kind != .keep, !found[number].isAbsent {
          try values[number].mark(lease)
        }
      }
      if durability == .durable { try synchronize(transaction, leases, directory) }
      guard
        try ifPresent(
          rename(transaction.open, at: directory, to: transaction.committed, at: directory)) != nil
      else { throw try (leases.first { try $0.held.isRemoved() } ?? leases[0]).lost() }
    } catch {
      abandon(transaction, leases, staged, directory)
      throw error
    }
    // All is visible from here on. What can't be done now, the next holder does.
    if durability == .durable { try synchronize(transaction.path, directory) }
    for (number, lease) in leases.enumerated() { settle(lease, staged[number]) }
    if durability == .durable { for lease in leases { try lease.synchronizeDirectories() } }
    withExtendedLifetime(state) {}
  }

  private func nameInLease(
    _ part: Transaction.Part, _ lease: Lease, _ directory: Int32
  ) throws -> String {
    do {
      return try lease.nameInLease(part, at: directory)
    } catch let error as Errno where [.notPermitted, .unsupported, .noFunction].contains(error) {
      throw AppGroupError.unsuitableFileSystem(container, "hard links", error)
    }
  }

  private func settle(_ lease: Lease, _ staged: String?) {
    do {
      try container.root.settle(lease, staged: staged)
      lease.isDeclared.store(true, ordering: .relaxed)
    } catch {
      // The lease was taken over, or the disk has failed: the note and this holder's declaration are
      // still there, so the next holder of the lease does the same.
    }
  }

  private func abandon(
    _ transaction: Transaction, _ leases: [Lease], _ staged: [Int: String], _ directory: Int32
  ) {
    do {
      // First: from here on it can't be committed.
      let isCommitted = try transaction.isCommitted(at: directory)
      for (number, lease) in leases.enumerated() { settle(lease, staged[number]) }
      if !isCommitted { try transaction.discard(at: directory) }
    } catch {
      // The disk has failed, and the caller gets its first error. The next holder of each lease, and
      // a sweep, find what is left.
    }
  }

  /// Puts all that a commit relies on on the disk, before it.
  private func synchronize(
    _ transaction: Transaction, _ leases: [Lease], _ directory: Int32
  ) throws {
    for path in [transaction.path, Transaction.directory, NameKind.own, "."] {
      try synchronize(path, directory)
    }
    for lease in leases { try lease.site.openLeaseDirectory().synchronize() }
  }

  private func synchronize(_ path: String, _ directory: Int32) throws(Errno) {
    try FileDescriptor.openBeneath(path, at: directory, [.readOnly, .directory]).synchronize()
  }
}
