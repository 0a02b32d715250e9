import WormholePropertyLists
package import WormholeSystem

extension PresenceDirectory {
  /// An examiner of single files of one directory, whatever they are.
  package struct Examiner {
    private let place: Int32
    private let inode: UInt64
    private let owner: FileStatus
    private let root: ContainerRoot

    /// - Parameter place: Must stay open as long as the examiner is used.
    package init(_ place: borrowing FileDescriptor, _ root: ContainerRoot) throws {
      self.place = place.rawValue
      self.root = root
      inode = try place.status().inode
      owner = try root.handle().status
    }

    /// - Returns: nil for a missing or foreign file.
    func examine(_ name: String, _ id: String) throws(Errno) -> PresenceMember? {
      guard let (record, isLocked) = try read(name, id: id) else { return nil }
      return PresenceMember(record, state: try isLocked ? state(of: record) : .gone)
    }

    /// - Parameter id: The required id of the record; nil for any.
    func read(
      _ name: String, id: String?
    ) throws(Errno) -> (record: PresenceRecord, isLocked: Bool)? {
      do throws(Errno) {
        let file = try FileDescriptor.openBeneath(name, at: place, [.readOnly, .nonBlocking])
        let status = try file.status()
        guard status.kind == .regular, root.access.trusts(status, in: owner),
          status.size <= Int64(PresenceRecord.limits.maximumBytes)
        else { return nil }
        // Before the content, because an unlocked file is dead forever.
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

    /// Returns whether it is an unlocked file of ours without a record: its process died while
    /// entering, or its content was lost with the power.
    ///
    /// - Parameter removing: Whether to remove it while it cannot be locked. Its creator, between
    ///   creating and locking it, then finds it locked or removed, and creates another one.
    package func isAbandoned(_ name: FileName, removing: Bool) throws(Errno) -> Bool {
      let isEntering = PresenceDirectory.id(in: name, after: enteringPrefix) != nil
      let member = PresenceDirectory.id(in: name, after: memberPrefix)
      guard isEntering || member != nil else { return false }
      let file = try FileDescriptor.openBeneath(name.text, at: place, [.readOnly, .nonBlocking])
      let status = try file.status()
      guard status.kind == .regular, root.access.trusts(status, in: owner),
        try file.tryLock(.shared)
      else { return false }
      if let member, try read(name.text, id: member) != nil { return false }
      if removing { try removeFile(name, at: place) }
      return true
    }

    /// Returns the state of a process whose file is locked.
    private func state(of record: PresenceRecord) throws(Errno) -> PresenceMember.State {
      // A hard link shares the lock of the original file.
      guard record.directory == inode else { return .gone }
      guard record.identity.isVisible else {
        // A different process has the lock: the machine was restarted since, or the record belongs
        // to a different machine.
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
