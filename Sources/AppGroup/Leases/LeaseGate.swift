import SystemCalls

/// Keeps overlapping readers from starving a writer: a writer that must wait puts up a gate, and new
/// readers queue behind it.
///
/// Each waiting writer has a file of its own, `lease/waiting-<nonce>`, which it locked before the
/// file got that name, so announcing itself cannot fail however busy the readers are. (With one
/// file for all, the writer could miss every moment in which no reader is passing; see
/// Tests/Models/gate.pml.) A gate is only a matter of fairness: nothing breaks when it is taken
/// away, so that of a stopped writer is, and that of a dead one, whose lock the kernel has freed.
struct LeaseGate {
  private let site: LeaseSite
  private var announced: Gate?
  private var blocking: Gate?

  init(site: LeaseSite) {
    self.site = site
  }

  private final class Gate: Sendable {
    let name: String
    let descriptor: FileDescriptor
    let status: FileStatus
    /// Set for this process's own gate: goes when its request goes, however that ends.
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
      do throws(Errno) {
        try removeFile(name, at: try site.directory())
      } catch {
        // Taken away already, or swept as soon as the lock is gone, which is now.
        return
      }
    }
  }

  // MARK: For writers

  /// Puts up this writer's gate, unless it is up.
  mutating func announce() throws(Errno) {
    if let announced, try announced.descriptor.status().links > 0 { return }
    let nonce = Nonce.next()
    let staged = site.layout.prefix + LeaseSite.preparedPrefix + nonce
    let name = site.layout.prefix + LeaseSite.waitingPrefix + nonce
    let file = try site.home.createFile(staged, at: try site.directory())
    // Free: nobody but a sweeper opens it, and that one removes it, so that the rename fails and
    // the next look announces us.
    _ = try file.tryLock(.exclusive)
    try rename(staged, at: try site.directory(), to: name, at: try site.directory())
    announced = try Gate(name, file, ownAt: site)
  }

  /// Has the lease, or has given up: others may pass.
  mutating func leave() {
    blocking = nil
    announced = nil
  }

  // MARK: For readers

  /// Whether no writer waits.
  ///
  /// The gate that was found closed is kept open from try to try: closing it would wake everybody
  /// else in the queue.
  mutating func isOpen() throws(Errno) -> Bool {
    if let blocking {
      guard try isAbandoned(blocking) else { return false }
      self.blocking = nil
    }
    while let gate = try next() {
      guard try isAbandoned(gate) else {
        blocking = gate
        return false
      }
    }
    return true
  }

  // Its writer has left, or died.
  private func isAbandoned(_ gate: Gate) throws(Errno) -> Bool {
    if try gate.descriptor.status().links == 0 { return true }
    guard try gate.descriptor.tryLock(.shared) else { return false }
    try remove(gate)
    return true
  }

  private func next() throws(Errno) -> Gate? {
    let lease: FileDescriptor
    do throws(Errno) {
      lease = try site.openLeaseDirectory()
    } catch {
      guard error == .noSuchFile else { throw error }
      return nil
    }
    for entry in try lease.entries() where entry.name.hasPrefix(LeaseSite.waitingPrefix) {
      let name = site.layout.prefix + entry.name.text
      do throws(Errno) {
        let gate = try Gate(
          name,
          try FileDescriptor.openBeneath(
            name, at: try site.directory(), [.readOnly, .nonBlocking]))
        // Anything else is nobody's gate, and a directory could not be removed as one.
        if gate.status.kind == .regular { return gate }
      } catch {
        // Left this moment; or a link or a socket, which nobody can have locked.
        guard [.noSuchFile, .tooManyLinks, .noSuchDevice].contains(error) else { throw error }
      }
    }
    return nil
  }

  private func remove(_ gate: Gate) throws(Errno) {
    do throws(Errno) {
      try removeFile(gate.name, at: try site.directory())
    } catch {
      guard error == .noSuchFile else { throw error }
    }
  }

  /// Tells when the writer leaves the gate that was found closed.
  func watchQueue(_ signal: @escaping @Sendable () -> Void) -> Watch? {
    guard let blocking else { return nil }
    return ChangeMonitor.shared.watchOpen(
      blocking.descriptor, [.closedWithoutWriting, .closedAfterWriting, .attributes]
    ) { _ in signal() }
  }

  /// Removes the gate of a writer that is stopped, or that cannot be seen from here and has waited
  /// beyond the standard term. One that runs leaves by itself, at its own deadline at the latest.
  mutating func takeAwayIfOverdue(
    observed: inout Observed, now: ContinuousClock.Instant
  ) throws(Errno) -> Bool {
    guard let gate = blocking, try observed.gateIsOverdue(gate.status, now: now) else {
      return false
    }
    blocking = nil
    try remove(gate)
    return true
  }
}
