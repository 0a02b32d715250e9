package import Wormhole
import WormholeSystem
import WormholeToolkit

/// Publishes an accessor's private copy in one step: tries as long as readers or other processes
/// are in the way. The caller ends the access afterwards.
///
/// The copy is moved to the item's place through the lease's descriptor. Either the entry is still in
/// the lease, or nothing is published.
final class ItemPublication: Waiting {
  private let access: ItemAccess
  private let copy: StagedCopy
  private let terms: AccessTerms
  private let deadline: ContinuousClock.Instant
  private let isReported: Bool

  private var change: StagedCopy.Change?
  /// The status of the item's place when this attempt began.
  private var old: FileStatus?
  private var survey: AccessSurvey
  /// The directory whose entries were found unchanged since the copy; nil before that.
  private var compared: FileStatus?
  /// Whether the copy is on the disk.
  private var isSynchronized = false
  private var isPublished = false

  private var location: ItemPath { access.location }
  private var entry: ItemEntry { copy.entry }

  /// - Parameters:
  ///   - deadline: how long to wait for others.
  ///   - isReported: whether the caller reports what is published, and so needs its status.
  init(
    of copy: StagedCopy, by access: ItemAccess, under terms: AccessTerms,
    until deadline: ContinuousClock.Instant, isReported: Bool
  ) {
    self.isReported = isReported
    self.access = access
    self.copy = copy
    self.terms = terms
    self.deadline = deadline
    survey = AccessSurvey(purpose: terms.purpose)
  }

  /// - Returns: the published change, with the item's current status if it is reported.
  func step() throws -> WaitingStep<StagedCopy.Change> {
    do {
      return try reporting("publish the item", path: location.text, attempt)
    } catch {
      // A process that was taken over finds its copy missing.
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
      // While a directory is replaced, no process may be changing something inside it, because the
      // change would be made in the old directory.
      try entry.beginPublishing(coversContents: true)
      if let obstacle = try survey.lookInside(location) {
        return try wait(for: obstacle.holder, obstacle.what)
      }
    }
    if terms.durability == .durable, !isSynchronized {
      isSynchronized = true
      if case .replaced(let status) = change {
        try TreeSynchronization.run(location.name, status, at: entry.descriptor)
      }
    }
    // The file is still open from copying, unless it was replaced since.
    if let lock = try survey.lookForReaders(
      of: location, found: old, opened: access.takeLock())
    {
      // From now on new readers wait, so that the wait for readers ends.
      try entry.beginPublishing()
      return try wait(for: lock.holder(), "a lock on it")
    }
    if survey.passesOwnReaders(of: location), entry.name.kind != .publishing {
      // From now on new readers wait, and the next look finds those that came before.
      try entry.beginPublishing()
      return .again
    }
    // The awaited processes are gone, and the survey's lock keeps new readers out.
    try compareEntries()
    return .done(try entry.publishing { try publish(change, under: $0) })
  }

  private func isOfDirectory(_ change: StagedCopy.Change) -> Bool {
    if case .replaced(let status) = change, status.kind == .directory { return true }
    return old?.kind == .directory
  }

  // Not in the step that publishes, because there may be many. From here on, coordinated changes of
  // them are kept out.
  private func compareEntries() throws {
    guard copy.hasEntries, compared == nil else { return }
    let named = 3
    let changes = try copy.changes(atMost: named + 1).map {
      $0.bytes.isEmpty ? "the directory itself" : $0.text
    }
    guard changes.isEmpty else {
      throw WormholeError.conflict(
        path: location.text, entries: Array(changes.prefix(named)), areMore: changes.count > named)
    }
    compared = old
  }

  private func publish(
    _ change: StagedCopy.Change, under lease: Lease
  ) throws -> StagedCopy.Change {
    guard try isCurrent() else { throw WormholeError.conflict(path: location.text) }
    if case .replaced(let status) = change { ItemPublisher.mark(entry.copyPath, status) }
    try moveIn(change, under: lease)
    isPublished = true
    // The lock is on the old item, which is removed next.
    _ = survey.takeLock(of: location)
    // From here on the change is visible: a process that is stopped here and taken over was not
    // overtaken.
    if LeaseFault.reportingPublishedAsLost.isActive, try !entry.isStanding() {
      throw entry.overtaken()
    }
    let published = isReported ? try location.status() : nil
    if terms.durability == .durable {
      try FileDescriptor.open(location.parent.text, [.readOnly, .directory]).synchronize()
      try entry.synchronize()
    }
    if case .replaced(let status) = change, status.kind == .regular { entry.letSiteStay() }
    return isReported ? published.map { .replaced($0) } ?? .removed : change
  }

  private func isCurrent() throws(Errno) -> Bool {
    // All others were kept out by the lease.
    guard copy.hasEntries || terms.hasCompanions, !LeaseFault.publishingOverOthers.isActive
    else { return true }
    let now = try location.status()
    guard copy.hasEntries else { return copy.isCurrent(now) }
    guard let now, let compared else { return false }
    return now.isSameFile(as: compared)
  }

  // Even if others had the item all the time: the accessor has done its work.
  private func keepingCopy(_ error: any Error) -> any Error {
    guard let cause = error as? WormholeError,
      [.conflict, .timedOut, .overtaken].contains(cause.code), let path = copy.keep()
    else { return error }
    return cause.keeping(copy: path)
  }

  private func moveIn(_ change: StagedCopy.Change, under lease: Lease) throws {
    guard case .replaced(let status) = change else { return try entry.removeItem(under: lease) }
    // For files, the rename of an atomic save: file systems then write the content first, so that a
    // power loss leaves the old or the new one (ext4(5), auto_da_alloc).
    let isFileForFile = status.kind != .directory && old.map { $0.kind != .directory } ?? false
    do {
      try entry.publishCopy(
        isFileForFile ? .replace : old == nil ? .keep : .exchange, under: lease)
    } catch let error as Errno where error == .deviceBusy {
      throw WormholeError(
        .notAnItem, "publish the item", path: location.text,
        reason: "another file or file system is mounted on it, so nothing can take its place",
        remedy: "change it in place, or change what is mounted there")
    }
  }

  private func wait(
    for holder: @autoclosure () throws -> LeaseHolder?, _ what: String
  ) throws -> WaitingStep<StagedCopy.Change> {
    try survey.wait(
      with: terms.latch, until: deadline,
      else: .timedOut("publish the item", path: location.text, holder: holder(), of: what))
  }
}

/// The process that published a file through a coordinator: an extended attribute of the file, set
/// on the private copy before it replaces the item. So there is no second file, and the attribute
/// exists exactly when the content does.
///
/// ```
/// 1 byte    the version of this layout: 2
/// 8 bytes   the inode of the content that it speaks of
/// 8 bytes   the size of that content
/// 8 bytes   the time of its last change in nanoseconds since 1970
/// 4 bytes   the number of the process
/// 8 bytes   the time of publication in nanoseconds since 1970
/// n bytes   the name of its program, in UTF-8, at most 15
/// ```
/// All numbers have their most significant byte first. A program that changes the file without a
/// coordinator changes its size or time, and a copy has another inode: no process is then named.
/// The same holds for directories, and for file systems without extended attributes.
///
/// It has at most 52 bytes, because beside its name no more fit into an ext4 inode. A longer one
/// takes a disk block for each file, allocated and freed with each publication.
package enum ItemPublisher {
  static let attribute = FileName("user.wormhole.publisher")

  private static let version: UInt8 = 2
  private static let maximumProgramBytes = 15

  /// Names this process as the publisher of a copy that it is about to publish.
  ///
  /// - Parameter status: The status of the copy.
  /// - Complexity: One system call.
  static func mark(_ path: String, _ status: FileStatus) {
    guard status.kind == .regular else { return }
    var value = identity(of: status)
    value.append(number: ProcessIdentity.current.processID)
    value.append(number: PublicationRecord.now)
    value += ProcessIdentity.program.utf8.prefix(maximumProgramBytes)
    // If it cannot have one, or this user may not write to it, no process is named.
    try? setAttribute(attribute, value, of: path)
  }

  /// Returns the process that published the current content; nil if it is unknown.
  ///
  /// - Complexity: Four system calls.
  package static func of(_ path: String) -> Publisher? {
    do throws(Errno) {
      let file = try FileDescriptor.open(path, [.readOnly, .noFollow, .nonBlocking])
      let value = try file.attribute(attribute)
      // At the places of the layout above.
      guard value.starts(with: identity(of: try file.status())), value.count > 37,
        let process = Int32(exactly: value.number(in: 25..<29)), process > 0,
        let program = String(validating: value[37...], as: UTF8.self)
      else { return nil }
      return Publisher(
        processID: process, program: program, peer: nil,
        nanosecondsSince1970: Int64(bitPattern: value.number(in: 29..<37)))
    } catch {
      // The attribute or the file does not exist.
      return nil
    }
  }

  private static func identity(of status: FileStatus) -> [UInt8] {
    var bytes = [version]
    bytes.append(number: status.inode)
    bytes.append(number: status.size)
    bytes.append(number: status.modifiedMoment.mark)
    return bytes
  }
}

extension [UInt8] {
  fileprivate func number(in place: Range<Int>) -> UInt64 {
    self[place].reduce(0) { $0 << 8 | UInt64($1) }
  }
}
