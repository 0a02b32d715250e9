package import WormholeSystem

extension QueueDirectory {
  /// The same files as rows, in the order in which an unused queue loses its directories.
  package static let parts = [
    ContainerPart(pending, parts: [batches(.waiting)]),
    ContainerPart(taken, parts: [consumer]),
    ContainerPart(outcomes, parts: [notes(.outcome)]),
    ContainerPart(
      sent,
      parts: [
        batches(.receipt),
        ContainerPart(each: .forgotten) { $0.text.hasSuffix(forgottenSuffix) },
      ]),
    ContainerPart(
      failed, parts: [notes(.failure), ContainerPart(each: .plain, AttachmentLayout.takenPrefix)]),
    ContainerPart(staged, copied: .nothing, parts: [ContainerPart(each: .unfinished)]),
    ContainerPart(keys, parts: [ContainerPart(each: .plain, parts: [notes(.mark)])]),
    ContainerPart(AttachmentLayout.directory, copied: .each, parts: [attachment]),
    .lease, .identifier(copied: .whole),
  ]

  private static let attachment = ContainerPart(
    each: .attachment,
    parts: [
      ContainerPart(AttachmentLayout.content),
      // A sender begins an unfinished copy again.
      ContainerPart(each: .plain, AttachmentLayout.copyingPrefix, copied: .nothing),
    ]
  ) { AttachmentLayout.isID($0.text) }

  /// All but its batches belong to the consumer as long as it lives; the next one sweeps them.
  private static let consumer = ContainerPart(
    each: .consumer,
    parts: [
      batches(.taken),
      ContainerPart(each: .deliveries) { $0.text.hasSuffix(deliveriesSuffix) },
      ContainerPart(each: .plain) { batch(besideWhich: $0.text) != nil },
      ContainerPart(each: .plain, passingPrefix),
      ContainerPart(each: .plain, AttachmentLayout.takenPrefix),
      ContainerPart(each: .plain, AttachmentLayout.makingPrefix),
    ])

  private static func batches(_ role: ContainerPart.Role) -> ContainerPart {
    ContainerPart(each: role) { EntryFile(bytes: $0.bytes) != nil }
  }

  private static func notes(_ role: ContainerPart.Role) -> ContainerPart {
    ContainerPart(each: role) { OutcomeFile.id($0.text) != nil }
  }
}

extension QueueDirectory {
  fileprivate var rows: [ContainerPart] { root.parts(Self.parts, of: .queue) }

  /// Returns whether the queue contains no entry, no record of an entry, and no unfinished file.
  package func isEmpty() throws -> Bool {
    let top = try openFile(".", [.readOnly, .directory])
    return try isEmpty(top.entries(), of: rows)
  }

  private func isEmpty(
    _ entries: [FileDescriptor.Entry], of parts: [ContainerPart], in path: String = ""
  ) throws -> Bool {
    try entries.allSatisfy { entry in
      let part = parts.first { $0.isNamed(entry.name) }
      switch part?.role {
      case .lease: return true
      // One that is not taken, and the directories of consumers and keys, as long as they are empty.
      case .plain, .consumer:
        guard let inner = part?.parts else { return path.isEmpty }
        let place = path + entry.name.text
        return try isEmpty(list(place) ?? [], of: inner, in: place + "/")
      default: return false
      }
    }
  }
}

extension QueueDirectory {
  /// Makes a call that needs an inode. If none is left, an empty part of the queue is removed for
  /// it: a process that misses the part creates it again.
  package func makingRoom(_ call: () throws(Errno) -> Void) throws(Errno) {
    // Without one of the others a consumer would seem to be replaced.
    for part in [Self.outcomes, Self.sent, Self.keys] {
      do throws(Errno) {
        return try call()
      } catch {
        guard error.isLackOfRoom else { throw error }
        try removeIfEmpty(part)
      }
    }
    try call()
  }

  /// Removes leftovers of processes that died while they sent, cleared or recorded something.
  ///
  /// - Parameter roles: The kinds of leftovers to remove.
  package func sweep(
    _ roles: Set<ContainerPart.Role> = [.unfinished, .forgotten, .mark, .attachment]
  ) throws(Errno) {
    for part in rows where part.role != .lease {
      if let name = part.name { try sweep(roles, in: name, part) }
    }
  }

  private func sweep(
    _ roles: Set<ContainerPart.Role>, in path: String, _ directory: ContainerPart
  ) throws(Errno) {
    guard let parts = directory.parts, directory.contains({ roles.contains($0.role) }) else {
      return
    }
    for entry in try list(path) ?? [] {
      guard let part = parts.first(where: { $0.isNamed(entry.name) }) else { continue }
      let place = path + "/" + entry.name.text
      if roles.contains(part.role) {
        try sweep(place, part.role, isDirectory: entry.isDirectory == true)
      } else if entry.isDirectory != false {
        try sweep(roles, in: place, part)
      }
    }
    guard directory.name == nil else { return }
    // After the sweep it may no longer be needed.
    try removeIfEmpty(path)
  }

  private func sweep(
    _ path: String, _ role: ContainerPart.Role, isDirectory: Bool
  ) throws(Errno) {
    switch role {
    case .unfinished where isDirectory: discardStaged(path)
    case .unfinished: ContainerRoot.sweepStaged(path, at: descriptor.rawValue)
    case .forgotten:
      if try !exists(String(path.dropLast(Self.forgottenSuffix.count))) { try discard(path) }
    case .mark: sweepMark(path)
    case .attachment: sweepAttachment(path)
    default: return
    }
  }

  // The lock first: its holder is about to store the entry, and releases it when the entry is
  // stored.
  func sweepMark(_ path: String) {
    let name = path.split(separator: "/").last
    guard let id = name.flatMap({ OutcomeFile.id(String($0)) }) else { return }
    do {
      let file = try openFile(path, [.readOnly, .nonBlocking])
      guard try file.tryLock(.exclusive) else { return }
      // One that is about to be shared among workers waits again.
      let isThere =
        try id.batch.count == 1
        ? exists(Self.pendingPath(id.batch)) : search { try self.file(of: id, in: $0) } != nil
      guard !isThere else { return }
      try discard(path)
    } catch {
      // Another process was faster, or it is not a file of this package.
      return
    }
  }
}

/// Removal of a queue's parts, when it is empty and has no consumer.
///
/// The process that removes it has the lease of the consumers' role for that time, so no other
/// process gets the role; and no process waits longer for it than the term of a lease. Each part is
/// removed only if it is empty, by a path through the process's own directory in `taken/`: one that
/// lost the lease while it was stopped removes nothing more (ENOENT). A sender or worker that
/// arrives at the same moment finds a part missing, creates all of them again, and stores its entry
/// there; the directory is then not empty, and stays.
extension PlainQueue {
  /// - Returns: whether all parts are gone except for the lease.
  package func removeParts() throws -> Bool {
    let role = role.place
    // Wait a moment, because a program that is just being started shares its starter's lock.
    let terms = ChangeTerms(until: .now + LeaseRequest.grace)
    return try Change(role.directory, protecting: role.role.fileName, terms) { _, _ in
      try self.removePartsUnderLease()
    }.run()
  }

  private func removePartsUnderLease() throws -> Bool {
    guard try role.members().isEmpty else { return false }
    let consumer = try DirectoryConsumer(DeliveryTerms(OpenQueue(self)), as: .alone(nil))
    defer { consumer.place.end(nil, .closed) }
    guard let place = try open() else { return false }
    try place.sweep()
    guard try place.isEmpty() else { return false }
    for part in place.rows {
      // The consumer's own directory is in `taken`.
      guard let name = part.name, part.parts != nil, part.role != .lease,
        name != QueueDirectory.taken
      else { continue }
      let path = consumer.takenPath + "/../../" + name
      if try place.removeIfEmpty(path) { continue }
      // It may never have been created.
      guard try !place.exists(path), try place.exists(consumer.takenPath) else { return false }
    }
    return try place.removeIfEmpty(consumer.takenPath)
      && place.removeIfEmpty(QueueDirectory.taken)
  }
}
