import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeToolkit

/// Examines a container without changing anything in it.
///
/// An inspection ends, whatever the container contains: files are opened without waiting for a
/// FIFO's other end and without following links, directories are listed up to a limit, and after
/// `patience` or `maximumBytes` the rest is left out and the report says so.
struct ContainerInspection {
  /// The largest number of names of a kind, and of entries in any other directory, that are
  /// examined.
  static let maximumNames = 100_000
  static let maximumEntries = 1_000
  static let maximumBytes: Int64 = 512 << 20
  static let patience: Duration = .seconds(10)

  let container: SharedContainer
  let handle: ContainerRoot.Handle
  private(set) var locks: LockTable?
  let scope: ReportScope
  /// Complete after the initialization.
  var report: ContainerReport
  private let deadline = ContinuousClock.now + Self.patience
  private var bytesLeft = Self.maximumBytes

  init(_ container: SharedContainer, _ scope: ReportScope) throws {
    self.container = container
    self.scope = scope
    handle = try container.root.handle()
    report = ContainerReport(path: container.root.path)
    // Without /proc only the declarations of the holders are known.
    locks = try? LockTable.current()
    readFormat()
    report.networkFileSystem = try handle.descriptor.fileSystem().networkName
    lookAtTopLevel()
    lookAtOwn()
    for kind in NameKind.users + NameKind.owns { lookAtNames(of: kind) }
    lookAtTransactions()
    lookAtMailboxes()
    lookAtQuarantine()
    // An entry that is gone at a second look belonged to a process that has finished; one that is
    // locked by then belongs to a process that began after the first look. Without a table, no
    // entry counts as locked.
    if !report.leftovers.isEmpty { locks = try? LockTable.current() }
    report.leftovers = report.leftovers.filter {
      LeaseFault.reportingYoungEntries.isActive ? status($0.path) != nil : isLeft($0)
    }
    if LeaseFault.reportingSweptNames.isActive || LeaseFault.reportingEndedTransactions.isActive {
      return
    }
    report.foreignEntries = report.foreignEntries.filter { status($0.path) != nil }
  }

  private func isLeft(_ leftover: ContainerReport.Leftover) -> Bool {
    guard let status = status(leftover.path), locks?.holders(of: status).isEmpty != false else {
      return false
    }
    let name = leftover.path.split(separator: "/").last.map(String.init) ?? ""
    guard leftover.kind == .abandonedChange else { return true }
    guard let owner = leftover.owner else {
      // It may have ended during this look.
      return isAbandoned(transaction: name) && self.status(leftover.path) != nil
    }
    guard name == LeaseSite.transaction else { return true }
    // A process that has the lease removes the note at the end of its transaction.
    if isHeld(owner.path) { return false }
    // The report names it if it cannot be read.
    let nonce = try? Transaction.nonce(notedAt: owner.path, in: container.root)
    return nonce.map { isAbandoned(transaction: $0) } ?? false
  }

  private mutating func readFormat() {
    let action = "read the container's version"
    attempt(action, at: ContainerFormat.fileName) { inspection in
      guard
        let file = try ifPresent(
          FileDescriptor.openBeneath(
            ContainerFormat.fileName, at: inspection.directory, [.readOnly, .nonBlocking]))
      else {
        throw WormholeError(
          .containerMissing, action, path: inspection.absolute(ContainerFormat.fileName),
          reason: "the file is missing",
          remedy: "the next program that opens the container to write makes it again")
      }
      let content = try PropertyListValue(
        bytes: file.readToEnd(expectedBytes: 0, maximumBytes: 65_536))
      inspection.report.formatVersion = content["formatVersion"]?.int64Value
      inspection.report.groupIdentifier = content["group"]?.stringValue
      inspection.report.created = content["created"]?.dateValue
    }
  }

  private mutating func lookAtTopLevel() {
    for entry in list(".") {
      let name = entry.name.text
      if ContainerFormat.ownEntries.contains(name) {
        checkOwnerAndMode(name)
      } else if SharedContainer.isStaged(entry.name), isStale(name) {
        add(.abandonedCreation, name)
      }
      // All other entries are the user's, because the files of a group are in its container, too.
    }
  }

  /// Unlike the container, `own/` holds no files of the user.
  private mutating func lookAtOwn() {
    for entry in list(NameKind.own) {
      let path = NameKind.own + "/" + entry.name.text
      if NameKind.owns.contains(where: { $0.path == path }) {
        checkOwnerAndMode(path)
      } else if entry.name.hasPrefix(".new-") {
        if isStale(path) { add(.abandonedCreation, path) }
      } else if !NameKind.otherOwn.contains(entry.name.text) {
        addForeign(path)
      }
    }
  }

  /// After the names, because a sweep settles the values of a transaction before it removes the
  /// transaction.
  private mutating func lookAtTransactions() {
    for entry in list(Transaction.directory) where isAbandoned(transaction: entry.name.text) {
      add(.abandonedChange, Transaction.directory + "/" + entry.name.text)
    }
  }

  private mutating func lookAtQuarantine() {
    for entry in list(Quarantine.directory) {
      let path = Quarantine.directory + "/" + entry.name.text
      guard let status = status(path) else { continue }
      report.quarantine.append(
        .init(path: absolute(path), bytes: status.size, modified: status.modified))
    }
  }

  private mutating func lookAtMailboxes() {
    attempt("look at the mailboxes", at: ContainerFormat.mailboxes) { inspection in
      for path in try MailboxDirectory.dead(in: inspection.container.root) {
        inspection.add(.abandonedMailbox, path)
      }
    }
  }

  /// Looks at the names in their order.
  private mutating func lookAtNames(of kind: NameKind) {
    var found: [(identifier: String, name: FileName)] = []
    for entry in list(kind.path, limit: Self.maximumNames) {
      let path = kind.path + "/" + entry.name.text
      switch EncodedName.decode(entry.name.bytes) {
      case .identifier(let identifier): found.append((identifier, entry.name))
      case .long:
        attempt("read the identifier", at: path) { inspection in
          let identifier = try NamedDirectory.longIdentifier(path, at: inspection.directory)
          guard let identifier else { return inspection.addForeign(path) }
          found.append((identifier, entry.name))
        }
      case .foreign where entry.name.hasPrefix(".new-"):
        if isStale(path) { add(.abandonedCreation, path) }
      case .foreign: addForeign(path)
      }
    }
    found.removeAll { !scope.includes($0.identifier, kind) }
    found.sort { $0.identifier.utf8.lexicographicallyPrecedes($1.identifier.utf8) }
    for (identifier, name) in found {
      guard ContinuousClock.now < deadline else {
        report.isPartial = true
        return
      }
      lookAtName(identifier, of: kind, at: kind.path + "/" + name.text)
    }
  }
}

extension ContainerInspection {
  var directory: Int32 { handle.descriptor.rawValue }

  func absolute(_ path: String) -> String {
    path == "." ? container.root.path : container.root.path + "/" + path
  }

  /// Returns the status of a path inside or of an absolute path; nil if it is missing or invisible.
  func status(_ path: String) -> FileStatus? {
    // An invisible entry is reported where it is listed or read.
    try? fileStatus(path, at: directory)
  }

  /// Runs a part of the inspection; records its failure and continues with the rest.
  mutating func attempt(
    _ action: String, at path: String, _ body: (inout ContainerInspection) throws -> Void
  ) {
    let failure = failure(of: action, path: absolute(path)) { try body(&self) }
    if let failure { report.failures.append(failure) }
  }

  /// Passes a directory's entries to a closure, some at a time, as long as the closure wants
  /// more; none if the directory is missing.
  mutating func forEach(
    in path: String, _ body: (inout ContainerInspection, [FileDescriptor.Entry]) -> Bool
  ) {
    if let kind = status(path)?.kind, kind != .directory {
      return addForeign(path, isInTheWay: true)
    }
    attempt("list the directory", at: path) { inspection in
      guard
        let open = try ifPresent(
          FileDescriptor.openBeneath(path, at: inspection.directory, [.readOnly, .directory]))
      else { return }
      var entries: [FileDescriptor.Entry] = []
      // In a directory that was removed meanwhile nothing can be listed (getdents(2), ENOENT).
      while LeaseFault.listingRemovedDirectories.isActive
        ? try open.nextEntries({ entries.append($0) })
        : try ifPresent(open.nextEntries({ entries.append($0) })) == true,
        body(&inspection, entries)
      {
        entries = []
      }
    }
  }

  mutating func list(_ path: String, limit: Int = maximumEntries) -> [FileDescriptor.Entry] {
    var all: [FileDescriptor.Entry] = []
    forEach(in: path) { _, entries in
      all += entries
      return all.count <= limit
    }
    if all.count > limit { report.isPartial = true }
    return Array(all.prefix(limit))
  }

  func isStale(_ path: String) -> Bool {
    status(path)?.isStale ?? false
  }

  mutating func mayRead(_ bytes: Int64) -> Bool {
    guard bytes <= bytesLeft, ContinuousClock.now < deadline else {
      report.isPartial = true
      return false
    }
    bytesLeft -= bytes
    return true
  }

  mutating func add(
    _ kind: ContainerReport.Leftover.Kind, _ path: String, of owner: Owner? = nil
  ) {
    append(
      .init(kind: kind, path: absolute(path), owner: owner), to: \.leftovers,
      atMost: Self.maximumNames)
  }

  mutating func addForeign(_ path: String, isInTheWay: Bool = false) {
    append(
      .init(path: absolute(path), isInTheWay: isInTheWay), to: \.foreignEntries,
      atMost: isInTheWay ? .max : Self.maximumEntries)
  }

  private mutating func append<Item>(
    _ item: Item, to list: WritableKeyPath<ContainerReport, [Item]>,
    atMost limit: Int = maximumEntries
  ) {
    if report[keyPath: list].count < limit {
      report[keyPath: list].append(item)
    } else {
      report.isPartial = true
    }
  }

  /// Records an entry that another user owns or could write to.
  ///
  /// Permission to read is not a fault: the container's own mode keeps other users out, and a
  /// script that takes part writes its files with its user's umask.
  mutating func checkOwnerAndMode(_ path: String) {
    guard let status = status(path), status.kind != .symbolicLink else { return }
    if status.kind == .directory, status.permissions & 0o700 != 0o700 {
      report.failures.append(
        WormholeError(
          .permissionDenied, "write in a directory", path: absolute(path),
          reason: "its mode is \(String(status.permissions, radix: 8))",
          remedy: "chmod u+rwx '\(absolute(path))'"))
    }
    let isForeign = !container.root.access.trusts(status, in: handle.status)
    let mask: UInt32 = container.root.access == .owner ? 0o022 : 0o002
    guard isForeign || status.permissions & mask != 0 else { return }
    append(
      .init(
        path: absolute(path), owner: status.owner, mode: String(status.permissions, radix: 8),
        isForeign: isForeign), to: \.looseEntries)
  }
}
