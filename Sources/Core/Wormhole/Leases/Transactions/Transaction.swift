package import WormholeSystem

/// A change of several values in one step: every process sees all of it or nothing, even if its
/// writer is killed or stopped in the middle.
///
/// ```
/// own/transactions/<nonce>/open        it may still fail; its writer has the file locked
/// own/transactions/<nonce>/committed   the same file, renamed: this makes the change visible
/// own/transactions/<nonce>/<n>         the content for part n until it is published; empty if the
///                                      value is to be removed
/// values/<name>/lease/transaction      the part of this value: nonce, n, and the kind of change
/// ```
///
/// | step | made by | effect |
/// |---|---|---|
/// | the note `lease/transaction`, through the lease's descriptor (rule 2) | the writer, for each value | none yet |
/// | the mark on each file that is to be replaced (`FileStatus.isMarked`) | the writer | readers of the file look for the note |
/// | `open` becomes `committed` | the writer | readers take the content from here |
/// | the part is published, and its note removed | the writer, or the next holder of that lease | readers take the value's file |
/// | `open` is unlinked | a holder that finds a note of an uncommitted transaction | it can no longer be committed |
///
/// So the fence of a lease is also the fence of the transaction: a process that takes one of the
/// leases over ends the transaction before it does anything else, or completes its part. A file
/// outside of transactions costs its readers nothing (Tests/Models/transaction.pml).
///
/// The mark is never taken back, because a late writer could take back the mark of a later
/// transaction. After a transaction that was not committed, it costs each reader two calls until the
/// next publication.
package struct Transaction: Sendable {
  /// The change of one value in it.
  package enum Kind: String, Sendable {
    /// Only read; but the transaction must not be committed after another change of this value.
    case keep, replace, remove
  }

  package struct Part: Sendable {
    package let transaction: Transaction
    let number: Int
    package let kind: Kind
    package let content: String

    package init(transaction: Transaction, number: Int, kind: Kind) {
      self.transaction = transaction
      self.number = number
      self.kind = kind
      content = NameWriter.text(joining: [transaction.path, "/", String(number)])
    }

    var note: String {
      NameWriter.text(joining: [transaction.nonce, " ", String(number), " ", kind.rawValue, "\n"])
    }
  }

  package static let directory = NameKind.own + "/transactions"

  let nonce: String
  /// Its directory, relative to the container.
  package let path: String
  package let open: String
  package let committed: String

  package init(nonce: String) {
    self.nonce = nonce
    path = NameWriter.text(joining: [Self.directory, "/", nonce])
    open = NameWriter.text(joining: [path, "/open"])
    committed = NameWriter.text(joining: [path, "/committed"])
  }

  /// Reads the note of a value's lease.
  ///
  /// - Parameters:
  ///   - site: The directory of the value, seen from an open directory.
  ///   - isTrusted: Whether a file with this status was written by a user of the container.
  /// - Returns: nil if there is none, or a foreign entry in its place.
  package static func part(
    of site: String, at directory: Int32, _ isTrusted: (FileStatus) -> Bool
  ) throws(Errno) -> Part? {
    let foreign: [Errno] = [
      .noSuchFile, .notDirectory, .tooManyLinks, .noSuchDevice, .fileTooLarge,
    ]
    let bytes = try tolerating(
      foreign,
      FileDescriptor.readBeneath(
        site + "/" + LeaseSite.transactionNote, at: directory,
        maximumBytes: 256, isTrusted: isTrusted))
    let fields = (bytes ?? []).split(whereSeparator: { $0 == 32 || $0 == 10 })
    guard fields.count == 3, fields[0].count <= 16, fields[0].allSatisfy(Nonce.isDigit),
      let number = Int(String(decoding: fields[1], as: UTF8.self)), number >= 0,
      let kind = Kind(rawValue: String(decoding: fields[2], as: UTF8.self))
    else { return nil }
    let nonce = String(decoding: fields[0], as: UTF8.self)
    return Part(transaction: Transaction(nonce: nonce), number: number, kind: kind)
  }

  /// Makes sure that an uncommitted transaction is never committed.
  ///
  /// - Returns: Whether it was committed before. False, too, if all of its parts are settled.
  package func isCommitted(at container: Int32) throws(Errno) -> Bool {
    if !LeaseFault.leavingUncommitted.isActive, try removeIfPresent(open, at: container) {
      return false
    }
    return try exists(committed, at: container)
  }

  /// Removes the directory if every part is settled.
  func removeIfSettled(at container: Int32) throws(Errno) {
    let entries = try ContainerRoot.entries(path, at: container) ?? []
    guard
      LeaseFault.forgettingParts.isActive
        || entries.allSatisfy({ path + "/" + $0.name.text == committed })
    else { return }
    try conclude(at: container)
  }

  /// Removes what is left of a committed transaction, all of whose parts are published.
  func conclude(at container: Int32) throws(Errno) {
    try removeIfPresent(committed, at: container)
    try removeIfEmpty(path, at: container)
  }

  /// Removes the directory of a transaction that has no part left to publish.
  package func discard(at container: Int32) throws(Errno) {
    for entry in try ContainerRoot.entries(path, at: container) ?? [] {
      try removeIfPresent(path + "/" + entry.name.text, at: container)
    }
    try removeIfSettled(at: container)
  }
}

/// The operations of an inspection and a sweep.
extension Transaction {
  /// Returns the transaction that is noted in the lease of a value.
  ///
  /// - Parameter site: The value's directory, relative to the container.
  package static func nonce(notedAt site: String, in root: ContainerRoot) throws -> String? {
    let handle = try root.handle()
    return try part(of: site, at: handle.descriptor.rawValue) {
      root.access.trusts($0, in: handle.status)
    }?.transaction.nonce
  }

  /// Returns the two files of which one exists until everything is settled; its writer has it
  /// locked.
  package static func stateFiles(of nonce: String) -> [String] {
    let transaction = Transaction(nonce: nonce)
    return [transaction.open, transaction.committed]
  }

  /// Removes the remains of a dead writer's transaction, unless a value still needs them.
  ///
  /// - Parameter path: Its directory, relative to the container.
  /// - Throws: Also if a value cannot be looked at: it may need them.
  package static func sweep(_ path: String, in root: ContainerRoot) throws {
    let handle = try root.handle()
    let container = handle.descriptor.rawValue
    let transaction = Transaction(nonce: String(path.dropFirst(directory.utf8.count + 1)))
    if try transaction.isCommitted(at: container) {
      for kind in [NameKind.value, .ownValue] {
        for entry in try ContainerRoot.entries(kind.path, at: container) ?? []
        where try nonce(notedAt: kind.path + "/" + entry.name.text, in: root) == transaction.nonce {
          return
        }
      }
    }
    try transaction.discard(at: container)
  }
}
