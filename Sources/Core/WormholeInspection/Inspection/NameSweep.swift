package import Wormhole
import WormholeSystem

/// The removal of unused names: a directory is removed when it is empty and no process holds its
/// lease or waits for it. A process that watches it then watches the nearest existing directory.
///
/// | step | a process that arrives at the same moment |
/// |---|---|
/// | the lease is taken, if it is free | waits for it |
/// | the value's file is missing | cannot publish, because that takes the lease |
/// | the rest of `lease/held` is unlinked, `lease/held` removed | has the removed directory open, can create nothing in it (ENOENT), and begins again |
/// | `lease` is removed, if it is empty | has made another `held`, or waits with a file in it: the name stays |
/// | the directory is removed, if it is empty | has made another `lease`: the name stays; has the removed directory open: begins again |
///
/// No directory is ever moved or removed with content, so files that were created in the meantime
/// stay (Tests/Models/names.pml). A crash leaves the name without a part of its lease, which the
/// next change creates again, or the directory of a long name without its file `identifier`, which
/// is also created again.
///
/// The other removals only delete the record of a past event (see `PostFile.remove` and
/// `Presence.removeLast`), or a part of a queue (see `Queue.removeParts`).
struct NameSweep {
  /// The time for which an unused name records the last post, or the last present process.
  private static let memory: Duration = .seconds(24 * 60 * 60)

  let container: SharedContainer

  /// Removes the directory of a name if it is unused, and returns whether it is gone.
  func remove(_ identifier: String, of kind: NameKind) throws -> Bool {
    let directory = NamedDirectory(root: container.root, kind: kind, identifier: identifier)
    let isEmpty =
      switch kind.primitive {
      case .value: try look(at: directory) != nil && removeLease(of: directory)
      case .notification: try removeNotification(directory)
      case .presence, .consumer: try removePresence(directory)
      case .queue: try removeQueue(directory)
      case .log: try removeLog(directory)
      }
    return try isEmpty && directory.removeIfEmpty()
  }

  // MARK: Looking

  /// Checks whether a name has, besides its lease, only records that may be forgotten.
  ///
  /// - Returns: nil if the name must stay.
  private func look(
    at directory: NamedDirectory, forgetting isForgettable: (ContainerPart) -> Bool = { _ in false }
  ) throws -> FileStatus? {
    guard let place = try directory.open([.readOnly, .directory]) else { return nil }
    let status = try place.status()
    let parts = container.root.parts(of: directory.kind.primitive)
    let isEmpty = try place.entries().allSatisfy { entry in
      guard let part = parts.first(where: { $0.isNamed(entry.name) }) else { return false }
      return part.role == .lease || part.name == NamedDirectory.identifierFile
        || isForgettable(part)
    }
    return isEmpty ? status : nil
  }

  /// Returns whether a directory has not changed for long enough; a time in the future does not
  /// count.
  private func isForgotten(_ status: FileStatus) -> Bool {
    status.age >= Self.memory
  }

  // MARK: Removing

  /// Removes the lease of a name without a file.
  private func removeLease(of directory: NamedDirectory) throws -> Bool {
    let name = PlainValue(
      container: container, identifier: directory.identifier, kind: directory.kind
    ).fileName
    return try removeLease(of: directory) { try !exists(name, at: $0.site.directory()) }
  }

  /// - Parameter isEmpty: Called under the lease.
  private func removeLease(
    of directory: NamedDirectory, _ isEmpty: @escaping @Sendable (Lease) throws -> Bool
  ) throws -> Bool {
    try change(directory) { try isEmpty($0) && $0.removeSite() }
  }

  private func change(
    _ directory: NamedDirectory, _ body: @escaping @Sendable (Lease) throws -> Bool
  ) throws -> Bool {
    let change = Change<Bool>(directory, .init(until: .now, repeatsAfterLoss: false)) { lease, _ in
      try body(lease)
    }
    return try unlessInUse { try change.run() }
  }

  /// - Returns: false, too, if a process uses it, or was faster.
  private func unlessInUse(_ body: () throws -> Bool) throws -> Bool {
    do {
      return try body()
    } catch let error as WormholeError
      where error.code == .timedOut || error.code == .leaseLost
      || error.errorNumber == Errno.staleHandle.rawValue
    {
      return false
    }
  }

  private func removeNotification(_ directory: NamedDirectory) throws -> Bool {
    let posts = PostFile(root: container.root, name: directory.identifier)
    // Read before its age, because a later post gets another name.
    let mark = try posts.mark()
    guard let status = try look(at: directory, forgetting: { $0.role == .post }) else {
      return false
    }
    return try (mark.marks.isEmpty || isForgotten(status)) && removeLease(of: directory)
      && posts.remove(mark)
  }

  private func removePresence(_ directory: NamedDirectory) throws -> Bool {
    let (name, kind) = (directory.identifier, directory.kind)
    let presence = PresenceDirectory(container: container, name: name, kind: kind)
    guard
      let status = try look(at: directory, forgetting: { [.content, .last].contains($0.role) })
    else { return false }
    if kind.primitive == .consumer {
      // As long as there is a queue, its last consumer is reported.
      let queue = PlainQueue(
        container: container, name: name, kind: NameKind(.queue, isOwn: kind.isOwn))
      guard try queue.open() == nil else { return false }
    } else if try presence.hasLast() {
      guard isForgotten(status) else { return false }
    }
    guard try removeLease(of: directory, { try presence.removeRole($0) }) else { return false }
    try presence.removeLast()
    return true
  }

  private func removeLog(_ directory: NamedDirectory) throws -> Bool {
    let log = container.log(directory.identifier)
    let isOfLog = { (part: ContainerPart) in
      part.contains { [.content, .message].contains($0.role) }
    }
    guard try look(at: directory, forgetting: isOfLog) != nil,
      let place = try LogDirectory(log.value.directory), try !place.hasEntries()
    else { return false }
    return try change(directory) { try log.removeFile($0) } && removeLease(of: directory)
  }

  private func removeQueue(_ directory: NamedDirectory) throws -> Bool {
    let queue = PlainQueue(container: container, name: directory.identifier, kind: directory.kind)
    guard try queue.open()?.isEmpty() == true else { return false }
    return try unlessInUse {
      try queue.removeParts() && removeLease(of: directory) { _ in true }
    }
  }
}

extension SharedContainer {
  /// Removes the names of a queue and of its consumers if the queue is empty and unused.
  /// Directories that a program is just removing are left to that program: removing them, too,
  /// means entering them, and `rm -r` would fail.
  package func removeUnusedQueue(_ name: String, isOwn: Bool) {
    // A sweep of the container tries it again.
    try? inspected.removeUnused(isOwn ? own.queue(name) : queue(name), in: self)
  }

  /// Removes the directory of a name if it is unused, and returns whether it is gone.
  package func removeEmptyName(
    _ identifier: String, _ primitive: NameKind.Primitive, isOwn: Bool = false
  ) throws -> Bool {
    try NameSweep(container: self)
      .remove(identifier, of: NameKind(primitive, isOwn: isOwn))
  }
}
