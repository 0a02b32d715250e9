import WormholePropertyLists
package import WormholeSystem

extension PresenceDirectory {
  /// An examiner of single files of one directory, whatever they are.
  package struct Examiner {
    private let place: Int32
    private let inode: UInt64
    private let owner: FileStatus
    private let root: ContainerRoot
    private let locks = CachedLockTable()

    /// - Parameter place: Must stay open as long as the examiner is used.
    package init(_ place: borrowing FileDescriptor, _ root: ContainerRoot) throws {
      self.place = place.rawValue
      self.root = root
      inode = try place.status().inode
      owner = try root.handle().status
    }

    /// - Returns: nil for a missing or foreign file.
    func examine(_ name: String, _ id: String) throws(Errno) -> PresenceMember? {
      guard let (record, lockedFile) = try read(name, id: id) else { return nil }
      guard let lockedFile else { return PresenceMember(record, state: .gone) }
      return PresenceMember(record, state: try state(of: record, in: lockedFile))
    }

    /// - Parameter id: The required id of the record; nil for any.
    /// - Returns: The record, and its file if that is locked.
    func read(
      _ name: String, id: String?
    ) throws(Errno) -> (record: PresenceRecord, lockedFile: FileStatus?)? {
      do throws(Errno) {
        let file = try open(name)
        let status = try file.status()
        guard isOurs(status), status.size <= Int64(PresenceRecord.limits.maximumBytes) else {
          return nil
        }
        // Before the content, because an unlocked file is dead forever.
        let isLocked = try !file.tryLock(.shared)
        // Removed and then unlocked, after it was opened here: its process has left, and is not dead.
        if id != nil, !isLocked, try !isNamed(name, status) { return nil }
        let bytes = try file.readToEnd(
          expectedBytes: Int(status.size), maximumBytes: PresenceRecord.limits.maximumBytes)
        guard let record = PresenceRecord(bytes, id: id) else { return nil }
        return (record, isLocked ? status : nil)
      } catch {
        guard isPassedOver(error) || error == .fileTooLarge else { throw error }
        return nil
      }
    }

    /// Kills what works under a registration: it would go on beside the one that takes the registration's
    /// place.
    ///
    /// - Returns: Whether all of it has ended.
    func endWork(of id: String, until deadline: ContinuousClock.Instant) throws(Errno) -> Bool {
      guard let file = try file(of: id) else { return true }
      return try endInheritors(of: file, until: deadline)
    }

    /// Whether something works under a registration, and all of it is stopped.
    func isWorkStopped(of id: String) throws(Errno) -> Bool {
      guard let file = try file(of: id) else { return false }
      let heirs = try inheritors(of: file)
      return !heirs.isEmpty && heirs.allSatisfy(\.isStopped)
    }

    /// - Returns: nil if it has ended.
    private func file(of id: String) throws(Errno) -> FileStatus? {
      for name in [PresenceDirectory.memberName(id), PresenceDirectory.enteringName(id)] {
        if let file = try ifPresent(fileStatus(name, at: place)) { return file }
      }
      return nil
    }

    /// Returns whether it is an unlocked file of ours without a record: its process died while
    /// entering, or its content was lost in a power failure.
    ///
    /// - Parameter removing: Whether to remove it while it cannot be locked. Its creator, between
    ///   creating and locking it, then finds it locked or removed, and creates another one.
    package func isAbandoned(_ name: FileName, removing: Bool) throws(Errno) -> Bool {
      let isEntering = PresenceDirectory.id(in: name, after: enteringPrefix) != nil
      let member = PresenceDirectory.id(in: name, after: memberPrefix)
      guard isEntering || member != nil else { return false }
      let file = try open(name.text)
      guard try isOurs(file.status()), try file.tryLock(.shared) else { return false }
      if let member, try read(name.text, id: member) != nil { return false }
      if removing { try removeFile(name, at: place) }
      return true
    }

    private func open(_ name: String) throws(Errno) -> FileDescriptor {
      try .openBeneath(name, at: place, [.readOnly, .nonBlocking])
    }

    private func isNamed(_ name: String, _ status: FileStatus) throws(Errno) -> Bool {
      try ifPresent(fileStatus(name, at: place).isSameFile(as: status)) ?? false
    }

    private func isOurs(_ status: FileStatus) -> Bool {
      status.kind == .regular && root.access.trusts(status, in: owner)
    }

    private func state(
      of record: PresenceRecord, in file: FileStatus
    ) throws(Errno) -> PresenceMember.State {
      // A hard link shares the lock of the original file.
      guard record.directory == inode else { return .gone }
      guard record.identity.isVisible else {
        // In another namespace, on another machine, or from an earlier boot of this one. A
        // container may have a boot id of its own (systemd-nspawn), so the lock's holder is
        // compared, as it sees itself; once more with the current locks, because a file created
        // after the first look at them may have a removed file's number.
        return locks.excludes(record.identity, from: file, again: false)
          && locks.excludes(record.identity, from: file, again: true) ? .gone : .unknown
      }
      let status = ProcessStatus.of(record.identity.processID)
      let own = record.identity.status.flatMap { $0.isDead ? nil : $0 }
      if let own, !own.isStopped { return .running }
      // What the process has started to work under its role has the lock, too; the process itself
      // may be stopped, or have ended.
      let heirs: [ProcessStatus]
      do throws(Errno) {
        heirs = try inheritors(of: file)
      } catch {
        // Where /proc may not be read, it shows nothing of them.
        guard [.accessDenied, .notPermitted, .noSuchFile].contains(error) else { throw error }
        return own == nil ? .unknown : .suspended
      }
      // What a killed process has left behind is ended by the one that takes its place: the kernel
      // has begun with the first process.
      if !heirs.isEmpty, record.identity.hasEnded { return .suspended }
      if heirs.contains(where: { !$0.isStopped }) { return .running }
      guard own == nil, heirs.isEmpty else { return .suspended }
      return status == nil ? .unknown : .gone
    }
  }
}

/// The machine's locks, which are read once for all files of a look: each reading makes every
/// flock(2) on the machine wait.
private final class CachedLockTable {
  private var table: LockTable?

  /// Whether the file is locked, and each process that has locked it is certainly another one.
  ///
  /// - Parameter again: Whether the locks are read again.
  func excludes(_ identity: ProcessIdentity, from file: FileStatus, again: Bool) -> Bool {
    // Without the table the holder is unknown, like one that is not shown there.
    if again || table == nil { table = try? LockTable.current() }
    let holders = table?.holders(of: file) ?? []
    return !holders.isEmpty && holders.allSatisfy(identity.differs(fromProcessHere:))
  }
}

/// The file of one registration, open for writing and locked; the registration lives as long as
/// this object.
final class PresenceFile: Sendable {
  private let file: FileDescriptor
  private let status: FileStatus

  private init(_ file: consuming FileDescriptor) throws(Errno) {
    status = try file.status()
    self.file = file
  }

  var descriptor: Int32 { file.rawValue }

  /// Returns whether a path inside still names this file.
  func isNamed(_ path: String, at directory: Int32) throws(Errno) -> Bool {
    try ifPresent(fileStatus(path, at: directory).isSameFile(as: status)) ?? false
  }

  /// Ends the registration for all processes. Closing the file would not, as long as a child that is
  /// being started shares the lock.
  func unlock() throws(Errno) { try file.unlock() }

  /// Creates, locks and writes `entering-<id>.plist`.
  ///
  /// - Parameter place: The named directory.
  static func stage(
    _ record: PresenceRecord, at place: borrowing FileDescriptor, in root: ContainerRoot
  ) throws -> PresenceFile {
    let name = PresenceDirectory.enteringName(record.id)
    var record = record
    record.directory = try place.status().inode
    let bytes = try record.bytes()
    for _ in 0..<renameRaceLimit {
      let made: FileDescriptor
      do throws(Errno) {
        made = try root.access.createFile(name, at: place.rawValue)
      } catch {
        guard error == .alreadyExists else { throw error }
        // Our own file from a failed attempt, or a copy of it.
        try removeIfPresent(name, at: place.rawValue)
        continue
      }
      // A sweeper that has the lock now removes the file, or has removed it: create another one.
      guard try made.tryLock(.exclusive) else {
        try removeIfPresent(name, at: place.rawValue)
        continue
      }
      let file = try PresenceFile(made)
      guard try file.file.status().links > 0 else { continue }
      do throws(Errno) {
        try file.file.writeAll(bytes)
      } catch {
        // Otherwise it is swept as soon as it is unlocked, which is now.
        _ = try? removeIfPresent(name, at: place.rawValue)
        throw error
      }
      return file
    }
    throw Errno.deviceBusy
  }
}
