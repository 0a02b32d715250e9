import Synchronization
package import SystemCalls

/// The right to change one value, until it is ended or taken away.
///
/// The contract (DESIGN, "Leases"): what the holder will publish is made through the lease's own
/// descriptor and moved out by one rename whose source is that descriptor, and a deletion is a
/// rename into it. So a holder that was overtaken while it was suspended cannot publish any more:
/// every step below then fails with ENOENT, which becomes `leaseLost`. Ending is closing: also the
/// close that the kernel makes for a killed process frees the lock and wakes those who wait.
package final class Lease: Sendable {
  let site: LeaseSite
  package let held: HeldDirectory
  package let declaration: LeaseDeclaration
  /// The file that declares us, and in an exclusive lease takes what will be published; none in a
  /// site that is passing.
  private let staged: Mutex<SharedDescriptor?>
  /// What is in a passing site, as it was after locking: what only a holder of the lease makes or
  /// takes away is there still.
  package let surroundings: [FileName]
  /// Where that entry is: in the holder's own directory, through its descriptor (rule 2).
  let stagingPlace: (directory: Int32, name: String)
  /// How many entries this holder has had in the lease, besides a file that declares it.
  private let others = Atomic(0)
  /// Whether the file that declares us is still there as far as we know.
  let isDeclared: Atomic<Bool>

  /// Declares this process the holder of a lease that it has just locked. Fails with
  /// `.noSuchFile` when the lease has already been taken away.
  init(
    site: LeaseSite, held: HeldDirectory, mode: LockMode, term: Duration,
    surroundings: [FileDescriptor.Entry]
  ) throws(Errno) {
    self.site = site
    self.held = held
    declaration = LeaseDeclaration(mode: mode, term: term)
    stagingPlace =
      if site.fault == .stagingByPath {
        (try site.directory(), site.layout.held + "/" + declaration.name)
      } else {
        (held.descriptor.rawValue, declaration.name)
      }
    guard !site.layout.isPassing else {
      precondition(mode == .exclusive, "sharers of a lease are told apart by their declarations")
      self.surroundings = surroundings.map(\.name)
      staged = Mutex(nil)
      isDeclared = Atomic(false)
      return
    }
    self.surroundings = []
    let file = try site.home.createFile(stagingPlace.name, at: stagingPlace.directory)
    staged = Mutex(SharedDescriptor(file))
    isDeclared = Atomic(true)
  }

  deinit {
    guard isDeclared.load(ordering: .relaxed) else { return }
    let (directory, name) = stagingPlace
    do throws(Errno) {
      try removeFile(name, at: directory)
    } catch {
      // Taken away or already swept; a leftover is removed by the next exclusive holder.
      return
    }
  }

  /// Fails if the lease was taken away. One that still stands now may be taken away the next
  /// moment: only publishing decides.
  package func confirm() throws {
    if try held.isRemoved() { throw lost() }
    guard try site.names(held) else { throw lost() }
  }

  /// Puts new content where the old one is, in one step.
  ///
  /// - Parameters:
  ///   - bytes: the whole content.
  ///   - name: the file in the site's directory.
  ///   - exists: whether there probably is such a file; only decides what is tried first.
  ///   - diligence: how much of it waits for the disk.
  ///   - willPublish: gets the version just before anybody can see it.
  /// - Throws: `leaseLost`; nothing has changed then. After an error of the last fsync the new
  ///   content is visible, and may be lost with the power.
  /// - Complexity: write, rename and unlink, and a look for the kept version; a wait for the disk and
  ///   a link and rename more where that is old; with `.durable` three fsyncs instead.
  func publish(
    _ bytes: [UInt8], as name: String, exists: Bool, diligence: Diligence,
    willPublish: (Stamp) -> Void = { _ in }
  ) throws {
    precondition(declaration.mode == .exclusive, "a shared lease cannot publish")
    var isHasty = false
    var becomesKept = false
    if case .relaxed(let isFollowedUp) = diligence {
      isHasty = try isFollowedUp && exists && hasFreshKeptVersion()
      becomesKept = !isHasty
    }
    willPublish(try stage(bytes, isHasty ? nil : diligence))
    let kept = becomesKept ? try nameTwice(stagingPlace.name) : nil
    try moveOut(stagingPlace.name, as: name, exists ? .exchange : .keep) { () throws(Errno) in
      // Where there is nothing, nothing could be fallen back on.
      if isHasty { try writeBack(stagingPlace.name, at: stagingPlace.directory) }
    }
    isDeclared.store(false, ordering: .relaxed)
    if let kept { keep(kept) }
    if case .durable = diligence { try synchronizeDirectories() }
  }

  // Closes the file before it is moved out: closed afterwards it would be a second event, and a
  // second look at the same content, for every observer.
  private func stage(_ bytes: [UInt8], _ diligence: Diligence?) throws(Errno) -> Stamp {
    guard let file = staged.withLock({ $0.take() }) else {
      preconditionFailure("a lease publishes once")
    }
    try file.descriptor.writeAll(bytes)
    let stamp = try site.home.stamp(file.descriptor)
    switch diligence {
    case .durable: try file.descriptor.synchronize()
    case .written, .relaxed: try file.descriptor.writeBack()
    case nil: break
    }
    return stamp
  }

  /// Publishes a file that was written elsewhere in the site's lease directory.
  func publish(
    prepared: Preparation, as name: String, exists: Bool, durability: Durability
  ) throws {
    // Beside the entry that declares us, not over it: ext4 writes a file's blocks at once when it is
    // renamed over another (mount option auto_da_alloc, ext4(5)).
    let directory = stagingPlace.directory
    let content = nextEntry()
    do throws(Errno) {
      try rename(prepared.path, at: try site.directory(), to: content, at: directory)
    } catch {
      throw error == .noSuchFile ? lost() : error
    }
    try moveOut(content, as: name, exists ? .exchange : .keep)
    if durability == .durable { try synchronizeDirectories() }
  }

  /// Removes a published file by moving it into the lease.
  ///
  /// - Returns: whether there was one.
  func remove(_ name: String, durability: Durability) throws -> Bool {
    let held = held.descriptor.rawValue
    try dropKept(of: name)
    do throws(Errno) {
      try rename(site.layout.fromHeld + name, at: held, to: declaration.name, at: held)
    } catch {
      if error == .notDirectory || error == .isDirectory {
        // Somebody planted a directory: not ours to delete.
        try site.home.setAsideDirectory(name, at: try site.directory())
        return true
      }
      guard error == .noSuchFile else { throw error }
      // Either there is nothing to remove, or the lease is gone.
      if try self.held.isRemoved() { throw lost() }
      // Whoever removed it may have left it at that.
      if durability == .durable { try synchronizeDirectories() }
      return false
    }
    try discardOld(stagingPlace.name)
    isDeclared.store(false, ordering: .relaxed)
    if durability == .durable { try synchronizeDirectories() }
    return true
  }

  /// Puts a published file on the disk as it is: whoever published it may have left that to chance.
  ///
  /// - Complexity: three fsyncs.
  func synchronize(_ name: String) throws(Errno) {
    do throws(Errno) {
      let file = try FileDescriptor.open(
        site.layout.fromHeld + name, at: held.descriptor.rawValue,
        [.readOnly, .noFollow, .nonBlocking])
      try file.synchronize()
    } catch {
      // That there is none is to last as well.
      guard error == .noSuchFile else { throw error }
    }
    try synchronizeDirectories()
  }

  /// A name in the lease for something of this holder's; each of them declares it.
  func nextEntry() -> String {
    let number = others.wrappingAdd(1, ordering: .relaxed).oldValue
    return site.layout.isPassing && number == 0
      ? stagingPlace.name : stagingPlace.name + String(number)
  }

  // Rule 6. With EXCHANGE the old content comes back under our name and is unlinked; with
  // NOREPLACE there was none. Which applies may only change when we have lost the lease, so the
  // loop ends.
  func moveOut(
    _ staged: String, as name: String, _ first: RenameMode,
    beforeKeeping prepare: () throws(Errno) -> Void = {}
  ) throws {
    let source = stagingPlace.directory
    var mode = first
    for _ in 0..<interruptionLimit {
      do throws(Errno) {
        try rename(
          staged, at: source, to: site.layout.fromHeld + name, at: held.descriptor.rawValue, mode)
        if mode == .exchange { try discardOld(staged) }
        return
      } catch {
        switch error {
        case .noSuchFile where mode == .exchange:
          // The target is missing, or ours is: NOREPLACE tells which.
          mode = .keep
          do throws(Errno) { try prepare() } catch {
            throw error == .noSuchFile ? lost() : error
          }
        case .alreadyExists where mode == .keep: mode = .exchange
        // A file where a directory was, or the other way round.
        case .isDirectory where mode == .replace, .notDirectory where mode == .replace:
          mode = .exchange
        case .noSuchFile: throw lost()
        // This file system has no such rename.
        case .invalidArgument where mode != .replace: mode = .replace
        default: throw error
        }
      }
    }
    throw lost()
  }

  // What came back may be anything that somebody planted; a directory is put into quarantine, for
  // what was not written by us is not ours to delete.
  func discardOld(_ name: String) throws(Errno) {
    let directory = stagingPlace.directory
    do throws(Errno) {
      try removeFile(name, at: directory)
    } catch {
      switch error {
      // A breaker has removed it already.
      case .noSuchFile: return
      case .isDirectory:
        try setAsideOld(FileName(bytes: Array(name.utf8)), at: directory)
      default: throw error
      }
    }
  }

  private func setAsideOld(_ name: FileName, at directory: Int32) throws(Errno) {
    do throws(Errno) {
      try site.home.setAside(name, at: directory)
    } catch {
      // A breaker was quicker.
      guard error == .noSuchFile else { throw error }
    }
  }

  /// A rename is on the disk when both directories are (fsync(2), "the directory … as well").
  private func synchronizeDirectories() throws(Errno) {
    let directory = try FileDescriptor.open(
      site.layout.fromHeld, at: held.descriptor.rawValue, [.readOnly, .directory])
    try directory.synchronize()
    guard try !held.isRemoved() else { return }
    try held.descriptor.synchronize()
  }

  package func lost() -> AppGroupError {
    var taker: LeaseHolder?
    do throws(Errno) {
      taker = try site.taker(from: declaration)
    } catch {
      // Who it was is worth a sentence, not another error.
      taker = nil
    }
    let by = taker.map { "by \($0)" } ?? "by a process that left no note"
    return AppGroupError(
      .leaseLost, "publish a change", path: site.path,
      reason: "the lease was taken away \(by), because this process was stopped or held it "
        + "longer than its term; nothing of the change is visible",
      remedy: "read again and repeat the change", holder: taker)
  }
}
