import WormholePropertyLists
package import WormholeSystem

/// Rules 4 and 5: taking over a lease, and finishing a takeover that another process began.
extension LeaseSite {
  /// Moves this generation of the lease aside and removes it. After that its late holder can no
  /// longer publish: a removed directory accepts no entry and yields none.
  ///
  /// Taking over a lease that is not overdue is safe, too (its holder tries again), so the look and
  /// the rename need not be one step.
  package func takeOver(_ held: HeldDirectory, from victim: LeaseDeclaration?) throws(Errno) {
    guard try names(held) else { return }
    let broken = Self.brokenPrefix + Nonce.next()
    let directory = try directory()
    // Otherwise another breaker came first.
    let isTaken =
      try layout.isTemporary
      ? putAside(held, from: victim)
      : ifPresent(
        rename(layout.held, at: directory, to: Self.lease + "/" + broken, at: directory)) != nil
    guard isTaken else { return }
    Diagnostics.noteTakeover(
      of: layout.isTemporary ? "file" : "lease", path,
      from: victim.map { LeaseHolder(identity: $0.identity, held: $0.age) }, in: containerPath)
    guard !layout.isTemporary else { return }
    try note(victim)
    try clear(broken)
  }

  /// Takes over a lease that leaves no other name: moves its holder's entries out, and then removes it. After
  /// the first step the holder can publish nothing that is in its entry, after the second create none.
  ///
  /// - Returns: False if another process came first, or has the lease by now.
  private func putAside(
    _ held: HeldDirectory, from victim: LeaseDeclaration?
  ) throws(Errno) -> Bool {
    let descriptor = held.descriptor.rawValue
    for entry in try held.descriptor.entries() {
      // All entries of a process share its lease. One without a living owner is a leftover.
      let owner = home.declaration(entry.name)?.identity
      guard owner.map({ $0 == victim?.identity || $0.hasEnded }) ?? true else { continue }
      _ = try ifPresent(home.setAside(entry.name, at: descriptor))
    }
    return try removeIfEmpty(layout.held, at: directory())
  }

  /// Removes every lease that was taken over but not yet removed, by any process, and prepared
  /// content whose writer has died.
  ///
  /// - Returns: The other entries of the lease's directory.
  /// - Throws: `.deviceBusy` if a network file system keeps the late holder's open files.
  @discardableResult
  package func clearRemains() throws(Errno) -> [FileDescriptor.Entry] {
    let lease = try openLeaseDirectory()
    var others: [FileDescriptor.Entry] = []
    for entry in try lease.remainingEntries() {
      if entry.name.hasPrefix(Self.brokenPrefix) {
        try clear(entry.name.text)
      } else if entry.name.hasPrefix(Self.preparedPrefix) {
        if try !removesIfAbandoned(entry, at: lease.rawValue) { others.append(entry) }
      } else {
        others.append(entry)
      }
    }
    return others
  }

  private func clear(_ broken: String) throws(Errno) {
    let path = Self.lease + "/" + broken
    for _ in 0..<renameRaceLimit {
      do throws(Errno) {
        let victim = try FileDescriptor.openBeneath(
          path, at: try directory(), [.readOnly, .directory])
        let entries = try victim.entries()
        for entry in entries { try remove(entry, at: victim.rawValue) }
        for entry in entries where try Self.isKeptOpen(entry.name, at: victim.rawValue) {
          throw Errno.deviceBusy
        }
        try removeDirectory(path, at: try directory())
        return
      } catch {
        switch error {
        // A helper finished it.
        case .noSuchFile: return
        // The late holder has created another entry meanwhile; each of its attempts creates one.
        case .directoryNotEmpty, .alreadyExists: continue
        // Not a directory, so not a lease.
        case .notDirectory, .tooManyLinks: return try removeFile(path, at: try directory())
        default: throw error
        }
      }
    }
    throw .directoryNotEmpty
  }

  /// Returns whether a network file system's client gave the name to a removed file that a process
  /// had open. The file disappears only when that process closes it: removing it fails (NFS), or
  /// gives it another such name (FUSE).
  ///
  /// On a local file system it came with a copy.
  private static func isKeptOpen(_ name: FileName, at directory: Int32) throws(Errno) -> Bool {
    guard name.hasPrefix(".nfs") || name.hasPrefix(".fuse_hidden") else { return false }
    return try FileDescriptor.open(".", at: directory, [.pathOnly, .directory]).fileSystem()
      .networkName != nil
  }

  private func remove(_ entry: FileDescriptor.Entry, at directory: Int32) throws(Errno) {
    if try Self.isKeptOpen(entry.name, at: directory) { return }
    do throws(Errno) {
      try removeFile(entry.name, at: directory)
    } catch {
      switch error {
      case .noSuchFile: return
      case .isDirectory:
        // At once: its process may have it locked, and be stopped, and would keep it.
        if layout.isTemporary, entry.name.text == Self.spare,
          try removeIfEmpty(Self.spare, at: directory)
        {
          return
        }
        // It may have content that no process of this package wrote, so we must not delete it.
        try home.setAside(entry.name, at: directory)
      default: throw error
      }
    }
  }

  /// Removes the leftovers of dead predecessors in the lease; only for its holder.
  func removeLeftovers(_ names: [FileDescriptor.Entry], in held: HeldDirectory) throws(Errno) {
    if layout.isTemporary, !names.isEmpty { try held.touch() }
    for entry in names { try remove(entry, at: held.descriptor.rawValue) }
  }

  // The file is not locked: its writer has died, or will find it gone and write it again.
  private func removesIfAbandoned(
    _ entry: FileDescriptor.Entry, at lease: Int32
  ) throws(Errno) -> Bool {
    do throws(Errno) {
      let file = try FileDescriptor.open(
        entry.name.text, at: lease, [.readOnly, .noFollow, .nonBlocking])
      guard try file.tryLock(.exclusive) else { return false }
      try remove(entry, at: lease)
    } catch {
      switch error {
      // Its writer came first, and renamed it into the lease.
      case .noSuchFile: return true
      // Another member's, who has just created it.
      case .accessDenied: return false
      // A link or a socket: no process of this package created it, and it cannot be locked.
      case .tooManyLinks, .noSuchDevice: try remove(entry, at: lease)
      default: throw error
      }
    }
    return true
  }
}

/// `taken.plist`: names the new holder to a late one. The breaker writes it by rename. If that
/// fails, the late holder learns that it lost the lease, but not to which process.
extension LeaseSite {
  private func note(_ victim: LeaseDeclaration?) throws(Errno) {
    let breaker = ProcessIdentity.current
    var content: PropertyListValue = [
      "breakerProcess": .integer(Int64(breaker.processID)),
      "breakerStart": .integer(Int64(clamping: breaker.startTicks)),
      "breakerNamespace": PropertyListValue(breaker.namespace),
      "bootTimeMilliseconds": .integer(Int64(clamping: bootTimeNanoseconds() / 1_000_000)),
    ]
    if let victim { content["victim"] = .string(victim.name) }
    let bytes: [UInt8]
    do throws(PropertyListError) {
      bytes = try content.binaryBytes()
    } catch {
      preconditionFailure("numbers and an ASCII name are a property list: \(error)")
    }
    let staged = Self.lease + "/" + Self.preparedPrefix + Nonce.next()
    do throws(Errno) {
      let file = try home.access.createFile(staged, at: try directory())
      try file.writeAll(bytes)
      try rename(staged, at: try directory(), to: Self.taken, at: try directory())
    } catch {
      // On a full disk the lease must still be taken over; the note is optional.
      guard error.isLackOfRoom || error == .noSuchFile else { throw error }
      try removeIfPresent(staged, at: try directory())
    }
  }

  /// Returns the process that took over this holder's lease, if it could write the note.
  func taker(from victim: LeaseDeclaration) throws(Errno) -> LeaseHolder? {
    guard
      let file = try ifPresent(
        FileDescriptor.openBeneath(Self.taken, at: directory(), [.readOnly, .nonBlocking]))
    else { return nil }
    let bytes = try file.readToEnd(expectedBytes: 0, maximumBytes: 65_536)
    let content: PropertyListValue
    do throws(PropertyListError) {
      content = try PropertyListValue(bytes: bytes)
    } catch {
      // A damaged note counts as missing.
      return nil
    }
    guard content["victim"]?.stringValue == victim.name,
      let process = content["breakerProcess"]?.int64Value.flatMap({ Int32(exactly: $0) }),
      let start = content["breakerStart"]?.uint64Value,
      let namespace = content["breakerNamespace"]?.uint64Value
    else { return nil }
    return LeaseHolder(
      identity: ProcessIdentity(processID: process, startTicks: start, namespace: namespace),
      held: nil)
  }
}
