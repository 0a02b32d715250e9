import WormholeSystem

/// The waiting line of a lease, which keeps overlapping readers from starving a writer. A writer
/// that must wait joins the line, and new readers queue behind it (rule 7).
///
/// Each waiting writer has its own file, `lease/waiting-<nonce>`, which it locked before the file
/// got that name. So joining cannot fail, however busy the readers are. (With one file for all, the
/// writer could miss every moment without a reader; see Tests/Models/gate.pml.) The line is only a
/// matter of fairness: removing a writer's file breaks nothing. So the file of a stopped writer is
/// removed, and so is the file of a dead one, whose lock the kernel has released.
struct WaitingLine {
  private let site: LeaseSite
  /// This process, waiting to write.
  private var own: Waiter?
  /// The first writer that was found waiting.
  private var first: Waiter?

  init(site: LeaseSite) {
    self.site = site
  }

  private final class Waiter: Sendable {
    let name: String
    let descriptor: FileDescriptor
    let status: FileStatus
    /// Set for this process's own file, which is removed with its request, however that ends.
    private let site: LeaseSite?

    init(
      _ name: String, _ descriptor: consuming FileDescriptor, ownAt site: LeaseSite? = nil
    ) throws(Errno) {
      self.name = name
      status = try descriptor.status()
      self.descriptor = descriptor
      self.site = site
    }

    deinit {
      guard let site else { return }
      // It was removed, or is swept as soon as the lock is released, which is now.
      try? removeFile(name, at: site.directory())
    }
  }

  // MARK: For writers

  /// Joins the line, unless this writer is in it already.
  mutating func join() throws(Errno) {
    if let own, try own.descriptor.status().links > 0 { return }
    let nonce = Nonce.next()
    let staged = site.layout.prefix + LeaseSite.preparedPrefix + nonce
    let name = site.layout.prefix + LeaseSite.waitingPrefix + nonce
    // Without room for it, readers may come first.
    guard
      let file = try tolerating(
        [.noSpace, .diskQuotaExceeded],
        site.home.access.createFile(staged, at: try site.directory()))
    else { return }
    // Free: only a sweeper opens it, and removes it, so that the rename fails and the next look
    // joins.
    _ = try file.tryLock(.exclusive)
    try rename(staged, at: try site.directory(), to: name, at: try site.directory())
    own = try Waiter(name, file, ownAt: site)
  }

  /// Leaves the line, with or without the lease: other processes may pass.
  mutating func leave() {
    first = nil
    own = nil
  }

  // MARK: For readers

  /// Returns whether no writer waits.
  ///
  /// The file of the writer that was found waiting stays open from attempt to attempt, because
  /// closing it would wake all other readers.
  mutating func isEmpty() throws(Errno) -> Bool {
    if let first {
      guard try isAbandoned(first) else { return false }
      self.first = nil
    }
    while let waiter = try next() {
      guard try isAbandoned(waiter) else {
        first = waiter
        return false
      }
    }
    return true
  }

  // Its writer has left, or died.
  private func isAbandoned(_ waiter: Waiter) throws(Errno) -> Bool {
    if try waiter.descriptor.status().links == 0 { return true }
    guard try waiter.descriptor.tryLock(.shared) else { return false }
    try remove(waiter)
    return true
  }

  private func next() throws(Errno) -> Waiter? {
    guard let lease = try ifPresent(site.openLeaseDirectory()) else { return nil }
    for entry in try lease.entries() where entry.name.hasPrefix(LeaseSite.waitingPrefix) {
      let name = site.layout.prefix + entry.name.text
      do throws(Errno) {
        let waiter = try Waiter(
          name,
          try FileDescriptor.openBeneath(
            name, at: try site.directory(), [.readOnly, .nonBlocking]))
        // Other entries do not belong to a writer, and a directory cannot be removed as a file.
        if waiter.status.kind == .regular { return waiter }
      } catch {
        // Left at this moment; or a link or a socket, which cannot be locked.
        guard [.noSuchFile, .tooManyLinks, .noSuchDevice].contains(error) else { throw error }
      }
    }
    return nil
  }

  private func remove(_ waiter: Waiter) throws(Errno) {
    try removeIfPresent(waiter.name, at: try site.directory())
  }

  /// Signals when the writer that was found waiting leaves.
  func watch(_ signal: @escaping @Sendable () -> Void) -> Watch? {
    guard let first else { return nil }
    return ChangeMonitor.shared.watchOpen(
      first.descriptor, [.closedWithoutWriting, .closedAfterWriting, .attributes]
    ) { _ in signal() }
  }

  /// Removes the file of a writer that is stopped, or that is invisible from here and has waited
  /// beyond the standard term. A running writer leaves by itself, at its own deadline at the
  /// latest.
  mutating func takeOverIfOverdue(
    observed: inout Observed, now: ContinuousClock.Instant
  ) throws(Errno) -> Bool {
    guard let first, try observed.waiterIsOverdue(first.status, now: now) else { return false }
    self.first = nil
    try remove(first)
    return true
  }
}
