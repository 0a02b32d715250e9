public import Wormhole
import WormholeSystem
import WormholeToolkit

extension SharedContainer {
  /// Returns the content of the container, the holders of its leases, and every irregularity.
  ///
  /// The inspection writes nothing, takes no lease, and waits for no lock. Whatever is in the
  /// directory (FIFOs, links, huge files, a million entries), it ends within about ten seconds; if
  /// it could not cover everything, the report is partial.
  ///
  /// - Throws: `WormholeError` if the container itself can no longer be used.
  /// - Complexity: Reads every value, and in a directory every entry and message, up to 512 MiB in
  ///   all, /proc/locks, and /proc of this user's processes.
  public func report() throws -> ContainerReport {
    try report(ReportScope(.everything))
  }

  /// Returns a report of some scope; one of the package's own values that does not fit its use is
  /// reported as damaged.
  package func report(_ scope: ReportScope) throws -> ContainerReport {
    try reporting("look through the container", path: location) {
      try inspected.report(on: self, scope)
    }
  }

  /// The result of `sweep`.
  ///
  /// ```swift
  /// let swept = try container.sweep()
  /// print("removed \(swept.removed.count) leftovers and \(swept.names.count) unused names")
  /// for failure in swept.failures { print(failure) }
  /// ```
  public struct SweepReport: Sendable {
    /// The paths of the removed leftovers.
    public package(set) var removed: [String] = []
    /// The paths of the removed names, which were empty and unused.
    public package(set) var names: [String] = []
    /// The leftovers that could not be removed, with the reasons.
    public package(set) var failures: [WormholeError] = []

    package init() {}

    /// Takes one step, and records its failure.
    package mutating func attempt(
      _ action: String, path: String, _ body: (inout SweepReport) throws -> Void
    ) {
      let failure = failure(of: action, path: path) { try body(&self) }
      if let failure { failures.append(failure) }
    }
  }

  /// Removes the leftovers of dead processes and of processes whose lease was taken over, and the
  /// records of queues that are older than a day: receipts of processed entries, and outcomes of
  /// entries without a receipt. No running process is disturbed.
  ///
  /// Leftovers of a value are removed under that value's lease, as by any holder. Files on their
  /// way into the container are removed when they are a minute old.
  ///
  /// A name is removed if nothing is kept under it and no process holds it or waits for it; a
  /// process that watches it still notices its next change. An empty value or queue is removed at
  /// once. A notification without a state, and a presence, is removed if there was no post or no
  /// present process for a day, because until then the name is the record of that. The package's
  /// own names are removed in the same way, so a peer that was last active a day ago leaves
  /// nothing, if nothing waits or is registered for it.
  ///
  /// - Parameter patience: The time to wait for the lease of each value.
  /// - Throws: As `report`.
  public func sweep(patience: Duration = .seconds(1)) throws -> SweepReport {
    try sweep(patience: patience) { _ in }
  }

  /// The same, with a step of a module above.
  ///
  /// - Parameter expire: Removes other expired files, before empty names are removed.
  package func sweep(
    patience: Duration = .seconds(1), expiring expire: (inout SweepReport) throws -> Void
  ) throws -> SweepReport {
    var report = SweepReport()
    try inspected.sweepLeftovers(of: self, patience: patience, &report)
    for queue in try allQueues() {
      report.attempt("sweep a queue", path: queue.path) { $0.removed += try queue.expire() }
    }
    for log in try logNames().map({ log($0) }) {
      report.attempt("sweep a log", path: log.path) {
        $0.removed += try log.sweep(until: .now + patience)
      }
    }
    report.attempt("sweep what has expired", path: location) { try expire(&$0) }
    try inspected.sweepNames(of: .log, in: self, &report)
    // Before the values, because some values are positions of subscribers.
    report.attempt("sweep the positions of subscribers", path: location) { report in
      var faults = NameFaults()
      defer { report.failures += faults.all }
      _ = try PlainLog.sweepPositions(in: self, &faults, until: .now + patience)
    }
    // A queue asks whether it has a consumer, so consumers come after queues.
    for kind in NameKind.users + NameKind.owns where kind != .log {
      try inspected.sweepNames(of: kind, in: self, &report)
    }
    return report
  }

  /// The queues of users, and the package's own.
  package func allQueues() throws -> [PlainQueue] {
    try [NameKind.queue, .ownQueue].flatMap { kind in
      try identifiers(of: kind).map { PlainQueue(container: self, name: $0, kind: kind) }
    }
  }

  /// Removes a leftover in a directory.
  ///
  /// - Parameter swept: the directories whose leases were swept already.
  func remove(
    _ leftover: ContainerReport.Leftover, patience: Duration, _ swept: inout Set<String>
  ) throws {
    guard let owner = leftover.owner else {
      switch leftover.kind {
      case .abandonedMailbox: return try MailboxDirectory.sweep(inside(leftover.path), in: root)
      case .abandonedChange: return try Transaction.sweep(inside(leftover.path), in: root)
      default: return try removeCreation(leftover.path)
      }
    }
    let (kind, name) = (owner.kind, owner.identifier)
    switch leftover.kind {
    case .abandonedPresence:
      try PresenceDirectory(container: self, name: name, kind: kind).sweep()
    case .abandonedEntry where kind == .log:
      _ = try log(name).sweep(until: .now + patience)
    case .abandonedEntry:
      try PlainQueue(container: self, name: name, kind: kind).open()?.sweep()
    default:
      let directory = NamedDirectory(root: root, kind: kind, identifier: name)
      guard swept.insert(directory.path).inserted else { return }
      try directory.sweepLease(until: .now + patience)
    }
  }

  /// Tries the steps of every writer in a directory: creates an entry, writes a block, renames it,
  /// creates a directory, and removes both. They have names of a container that is being created,
  /// so a sweep removes them. On etcd it asks for a change under a condition that never holds: etcd
  /// checks the user's rights and the database's quota before the condition, and nothing changes.
  ///
  /// - Throws: `WormholeError`: there is no space or no inode, the quota is used up, the file system is
  ///   read-only, or the user may not write.
  /// - Complexity: Eight calls; on etcd one round trip.
  package func tryWriting() throws {
    try reporting("write in the container", path: location) { try inspected.tryWriting() }
  }

  private func inside(_ path: String) -> String { String(path.dropFirst(root.path.count + 1)) }

  /// Removes a staged `container.plist`, or a long identifier's directory with that one file in it.
  private func removeCreation(_ path: String) throws {
    let handle = try root.handle()
    let directory = handle.descriptor.rawValue
    let inside = inside(path)
    do throws(Errno) {
      guard try fileStatus(inside, at: directory).kind == .directory else {
        return try removeFile(inside, at: directory)
      }
      try removeIfPresent(inside + "/" + NamedDirectory.identifierFile, at: directory)
      try removeDirectory(inside, at: directory)
    } catch {
      // Its creator has come back and finished.
      guard error == .noSuchFile else { throw error }
    }
  }
}

/// Takes one step of work that continues even if the step fails.
///
/// - Parameter code: The kind of an error that neither the kernel nor an engine has reported.
/// - Returns: Why it failed; nil if it did not.
package func failure(
  of action: String, path: String, otherwise code: WormholeError.Code = .damaged,
  _ step: () throws -> Void
) -> WormholeError? {
  do {
    try reporting(action, path: path, step)
    return nil
  } catch {
    return error as? WormholeError
      ?? WormholeError(code, action, path: path, reason: "\(error)")
  }
}

extension NamedDirectory {
  /// Takes the lease, which removes dead holders' leftovers in it, and removes the rest under it.
  fileprivate func sweepLease(until deadline: ContinuousClock.Instant) throws {
    try Change<Void>(self, .init(until: deadline)) { lease, _ in
      try lease.site.clearRemains()
      // Even if the next holder could not know that there is something to settle.
      try lease.site.home.settle(lease)
    }.run()
  }
}
