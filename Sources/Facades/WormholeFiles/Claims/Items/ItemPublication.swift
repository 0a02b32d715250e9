import Wormhole
import WormholeSystem

/// Publishes an accessor's private copy in one step: attempt after attempt, as long as readers or other
/// processes are in the way. The caller ends the access afterwards.
///
/// Under the site's lease no process can take the claim away: the claim still exists, or nothing is
/// published.
final class ItemPublication: Waiting {
  private let access: ItemAccess
  private let copy: StagedCopy
  private let terms: AccessTerms
  private let deadline: ContinuousClock.Instant

  private var change: StagedCopy.Change?
  /// The status of the item's place when this attempt began.
  private var old: FileStatus?
  private var contents = ContentsWait()
  private var readers = ReadersWait()
  private var others = ClaimSurvey()
  private var request: LeaseRequest?
  /// The directory whose entries were found unchanged since the copy; nil before that.
  private var compared: FileStatus?
  /// Whether the copy is on the disk.
  private var isSynchronized = false
  /// Whether the copy has left the claim, and shares the lease's fate.
  private var isInLease = false
  private var isPublished = false

  private var location: ItemPath { access.location }
  private var claim: Claim { copy.claim }

  /// - Parameter deadline: how long to wait for others.
  init(
    of copy: StagedCopy, by access: ItemAccess, under terms: AccessTerms,
    until deadline: ContinuousClock.Instant
  ) {
    self.access = access
    self.copy = copy
    self.terms = terms
    self.deadline = deadline
  }

  /// - Returns: the published change, with the item's current status.
  func step() throws -> WaitingStep<StagedCopy.Change> {
    do {
      return try reporting("publish the item", path: location.text, attempt)
    } catch {
      // A process that lost its claim finds its copy missing.
      throw keepingCopy(isPublished ? error : [access].lossBehind(error))
    }
  }

  private func attempt() throws -> WaitingStep<StagedCopy.Change> {
    let change = try self.change ?? copy.change()
    self.change = change
    guard change != .none else {
      // There is nothing to publish, so nothing can be lost.
      if let loss = try access.loss() { throw loss }
      return .done(.none)
    }
    old = try location.status()
    if isOfDirectory(change) {
      // While a directory is replaced, no process may be in the middle of a change inside it, because
      // the change would be made in the old directory.
      try claim.beginPublishing(coversContents: true)
      if let obstacle = try contents.look(in: location, purpose: terms.purpose) {
        return try wait(for: obstacle.holder, obstacle.what) { contents.watch($0) }
      }
    }
    if terms.durability == .durable, !isSynchronized { try synchronizeCopy(change) }
    if let lock = try readers.look(at: location, found: old) {
      // New readers wait from now on, so that the wait for readers ends.
      try claim.beginPublishing()
      return try wait(for: lock.holder(), "is reading it") { readers.watch($0) }
    }
    // The awaited processes are gone, and `readers` keeps new ones out.
    try compareEntries()
    return try publish(change)
  }

  private func isOfDirectory(_ change: StagedCopy.Change) -> Bool {
    if case .replaced(let status) = change, status.kind == .directory { return true }
    return old?.kind == .directory
  }

  // Not under the lease, because there may be many entries. Coordinated changes of them are kept out
  // from here on.
  private func compareEntries() throws {
    guard copy.hasEntries, compared == nil else { return }
    let named = 3
    let changes = try copy.changes(atMost: named + 1).map {
      $0.bytes.isEmpty ? "the directory itself" : $0.text
    }
    guard changes.isEmpty else {
      throw FileCoordinationError.conflict(
        path: location.text, entries: Array(changes.prefix(named)), areMore: changes.count > named)
    }
    compared = old
  }

  private func publish(_ change: StagedCopy.Change) throws -> WaitingStep<StagedCopy.Change> {
    do {
      return try claim.site.step(toLease: &request, until: deadline) { lease in
        try publish(change, under: lease)
      }
    } catch let error as AppGroupError where error.code == .leaseLost {
      request = nil
      // This process was stopped here. The copy is still in the claim, or the claim is gone.
      guard isInLease else { return .again }
      throw FileCoordinationError.overtaken(
        "publish the item", path: location.text, by: error.holder)
    } catch let error as Errno where error == .staleHandle {
      throw claim.overtaken()
    }
  }

  private func publish(_ change: StagedCopy.Change, under lease: Lease) throws -> WaitingStep<
    StagedCopy.Change
  > {
    // A takeover renames the claim under the lease, and no other claim has this name.
    guard lease.surroundings.contains(where: { $0.text == claim.name.text }) else {
      throw claim.overtaken()
    }
    if let other = try others.look(
      at: claim.site, under: lease, purpose: terms.purpose, for: .publishing)
    {
      if other.isTaken { return .again }
      try claim.beginPublishing()
      return try wait(for: other.name.holder, "shares it") { others.watch($0) }
    }
    guard try isCurrent() else { throw FileCoordinationError.conflict(path: location.text) }
    if case .replaced(let status) = change {
      ItemPublisher.mark(claim.copyPath, status)
    }
    try moveIn(change, under: lease)
    isPublished = true
    // The lock is on the old item, which is removed next.
    readers = ReadersWait()
    let published = try location.status()
    if terms.durability == .durable { try synchronizeDirectories(lease) }
    // The change is visible from here on: a leftover that cannot be removed does not make it a failure,
    // and a process that is stopped here and loses its claim was not overtaken.
    claim.endIfEmpty(under: lease)
    return .done(published.map { .replaced($0) } ?? .removed)
  }

  private func isCurrent() throws(Errno) -> Bool {
    // Accesses of another purpose were kept out by the claim.
    guard copy.hasEntries || terms.hasCompanions else { return true }
    let now = try location.status()
    guard copy.hasEntries else { return copy.isCurrent(now) }
    guard let now, let compared else { return false }
    return now.isSameFile(as: compared)
  }

  // Beside the item, where its owner looks for it.
  private func keepingCopy(_ error: any Error) -> any Error {
    guard let conflict = error as? FileCoordinationError, conflict.code == .conflict else {
      return error
    }
    let path = copy.keptPath()
    do throws(Errno) {
      try rename(location.name, at: claim.descriptor, to: path, at: Directory.current)
      return conflict.keeping(copy: path)
    } catch {
      // The accessor removed its copy, or nothing may be created here: the conflict is the error.
      return conflict
    }
  }

  private func moveIn(_ change: StagedCopy.Change, under lease: Lease) throws {
    let item = claim.site.item
    guard case .replaced(let status) = change else {
      if let old = try lease.takeIn(item) { try lease.discard(old) }
      return
    }
    guard let entry = try lease.takeIn(location.name.text, at: claim.descriptor) else {
      throw Errno.noSuchFile
    }
    isInLease = true
    // For files the rename of an atomic save: file systems then write the content first, so that a
    // loss of power leaves the old or the new one (ext4(5), auto_da_alloc).
    let isFileForFile = status.kind != .directory && old.map { $0.kind != .directory } ?? false
    try lease.moveOut(
      entry, to: item, isFileForFile ? .replace : old == nil ? .keep : .exchange)
  }

  private func synchronizeCopy(_ change: StagedCopy.Change) throws {
    isSynchronized = true
    guard case .replaced(let status) = change else { return }
    try TreeSynchronization.run(location.name, status, at: claim.descriptor)
  }

  private func synchronizeDirectories(_ lease: Lease) throws {
    try FileDescriptor.open(location.parent.text, [.readOnly, .directory]).synchronize()
    try lease.held.descriptor.synchronize()
  }

  private func wait(
    for holder: @autoclosure () throws -> LeaseHolder?, _ what: String, _ watch: (WakeLatch) -> Bool
  ) throws -> WaitingStep<StagedCopy.Change> {
    try terms.wait(
      until: deadline,
      else: .timedOut("publish the item", path: location.text, holder: holder(), has: what), watch)
  }
}
