import SystemCalls

/// Keeps overlapping readers from starving a writer: a writer that must wait locks the gate, and a
/// new reader that finds it locked queues behind. Only a matter of fairness: nothing breaks when a
/// gate is taken away, so a stopped writer's gate simply is, by removing its file.
struct LeaseGate {
  private let site: LeaseSite
  private var announced: FileDescriptorBox?
  private var blocking: FileDescriptorBox?

  init(site: LeaseSite) {
    self.site = site
  }

  /// A descriptor that a copyable struct can hold.
  private final class FileDescriptorBox: Sendable {
    let descriptor: FileDescriptor
    let status: FileStatus

    init(_ descriptor: consuming FileDescriptor) throws(Errno) {
      status = try descriptor.status()
      self.descriptor = descriptor
    }
  }

  /// For a writer: locks the gate if no other writer has.
  mutating func announce() throws(Errno) {
    guard announced == nil else { return }
    let gate = try FileDescriptorBox(
      try FileDescriptor.openBeneath(
        LeaseSite.gate, at: site.directory.rawValue, [.readOnly, .create, .nonBlocking],
        mode: site.root.access.fileMode))
    if try gate.descriptor.tryLock(.exclusive) { announced = gate }
  }

  /// For a reader: whether no writer waits.
  ///
  /// The descriptor is kept from try to try: closing it wakes everybody else in the queue.
  mutating func isOpen() throws(Errno) -> Bool {
    guard let gate = try reopened() else { return true }
    guard try gate.descriptor.tryLock(.shared) else {
      blocking = gate
      return false
    }
    blocking = nil
    return true
  }

  private func reopened() throws(Errno) -> FileDescriptorBox? {
    do throws(Errno) {
      let named = try fileStatus(LeaseSite.gate, at: site.directory.rawValue)
      if let blocking, blocking.status.isSameFile(as: named) { return blocking }
      return try FileDescriptorBox(
        try FileDescriptor.openBeneath(
          LeaseSite.gate, at: site.directory.rawValue, [.readOnly, .nonBlocking]))
    } catch {
      guard error == .noSuchFile else { throw error }
      return nil
    }
  }

  /// For a reader that found the gate locked: tells when the writer leaves it.
  func watchQueue(_ signal: @escaping @Sendable () -> Void) throws(Errno) -> Watch? {
    guard let blocking else { return nil }
    return ChangeMonitor.shared.watchOpen(
      blocking.descriptor, [.closedWithoutWriting, .attributes, .selfDeleted], signal)
  }

  /// For a reader: removes the gate of a writer that is stopped or has waited beyond any term.
  mutating func takeAwayIfOverdue(
    observed: inout Observed, now: ContinuousClock.Instant
  ) throws(Errno) -> Bool {
    guard let gate = blocking, try observed.undeclaredIsOverdue(gate.status, now: now) else {
      return false
    }
    blocking = nil
    do throws(Errno) {
      try removeFile(LeaseSite.gate, at: site.directory.rawValue)
    } catch {
      guard error == .noSuchFile else { throw error }
    }
    return true
  }

  /// Has the lease, or has given up: others may pass.
  mutating func leave() {
    announced = nil
    blocking = nil
  }
}
