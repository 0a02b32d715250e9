import PropertyLists
import SystemCalls

extension PresenceDirectory {
  /// Looks at single files of one directory, whatever lies there.
  struct Examiner {
    private let place: Int32
    private let inode: UInt64
    private let owner: FileStatus
    private let root: ContainerRoot

    /// - Parameter place: must stay open as long as the examiner is used.
    init(_ place: borrowing FileDescriptor, _ root: ContainerRoot) throws {
      self.place = place.rawValue
      self.root = root
      inode = try place.status().inode
      owner = try root.handle().status
    }

    /// What a file says of whom, and whether it is locked.
    struct Found {
      let record: PresenceRecord
      let member: PresenceMember
    }

    /// - Returns: nil for what is gone, or none of ours.
    func examine(_ name: String, _ id: String) throws(Errno) -> Found? {
      guard let (record, isLocked) = try read(name, id: id) else { return nil }
      let state = try isLocked ? state(of: record) : .gone
      return Found(record: record, member: PresenceMember(record, state: state))
    }

    /// - Parameter id: whose record it has to be; nil for anybody's.
    func read(
      _ name: String, id: String?
    ) throws(Errno) -> (record: PresenceRecord, isLocked: Bool)? {
      do throws(Errno) {
        let file = try FileDescriptor.openBeneath(name, at: place, [.readOnly, .nonBlocking])
        let status = try file.status()
        guard status.kind == .regular, root.access.trusts(status, in: owner),
          status.size <= Int64(PresenceRecord.limits.maximumBytes)
        else { return nil }
        // Before the content: unlocked once is dead for ever.
        let isLocked = try !file.tryLock(.shared)
        let bytes = try file.readToEnd(
          expectedBytes: Int(status.size), maximumBytes: PresenceRecord.limits.maximumBytes)
        guard let record = PresenceRecord(bytes, id: id) else { return nil }
        return (record, isLocked)
      } catch {
        guard isPassedOver(error) || error == .fileTooLarge else { throw error }
        return nil
      }
    }

    /// Whether it is one of our files that nobody has locked, and says nothing: of one who died
    /// while entering, or whose content was lost with the power.
    ///
    /// - Parameter removing: whether to remove it, while nobody else can lock it: its maker, between
    ///   making and locking it, then finds it locked or removed, and makes another.
    func isAbandoned(_ name: FileName, removing: Bool) throws(Errno) -> Bool {
      let isEntering = PresenceDirectory.id(in: name, after: enteringPrefix) != nil
      let member = PresenceDirectory.id(in: name, after: memberPrefix)
      guard isEntering || member != nil else { return false }
      let file = try FileDescriptor.openBeneath(
        name.text, at: place, [.readOnly, .nonBlocking])
      let status = try file.status()
      guard status.kind == .regular, root.access.trusts(status, in: owner),
        try file.tryLock(.shared)
      else { return false }
      if let member, try read(name.text, id: member) != nil { return false }
      if removing { try removeFile(name, at: place) }
      return true
    }

    /// Of one whose file is locked.
    private func state(of record: PresenceRecord) throws(Errno) -> PresenceMember.State {
      // A hard link shares the lock of the file that it was made from.
      guard record.directory == inode else { return .gone }
      guard record.identity.isVisible else {
        // Somebody else has the lock: the machine was started anew since, or it is another's.
        guard record.isOfAnotherBoot, try !isOnNetwork() else { return .unknown }
        return .gone
      }
      guard let status = ProcessStatus.of(record.identity.processID) else { return .unknown }
      guard status.startTicks == record.identity.startTicks, !status.isDead else { return .gone }
      return status.isStopped ? .suspended : .running
    }

    private func isOnNetwork() throws(Errno) -> Bool {
      let directory = try FileDescriptor.open(".", at: place, [.pathOnly, .directory])
      return try directory.fileSystem().networkName != nil
    }
  }
}
