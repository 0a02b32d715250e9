package import Synchronization
package import WormholeSystem

/// The right to change one value, until it is released or taken over.
///
/// The contract is in <doc:RulesOfTheLease>; comments here cite its rules by number. By rule 2 the
/// new content is created through the lease's own descriptor and moved out by one rename whose
/// source is that descriptor, and a deletion is a rename into it. So a holder whose lease was taken
/// over while it was suspended can no longer publish: every step below then fails with ENOENT,
/// which becomes `leaseLost`. Closing the lease releases it (rule 1): the kernel's close for a
/// killed process also releases the lock and wakes the waiters.
package final class Lease: Sendable {
  package let site: LeaseSite
  package let held: HeldDirectory
  package let declaration: LeaseDeclaration
  /// The file that declares this process, and receives the content to publish; nil in a transient
  /// site, and if there was no room for it.
  private let staged: Mutex<FileDescriptor?>
  /// Why there was no room. Such a holder can still remove, which makes room: its first entry in the
  /// lease declares it, as in a transient site.
  let refusal: Errno?
  /// The place of that entry: in the holder's own directory, through its descriptor (rule 2).
  package let stagingPlace: (directory: Int32, name: String)
  /// The number of entries of this holder in the lease, besides the file that declares it.
  private let others = Atomic(0)
  /// Whether the file that declares this process still exists, as far as is known.
  package let isDeclared: Atomic<Bool>
  /// Whether it was open before this lease.
  private let wasKept: Bool
  /// The lease that this one becomes again when it ends, if it stays open.
  private let next = Mutex<KeptLease?>(nil)
  /// When the kept version was published, as far as that is known: only a holder changes it.
  let keptVersion: Mutex<Stamp?>

  /// Declares this process the holder of a lease that it has just locked. Fails with `.noSuchFile`
  /// if the lease was taken over already.
  init(
    site: LeaseSite, held: HeldDirectory, term: Duration, keptVersion: Stamp? = nil,
    wasKept: Bool = false
  ) throws(Errno) {
    self.wasKept = wasKept
    self.keptVersion = Mutex(keptVersion)
    self.site = site
    self.held = held
    declaration = LeaseDeclaration(term: term)
    var stagingPlace = (directory: held.descriptor.rawValue, name: declaration.name)
    if LeaseFault.stagingByPath.isActive, !site.layout.isTemporary {
      stagingPlace = (try site.directory(), site.layout.held + "/" + declaration.name)
    }
    self.stagingPlace = stagingPlace
    guard !site.layout.isTemporary else {
      staged = Mutex(nil)
      refusal = nil
      isDeclared = Atomic(false)
      return
    }
    do throws(Errno) {
      let file = try site.home.access.createFile(stagingPlace.name, at: stagingPlace.directory)
      staged = Mutex(file)
      refusal = nil
      isDeclared = Atomic(true)
    } catch {
      guard error.isLackOfRoom else { throw error }
      staged = Mutex(nil)
      refusal = error
      isDeclared = Atomic(false)
    }
  }

  /// Returns the file for the content to publish, once.
  func takeStaged() throws(Errno) -> FileDescriptor {
    if let refusal { throw refusal }
    guard let file = staged.withLock({ $0.take() }) else {
      preconditionFailure("a lease publishes once")
    }
    return file
  }

  /// Keeps the lease open when it ends.
  package func keepOpen(as lease: KeptLease) { next.withLock { $0 = lease } }

  deinit {
    undeclare()
    let next = next.withLock(\.self)
    let isWarm = next?.keep(
      site, held, keptVersion.withLock(\.self), for: declaration.identity.processID)
    guard isWarm != true else { return }
    // A child that was forked meanwhile would keep the lock. It fails only for a file that is not open.
    if wasKept { try? held.descriptor.unlock() }
    site.releaseLock()
  }

  private func undeclare() {
    guard isDeclared.load(ordering: .relaxed) else { return }
    // It fails if it was taken over or swept; the next holder removes a leftover.
    try? removeFile(stagingPlace.name, at: stagingPlace.directory)
  }

  /// Throws if the lease was taken over. A lease that still exists now may be taken over the next
  /// moment: only publishing decides.
  package func confirm() throws {
    if try held.isRemoved() { throw lost() }
    guard try site.names(held) else { throw lost() }
  }

  /// Replaces a file's content, in one step.
  ///
  /// - Parameters:
  ///   - content: The whole content.
  ///   - name: The file in the site's directory.
  ///   - exists: A hint: such a file probably exists. A wrong hint costs one rename.
  ///   - syncLevel: The extent to which the publication waits for the disk.
  ///   - willPublish: Receives the version just before it becomes visible.
  /// - Throws: `leaseLost`; then nothing has changed. After an error of the last fsync the new
  ///   content is visible, and may be lost in a power failure.
  /// - Complexity: Write, rename and unlink, and a look for the kept version; if that is old, a
  ///   wait for the disk, a link and a rename more; with `.durable` one fsync or three instead
  ///   (`LeaseSite.commitsTogether`).
  package func publish(
    _ content: PublishedContent, as name: String, exists: Bool, syncLevel: SyncLevel,
    willPublish: (Stamp) -> Void = { _ in }
  ) throws {
    var isHasty = false
    var becomesKept = false
    if case .relaxed(let isFollowedUp) = syncLevel {
      isHasty = try isFollowedUp && exists && hasFreshKeptVersion()
      becomesKept = !isHasty
    }
    willPublish(try stage(content, isHasty ? nil : syncLevel))
    let kept = becomesKept ? try nameTwice(stagingPlace.name) : nil
    if case .durable = syncLevel { try dropKept(of: name) }
    try moveOut(stagingPlace.name, to: name, exists ? .exchange : .keep) { () throws(Errno) in
      // Without an old file there would be nothing to fall back on.
      guard isHasty else { return }
      let (directory, name) = stagingPlace
      try FileDescriptor.open(name, at: directory, [.readOnly, .noFollow, .nonBlocking]).writeBack()
    }
    isDeclared.store(false, ordering: .relaxed)
    if becomesKept { keptVersion.withLock { $0 = nil } }
    if let kept { keep(kept) }
    if case .durable = syncLevel { try synchronizeDirectories() }
  }

  // Closes the file before it is moved out. A later close would be a second event, and a second
  // look at the same content, for every observer.
  private func stage(
    _ content: PublishedContent, _ syncLevel: SyncLevel?
  ) throws(Errno) -> Stamp {
    let file = try takeStaged()
    try site.home.access.write(content, to: file)
    let stamp = try site.home.stamp(file)
    switch syncLevel {
    case .durable: try site.synchronizeContent(file)
    case .written, .relaxed: try file.writeBack()
    case nil: break
    }
    return stamp
  }

  /// Publishes a file that was written elsewhere in the site's lease directory.
  package func publish(
    prepared: PreparedContent, as name: String, exists: Bool, durability: Durability
  ) throws {
    // Beside the entry that declares this process, not over it: ext4 writes a file's blocks at once
    // when it is renamed over another (mount option auto_da_alloc, ext4(5)).
    let directory = stagingPlace.directory
    let content = nextEntry()
    try failingAsLost { () throws(Errno) in
      try rename(prepared.path, at: try site.directory(), to: content, at: directory)
    }
    if durability == .durable { try dropKept(of: name) }
    try moveOut(content, to: name, exists ? .exchange : .keep)
    if durability == .durable { try synchronizeDirectories() }
  }

  /// Removes a published file by moving it into the lease.
  ///
  /// - Returns: Whether there was one.
  package func remove(_ name: String, durability: Durability) throws -> Bool {
    let held = held.descriptor.rawValue
    try dropKept(of: name)
    do throws(Errno) {
      try rename(site.layout.fromHeld(name), at: held, to: declaration.name, at: held)
    } catch {
      if error == .notDirectory || error == .isDirectory {
        // We must not delete a planted directory.
        try site.home.setAside(FileName(name + "/"), at: try site.directory())
        return true
      }
      guard error == .noSuchFile else { throw error }
      // Either there is nothing to remove, or the lease is gone.
      if try !LeaseFault.removingBlindly.isActive && self.held.isRemoved() { throw lost() }
      // Another process may have removed it without durability.
      if durability == .durable { try synchronizeDirectories() }
      return false
    }
    try discard(stagingPlace.name)
    isDeclared.store(false, ordering: .relaxed)
    if durability == .durable { try synchronizeDirectories() }
    return true
  }

  /// Flushes a published file to the disk as it is, because its publisher may not have waited.
  ///
  /// - Complexity: Three fsyncs, or two (`LeaseSite.commitsTogether`).
  package func synchronize(_ name: String) throws {
    try dropKept(of: name)
    let held = held.descriptor.rawValue
    // The absence must survive, too.
    _ = try ifPresent(
      FileDescriptor.open(
        site.layout.fromHeld(name), at: held, [.readOnly, .noFollow, .nonBlocking]
      ).synchronize())
    try synchronizeDirectories()
  }

  /// Returns a name in the lease for another entry of this holder; each of them declares it.
  package func nextEntry() -> String {
    stagingPlace.name + String(others.wrappingAdd(1, ordering: .relaxed).oldValue)
  }

  /// Moves an entry out of the lease.
  ///
  /// Rule 6. With EXCHANGE the old content comes back under our name and is unlinked; with NOREPLACE
  /// there was none. The applicable mode can change only if the lease is lost, so the loop ends.
  ///
  /// - Parameters:
  ///   - staged: Its name in the lease.
  ///   - name: Its target as seen from the site's directory.
  ///   - first: The treatment of an existing target. With `.keep` and `.exchange`, the applicable
  ///     one is found by trying.
  ///   - prepare: Called before `.keep` is tried instead of `.exchange`.
  /// - Throws: `leaseLost`; then nothing has changed.
  package func moveOut(
    _ staged: String, to name: String, _ first: RenameMode,
    beforeKeeping prepare: () throws(Errno) -> Void = {}
  ) throws {
    let source = stagingPlace.directory
    var mode = first
    for _ in 0..<renameRaceLimit {
      do throws(Errno) {
        try rename(
          staged, at: source, to: site.layout.fromHeld(name), at: held.descriptor.rawValue, mode)
        if mode == .exchange { try discard(staged) }
        return
      } catch {
        switch error {
        case .noSuchFile where mode == .exchange:
          // The target is missing, or our entry is: NOREPLACE shows which.
          mode = .keep
          try failingAsLost { () throws(Errno) in try prepare() }
        case .alreadyExists where mode == .keep: mode = .exchange
        // A file instead of a directory, or the other way round.
        case .isDirectory where mode == .replace, .notDirectory where mode == .replace:
          mode = .exchange
        case .noSuchFile: throw lost()
        // This file system has no such rename.
        case .unsupported where mode != .replace: mode = .replace
        default: throw error
        }
      }
    }
    throw lost()
  }

  /// Discards an entry of the lease, which may have been planted, and come back. A directory is put
  /// into quarantine, because we must not delete content that we did not write.
  package func discard(_ name: String) throws(Errno) {
    let directory = stagingPlace.directory
    do throws(Errno) {
      try removeFile(name, at: directory)
    } catch {
      switch error {
      // A breaker has removed it already.
      case .noSuchFile: return
      case .isDirectory:
        // Missing if a breaker came first.
        _ = try ifPresent(site.home.setAside(FileName(name), at: directory))
      default: throw error
      }
    }
  }

  /// A rename is on the disk when both directories are (fsync(2), "the directory … as well"). On a
  /// journalled file system, an fsync of the changed directory covers everything before it.
  package func synchronizeDirectories() throws(Errno) {
    let directory = try FileDescriptor.open(
      site.layout.fromHeld, at: held.descriptor.rawValue, [.readOnly, .directory])
    try directory.synchronize()
    guard try !site.commitsTogether(), try !held.isRemoved() else { return }
    try held.descriptor.synchronize()
  }

  package func lost() -> WormholeError {
    // The name of the process that took over is worth a sentence, not another error.
    let taker = try? site.taker(from: declaration)
    let by = taker.map { "by \($0)" } ?? "by a process that left no note"
    return WormholeError(
      .leaseLost, "publish a change", path: site.path,
      reason: "the lease was taken over \(by), because this process was stopped or held it "
        + "longer than its term; nothing of the change is visible",
      remedy: "read again and repeat the change", holder: taker)
  }
}
