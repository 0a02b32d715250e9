import Synchronization
import WormholeSystem

/// The steps of a transaction under the lease of one of its values.
extension Lease {
  /// A note that is written in the lease, but not in its place yet.
  package struct StagedNote: Sendable {
    package let entry: String
    fileprivate let file: SharedDescriptor
  }

  /// Writes the note of a transaction, through this lease.
  ///
  /// From here on this holder's declaration stays when it ends, so that the next holder looks for
  /// the note.
  package func stageNote(_ part: Transaction.Part) throws -> StagedNote {
    // Without a declaration the next holder would not look for it.
    if let refusal { throw refusal }
    isDeclared.store(false, ordering: .relaxed)
    let entry = nextEntry()
    return try failingAsLost { () throws(Errno) in
      let file = try site.home.access.createFile(entry, at: stagingPlace.directory)
      try file.writeAll(Array(part.note.utf8))
      try file.startWriteBack()
      return StagedNote(entry: entry, file: SharedDescriptor(file))
    }
  }

  package func leave(_ note: StagedNote) throws {
    try failingAsLost { () throws(Errno) in
      // An empty note after a loss of power would undo this part alone.
      try note.file.descriptor.writeBack()
      try rename(
        note.entry, at: stagingPlace.directory, to: "../" + LeaseSite.transaction,
        at: held.descriptor.rawValue)
    }
  }

  /// Gives the content of a part a name in the lease, from where it can be published.
  package func nameInLease(_ part: Transaction.Part, at container: Int32) throws -> String {
    let entry = nextEntry()
    try failingAsLost { () throws(Errno) in
      try link(part.content, at: container, to: entry, at: stagingPlace.directory)
    }
    return entry
  }
}

extension LeaseSite {
  /// The note of a transaction, seen from the site.
  static let transactionNote = lease + "/" + transaction
}

extension ContainerRoot {
  package func settle(_ lease: Lease) throws { try settle(lease, of: nil) }

  /// - Parameter transaction: A late holder's own, because a later one may be under way by now; nil for
  ///   any.
  package func settle(_ lease: Lease, of transaction: Transaction?) throws {
    let site = try lease.site.directory()
    let handle = try handle()
    guard try exists(LeaseSite.transactionNote, at: site),
      transaction != nil || !LeaseFault.leavingTransactions.isActive
    else { return }
    if let part = try Transaction.part(of: ".", at: site, { access.trusts($0, in: handle.status) })
    {
      guard transaction.map({ $0.nonce == part.transaction.nonce }) ?? true else { return }
      let container = handle.descriptor.rawValue
      if try part.transaction.isCommitted(at: container), part.kind != .keep,
        try exists(part.content, at: container)
      {
        try lease.publish(part) { try lease.nameInLease(part, at: container) }
      }
      // The transaction goes before the note, because nothing leads to it without one.
      try removeIfPresent(part.content, at: container)
      try part.transaction.removeIfSettled(at: container)
    }
    try lease.discardNote()
  }
}

extension Lease {
  /// Publishes the content of a part. The part keeps it until then, because this process may end
  /// here, too.
  ///
  /// - Parameter content: Returns its name in the lease.
  package func publish(
    _ part: Transaction.Part, _ content: () throws -> String
  ) throws {
    // No earlier version may stand in for a later publication, or a loss of power could undo this
    // value's part alone.
    try dropKept(of: LeaseSite.value)
    if part.kind == .replace {
      try moveOut(content(), to: LeaseSite.value, .exchange)
    } else if let entry = try takeIn(LeaseSite.value) {
      try discard(entry)
    }
  }

  /// Removes the note of a transaction that is settled.
  package func discardNote() throws {
    if let entry = try takeIn(LeaseSite.transactionNote) { try discard(entry) }
  }
}
