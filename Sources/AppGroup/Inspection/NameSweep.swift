import Synchronization
import SystemCalls

/// Names give their space back: a directory goes when nothing is kept in it, and nobody holds its
/// lease, waits for it or watches it.
///
/// | step | who comes in the same moment |
/// |---|---|
/// | the lease is taken, if it is free | waits for it |
/// | the value's file is not there | cannot publish: that takes the lease |
/// | what is left in `lease/held` is unlinked, `lease/held` removed | has the removed one open, can make nothing in it (ENOENT), and begins again |
/// | `lease` is removed, if it is empty | made another `held`, or waits with a file in it: the name stays |
/// | the directory is removed, if it is empty | made another `lease`: the name stays; has the removed one open: begins again |
///
/// Nothing is ever moved away or removed with what is in it, so what somebody has made there since stays
/// (Tests/Models/names.pml). A crash leaves the name without a part of its lease, which the next change
/// makes again; or the directory of a long name without its file `identifier`, which is the same.
///
/// What else is removed says only that something was: see `Bell.remove` and `Presence.removeLast`; or it
/// is a part of a queue: see `Queue.removeParts`.
struct NameSweep {
  /// For how many seconds a name that nobody uses tells of the last post, or of who was last present.
  private static let memory: Int64 = 24 * 60 * 60

  private let container: SharedContainer
  /// What this user's processes watch: they would make the directory again, and hear of changes in it a
  /// little later until they have.
  private let watched: Set<UInt64>

  init(
    container: SharedContainer, watched: Set<UInt64> = WatchUseReading.watchedInodes()
  ) {
    self.container = container
    self.watched = watched
  }

  /// Removes the directory of a name, if it can be.
  ///
  /// - Returns: whether it is gone.
  /// - Throws: what the file system refuses.
  func remove(_ identifier: String, of kind: NameKind) throws -> Bool {
    let value = Value(container: container, identifier: identifier, kind: kind)
    switch kind.primitive {
    case .value:
      guard try look(at: value, { _ in false }) != nil else { return false }
      return try removeLeaseAndDirectory(of: value)
    case .notification:
      let bell = Bell(root: container.root, name: identifier)
      // Before its age: what is rung after that has another name.
      let sound = try bell.sound()
      guard let status = try look(at: value, Bell.isName),
        sound == .silence || isForgotten(status),
        try removeLease(of: value), try bell.remove(sound)
      else { return false }
      return try value.directory.removeIfEmpty()
    case .presence, .consumer:
      return try removePresence(identifier, value)
    case .queue:
      return try removeQueue(identifier, value)
    }
  }

  // MARK: Looking

  private static let parts: Set<String> = [LeaseSite.lease, NamedDirectory.identifierFile]

  /// - Parameter isForgettable: whether something else may lie there.
  /// - Returns: nil for what is to stay.
  private func look(
    at value: Value, _ isForgettable: (FileName) -> Bool
  ) throws -> FileStatus? {
    guard let place = try value.directory.open([.readOnly, .directory]) else { return nil }
    let status = try place.status()
    guard !watched.contains(status.inode) else { return nil }
    let isEmpty = try place.entries().allSatisfy {
      Self.parts.contains($0.name.text) || isForgettable($0.name)
    }
    return isEmpty ? status : nil
  }

  /// Whether nothing has changed in a directory for so long; a time to come is no age.
  private func isForgotten(_ status: FileStatus) -> Bool {
    let age = realTime().seconds - status.modifiedSeconds
    return age >= Self.memory
  }

  // MARK: Removing

  private func removeLeaseAndDirectory(of value: Value) throws -> Bool {
    guard try removeLease(of: value) else { return false }
    return try value.directory.removeIfEmpty()
  }

  /// - Parameter isEmpty: asked under the lease; by default whether the value's file is not there.
  private func removeLease(
    of value: Value, _ isEmpty: (@Sendable (Lease) throws -> Bool)? = nil
  ) throws -> Bool {
    let name = value.fileName
    let change = Change<Bool>(value, .init(deadline: .now, repeatsAfterLoss: false)) { site in
      { lease in
        guard try isEmpty?(lease) ?? !Self.exists(name, at: try site.directory()) else {
          return false
        }
        return try lease.removeSite()
      }
    }
    return try unlessInUse { try change.run() }
  }

  private static func exists(_ name: String, at directory: Int32) throws(Errno) -> Bool {
    do throws(Errno) {
      _ = try fileStatus(name, at: directory)
      return true
    } catch {
      guard error == .noSuchFile else { throw error }
      return false
    }
  }

  /// - Returns: false also where somebody uses it, or was quicker.
  private func unlessInUse(_ body: () throws -> Bool) throws -> Bool {
    do {
      return try body()
    } catch let error as AppGroupError
      where error.code == .timedOut || error.code == .leaseLost
      || error.errorNumber == Errno.staleHandle.rawValue
    {
      return false
    }
  }

  private func removePresence(_ name: String, _ value: Value) throws -> Bool {
    let kind = value.directory.kind
    let presence = Presence(container: container, name: name, kind: kind)
    let remains = [value.fileName, PresenceDirectory.last]
    guard let status = try look(at: value, { remains.contains($0.text) }) else { return false }
    if kind.primitive == .consumer {
      // As long as there is a queue, who consumed it last is told.
      guard try Queue(container: container, name: name).place.directory.open() == nil else {
        return false
      }
    } else if try presence.place.hasLast() {
      guard isForgotten(status) else { return false }
    }
    guard try removeLease(of: value, { try presence.removeRole($0) }) else { return false }
    try presence.removeLast()
    return try value.directory.removeIfEmpty()
  }

  private func removeQueue(_ name: String, _ value: Value) throws -> Bool {
    let queue = Queue(container: container, name: name)
    guard let directory = try queue.place.directory.open(),
      try queue.place.isEmpty(at: directory, watched: watched)
    else { return false }
    return try unlessInUse {
      guard try queue.removeParts(), try removeLease(of: value) else { return false }
      return try value.directory.removeIfEmpty()
    }
  }
}

extension SharedContainer {
  /// Removes an empty name, also one that somebody watches; for tests.
  package func removeEmptyName(_ identifier: String, _ primitive: NameKind.Primitive) throws -> Bool
  {
    try NameSweep(container: self, watched: [])
      .remove(identifier, of: NameKind(primitive))
  }
}

extension Lease {
  /// Removes the lease itself, with what belongs to it and to nobody.
  ///
  /// - Returns: false when somebody else has come.
  fileprivate func removeSite() throws(Errno) -> Bool {
    let directory = try site.directory()
    // Of this start of the machine, which a late holder must not take from a successor.
    try dropKept(of: nil)
    do throws(Errno) {
      for entry in try held.descriptor.entries() {
        try removeFile(entry.name, at: held.descriptor.rawValue)
      }
      isDeclared.store(false, ordering: .relaxed)
      // If this is a successor's by now, and still empty, it finds that it was taken away.
      try removeDirectory(site.layout.held, at: directory)
      let lease = try site.openLeaseDirectory()
      for entry in try lease.remainingEntries() where Self.isOfNobody(entry.name) {
        try removeFile(entry.name, at: lease.rawValue)
      }
      try removeDirectory(site.layout.lease, at: directory)
      return true
    } catch {
      guard [.noSuchFile, .directoryNotEmpty, .alreadyExists].contains(error) else { throw error }
      return false
    }
  }

  // A note, or a version of an earlier start of the machine, which stands for nothing where there is
  // no value.
  private static func isOfNobody(_ name: FileName) -> Bool {
    name.text == "taken.plist"
      || name.hasPrefix(KeptVersion.prefix) && name.text != KeptVersion.name
  }
}
