import Synchronization
import WormholePropertyLists
import WormholeSystem

/// One update of several values under their leases.
struct TransactionWork<Result: Sendable>: Sendable {
  let update: ValuesUpdate<Result>
  /// The values' leases, after the lease of the role: all processes take the role's lease first.
  let files: [ValueFile]

  // Stored, because each read through the update would look up its generic type.
  private let container: SharedContainer
  private let terms: ChangeTerms
  private var durability: Durability { terms.durability }

  init(_ update: ValuesUpdate<Result>) {
    self.update = update
    container = update.container
    terms = update.terms
    files = [update.role?.value?.store.file].compactMap(\.self) + update.values.map(\.store.file)
  }

  func change() -> sending any Waiting<Result> {
    let change = Change(files.map { ($0.directory, LeaseSite.value, $0.keptLease) }, terms) {
      leases, _ in try perform(leases)
    }
    guard update.onlyReads else { return change }
    var hasLooked = false
    return StepwiseWait {
      if !exchange(&hasLooked, with: true), let found = try update.snapshots() {
        return .done(try update.decide(found).result)
      }
      return try change.step()
    }
  }

  private func perform(_ leases: [Lease]) throws -> Result {
    let found = try files.map { try $0.snapshot(limits: .standard) }
    // A value whose lease was taken over may have changed before the next value was read.
    for lease in leases.dropLast() where try lease.held.isRemoved() { throw lease.lost() }
    var (edits, result): ([Edit], Result)
    if let role = update.role {
      try role.check(found[0])
      (edits, result) = try update.decide(Array(found.dropFirst()))
      edits.insert(.keep, at: 0)
    } else {
      (edits, result) = try update.decide(found)
    }
    let kinds = edits.map(\.kind)
    guard kinds.contains(where: { $0 != .keep }) else {
      if durability == .durable { for lease in leases { try lease.synchronize(LeaseSite.value) } }
      return result
    }
    let contents = edits.enumerated().map { index, edit -> PublishedContent? in
      guard case .replace(let bytes) = edit else { return nil }
      return files[index].content(bytes, terms, after: found[index])
    }
    let transaction = Transaction(nonce: Nonce.next())
    let parts = kinds.enumerated().map { number, kind in
      Transaction.Part(transaction: transaction, number: number, kind: kind)
    }
    try publish(transaction, parts, contents: contents, replacing: found, leases: leases)
    for (file, part) in zip(files, parts) where part.kind != .keep { file.followUp(durability) }
    return result
  }

  private func publish(
    _ transaction: Transaction, _ parts: [Transaction.Part], contents: [PublishedContent?],
    replacing found: [PlainSnapshot], leases: [Lease]
  ) throws {
    let handle = try container.root.handle()
    let directory = handle.descriptor.rawValue
    try makeDirectory(of: transaction, at: directory)
    // Locked until all is settled: an unlocked file was left by a dead process.
    let state = try container.root.access.createFile(transaction.open, at: directory)
    var notes: [Lease.StagedNote] = []
    var staged: [Int: String] = [:]
    do {
      _ = try state.tryLock(.exclusive)
      // Everything is written before the first wait for the disk, so that the waits overlap.
      var written: [SharedDescriptor] = []
      for (part, content) in zip(parts, contents) where part.kind != .keep {
        let file = try container.root.access.createFile(part.content, at: directory)
        try content?.write(to: file)
        _ = try container.root.stamp(file)
        try file.startWriteBack()
        written.append(SharedDescriptor(file))
      }
      for (lease, part) in zip(leases, parts) {
        notes.append(try lease.stageNote(part))
      }
      for file in written {
        if durability == .durable {
          try file.descriptor.synchronize()
        } else {
          try file.descriptor.writeBack()
        }
      }
      for (number, lease) in leases.enumerated() {
        let part = parts[number]
        try lease.leave(notes[number])
        if part.kind == .replace {
          staged[number] = try nameInLease(part, lease, directory: directory)
        }
        if part.kind != .keep, !found[number].isAbsent, !LeaseFault.unmarked.isActive {
          try files[number].mark(lease)
        }
      }
      if durability == .durable { try synchronize(transaction, leases, directory: directory) }
      guard
        try ifPresent(
          rename(transaction.open, at: directory, to: transaction.committed, at: directory)) != nil
      else { throw try (leases.first { try $0.held.isRemoved() } ?? leases[0]).lost() }
    } catch {
      abandon(transaction, leases, notes, staged: staged, directory: directory)
      throw error
    }
    // All is visible from here on. The next holder does what cannot be done now, and may have done
    // it: a missing file must not look like a lost lease, or the change would be made again.
    if LeaseFault.repeatingCommitted.isActive, durability == .durable {
      try synchronize(transaction.path, directory)
    }
    if durability == .durable { _ = try ifPresent(synchronize(transaction.path, directory)) }
    conclude(transaction, parts, leases, staged, directory: directory)
    if durability == .durable {
      for lease in leases { _ = try ifPresent(lease.synchronizeDirectories()) }
    }
    withExtendedLifetime(state) {}
  }

  private func nameInLease(
    _ part: Transaction.Part, _ lease: Lease, directory: Int32
  ) throws -> String {
    do {
      return try lease.nameInLease(part, at: directory)
    } catch let error as Errno where [.notPermitted, .unsupported, .noFunction].contains(error) {
      throw WormholeError.unsuitableFileSystem(container, "hard links", error: error)
    }
  }

  private func makeDirectory(of transaction: Transaction, at directory: Int32) throws(Errno) {
    let root = container.root
    let made: Void? = try ifPresent(root.makeDirectoryIfMissing(transaction.path, at: directory))
    guard made == nil else { return }
    for path in [NameKind.own, Transaction.directory, transaction.path] {
      try root.makeDirectoryIfMissing(path, at: directory)
    }
  }

  /// Publishes all parts under their leases, without the looks that a later holder would need.
  private func conclude(
    _ transaction: Transaction, _ parts: [Transaction.Part], _ leases: [Lease],
    _ staged: [Int: String], directory: Int32
  ) {
    let settled = zip(parts, leases).filter { part, lease in
      part.kind == .keep
        || succeeds {
          try lease.publish(part) {
            try staged[part.number] ?? lease.nameInLease(part, at: directory)
          }
          try removeIfPresent(part.content, at: directory)
        }
    }
    let isRemoved = succeeds {
      // A part that failed still needs it.
      if settled.count == parts.count {
        try transaction.conclude(at: directory)
      } else {
        try transaction.removeIfSettled(at: directory)
      }
    }
    guard isRemoved else { return }
    for (part, lease) in settled where succeeds({ try lease.discardNote() }) {
      lease.isDeclared.store(true, ordering: .relaxed)
      if durability == .standard, let keptLease = files[part.number].keptLease {
        lease.keepOpen(as: keptLease)
      }
    }
  }

  /// Takes a step after which nothing is left to do for the next holder.
  ///
  /// - Returns: False if it failed: the lease was taken over, or the disk has failed. The note and this
  ///   holder's declaration are still there, so the next holder of the lease does the same.
  private func succeeds(_ step: () throws -> Void) -> Bool {
    // The next holder gets the same error, and reports it.
    (try? step()) != nil
  }

  private func abandon(
    _ transaction: Transaction, _ leases: [Lease], _ notes: [Lease.StagedNote],
    staged: [Int: String], directory: Int32
  ) {
    do {
      // First: from here on it cannot be committed.
      let isCommitted = try transaction.isCommitted(at: directory)
      // The notes that are not in place.
      for (lease, note) in zip(leases, notes) { try lease.discard(note.entry) }
      for (number, lease) in leases.enumerated() {
        if let entry = staged[number] { try lease.discard(entry) }
        if succeeds({ try container.root.settle(lease, of: transaction) }) {
          lease.isDeclared.store(true, ordering: .relaxed)
        }
      }
      if !isCommitted { try transaction.discard(at: directory) }
    } catch {
      // The disk has failed, and the caller gets its first error. The next holder of each lease,
      // and a sweep, find the rest.
    }
  }

  /// Flushes everything that a commit relies on to the disk, before it.
  private func synchronize(
    _ transaction: Transaction, _ leases: [Lease], directory: Int32
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

extension Edit {
  fileprivate var kind: Transaction.Kind {
    switch self {
    case .keep: .keep
    case .replace: .replace
    case .remove: .remove
    }
  }
}
