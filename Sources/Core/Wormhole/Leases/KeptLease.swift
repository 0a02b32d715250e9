import Synchronization
import WormholeSystem

/// A lease that this process released a moment ago and keeps open, so that its next change neither opens
/// nor lists it.
///
/// Each holder creates an entry in `lease/held`, and a process that takes a lease away renames it.
/// Both change the directory's times. So if they are what they were at the release, no process was
/// the holder since: nothing was left in the lease, and the kept version is the same. If they
/// differ, or another process holds the lease, it is closed, and the change takes the ordinary way
/// (Tests/Models/lease.pml, WARM). Only the removal of an entry does not always change them: tmpfs
/// takes the time from the removed file, which may be that of the last change.
///
/// All are closed once a second, because this process does not learn that the directory of a name was
/// moved, and because an open directory delays the events of its removal.
package final class KeptLease: Sendable {
  private struct Kept: Sendable {
    let site: LeaseSite
    let held: HeldDirectory
    /// At the release.
    let status: FileStatus
    let keptVersion: Stamp?
    /// A forked child has the same open file, so it would share the lock.
    let processID: Int32
  }

  private struct State: Sendable {
    var kept: Kept?
    var isListed = false
  }

  private let state = Mutex(State())
  /// Its hand-over to processes that wait for it.
  let handOver = LeaseHandOver()

  package init() {}

  /// Takes the lease if no process was the holder since its release.
  ///
  /// - Complexity: flock, fstat, and for a value the creation of the entry that declares the holder.
  package func take(term: Duration) throws -> Lease? {
    guard let kept = state.withLock({ $0.kept.take() }) else { return nil }
    // Closes all of them if the container was replaced.
    if let root = kept.site.home.container { _ = try root.handle() }
    guard kept.processID == ProcessIdentity.current.processID, state.withLock(\.isListed) else {
      return nil
    }
    do throws(Errno) {
      let isLocked = try kept.held.descriptor.tryLock(.exclusive)
      guard isLocked || LeaseFault.ignoringLock.isActive else { return nil }
      let isUntouched = try kept.held.status().isUntouched(since: kept.status)
      guard isUntouched || LeaseFault.ignoringTimes.isActive else {
        // Explicitly, because a child that was forked meanwhile has the same open file.
        try kept.held.descriptor.unlock()
        return nil
      }
      return try Lease(
        site: kept.site, held: kept.held, term: term, keptVersion: kept.keptVersion, wasKept: true)
    } catch {
      // The ordinary way reports what is wrong, or finds the lease gone. Unlocking fails as the rest did.
      try? kept.held.descriptor.unlock()
      return nil
    }
  }

  /// Releases a lease, but leaves it open.
  ///
  /// - Returns: False if it was taken over, or its directory's times would not show a change.
  func keep(
    _ site: LeaseSite, _ held: HeldDirectory, _ keptVersion: Stamp?, for processID: Int32
  ) -> Bool {
    let root = site.home.container
    let status: FileStatus
    do throws(Errno) {
      status = try held.status()
      guard status.links > 0, status.permissions & HeldDirectory.waitedFor == 0 else {
        return false
      }
      // The owner of another site has looked.
      if let root {
        guard root.showsEachChange(on: status.device),
          root.lastHandle.keepsNanoseconds.load(ordering: .relaxed)
        else { return false }
      }
      // Before it can be taken again, because the lock belongs to the open file, not to a thread.
      try held.descriptor.unlock()
      handOver.pass()
    } catch {
      return false
    }
    let kept = Kept(
      site: site, held: held, status: status, keptVersion: keptVersion, processID: processID)
    let isListed = state.withLock { state in
      state.kept = kept
      return exchange(&state.isListed, with: true)
    }
    if !isListed, let root { root.keptLeases.list(self, in: root) }
    return true
  }

  package func close() {
    state.withLock { $0 = State() }
    handOver.close()
  }
}

/// The leases of a container that this process keeps open.
final class KeptLeases: ContainerMemory {
  private let names = NameMemories { KeptLease() }
  private let open = Mutex<[KeptLease]>([])
  /// The limit of the descriptors that they use.
  private static let limit = 16

  /// - Parameter path: The directory of the value, relative to the container.
  func lease(at path: String) -> KeptLease { names.memory(of: path) }

  fileprivate func list(_ lease: KeptLease, in root: ContainerRoot) {
    let oldest = open.withLock { open in
      open.append(lease)
      return open.count > Self.limit ? open.removeFirst() : nil
    }
    oldest?.close()
    // A process that was stopped between its change and this has made the flush that closes them.
    if !root.followUps.isScheduled { closeAll() }
  }

  /// The number of leases that may be open.
  var count: Int { open.withLock(\.count) }

  func closeAll() {
    for lease in open.withLock({ exchange(&$0, with: []) }) { lease.close() }
  }
}

extension ContainerRoot {
  /// The leases that this process released a moment ago.
  var keptLeases: KeptLeases { memory() }
}

extension FileStatus {
  /// Whether a directory still exists, and nothing in it has changed.
  package func isUntouched(since old: FileStatus) -> Bool {
    links > 0 && isSameFile(as: old) && changedNanoseconds == old.changedNanoseconds
      && changedSeconds == old.changedSeconds && modifiedNanoseconds == old.modifiedNanoseconds
      && modifiedSeconds == old.modifiedSeconds
  }
}
