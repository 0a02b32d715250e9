package import Wormhole
import WormholeSystem

/// The work of the last process that leaves a site: see `SiteRemoval`.
extension ItemSite {
  /// Whether it contains only the lease and the leftovers of dead processes.
  func mayBeUnused() throws -> Bool {
    try entries().map(\.name).allSatisfy { name in
      if lease.isPart(name) { return true }
      guard ClaimName(name) != nil || isTrash(name) else { return false }
      return try isAbandoned(name)
    }
  }

  /// Removes it if no lease can be made any longer: each step succeeds only if the site is empty,
  /// and a process that is about to use the site begins again.
  func removeBare() throws {
    try removeIfEmpty(LeaseLayout.passing.held, at: descriptor)
    try removeEmpty()
  }

  // Seen from the site itself, which may have been moved with its parent directory.
  @discardableResult
  private func removeEmpty() throws(Errno) -> Bool {
    try removeIfEmpty("../" + Self.name(of: location), at: descriptor)
  }

  /// Removes it for the lease's holder, which then ends, unless another process uses it.
  ///
  /// - Parameter claim: a claim that was removed under the lease.
  /// - Returns: false if the site is used, or an entry is left in it to be removed.
  func removeIfUnused(under lease: Lease, without claim: ClaimName? = nil) throws -> Bool {
    try withExtendedLifetime(lease) {
      var names = lease.surroundings.filter { $0.text != claim?.text }
      if !names.allSatisfy(self.lease.isOfNobody) {
        // A process that left meanwhile could not have the lease, and leaves the site to this one.
        names = try entries().map(\.name)
      }
      guard names.allSatisfy(self.lease.isOfNobody) else {
        for name in names where ClaimName(name) != nil {
          guard try isAbandoned(name), let taken = try lease.takeIn(name.text) else { continue }
          try lease.discard(taken)
        }
        return false
      }
      guard try lease.dismantle(hasNote: names.contains(where: self.lease.isNote)) else {
        return false
      }
      // If a process arrived after the look, or an entry was put away, the caller looks again.
      return try removeEmpty()
    }
  }

  /// Removes the trash of dead processes, and the claims taken over from them.
  func emptyTrash() throws {
    for name in try entries().map(\.name) where isTrash(name) {
      _ = try isAbandoned(name) { try TreeRemoval().remove(name, at: descriptor) }
    }
  }

  private func isTrash(_ name: FileName) -> Bool {
    name.hasPrefix(ClaimName.overtakenPrefix) || name.hasPrefix(Self.trashPrefix)
  }

  /// Whether its owner is dead or has left: a directory in use is locked. It stays locked while the
  /// closure runs, because its maker may be about to lock it.
  private func isAbandoned(_ name: FileName, then body: () throws -> Void = {}) throws -> Bool {
    let others: [Errno] = [.accessDenied, .noSuchFile, .notDirectory, .tooManyLinks]
    guard let found = try tolerating(others, open(name.text)) else {
      // Only its user can remove another user's directory. A file of another kind is neither a
      // claim nor in use.
      let status = try ifPresent(fileStatus(name, at: descriptor))
      guard let status, status.kind != .directory else { return false }
      try body()
      return true
    }
    guard try found.tryLock(.exclusive) else { return false }
    try body()
    // Otherwise a child being started would keep it locked a moment longer: see `ClaimSurvey`.
    try found.unlock()
    return true
  }
}

/// Removes the sites that an access leaves, unless another process uses them. The last process that
/// leaves a site removes it, with the leftovers of dead processes.
///
/// If another process has the lease, the site is left to it, so a process that had the lease looks
/// once more afterwards (Tests/Models/claims.pml, DROP_SECOND_LOOK). Errors are only reported,
/// because the access itself has ended, and the next process removes the leftovers.
package final class SiteRemoval: Waiting {
  // Each look after the first is due to a process that arrived or left during the previous one.
  private static let looks = 8
  /// After this time without the lease, a leaving process looks again for newcomers.
  private static let patience: Duration = .milliseconds(5)
  /// The maximum number of requests for the lease, if it finds no other process. The holder may
  /// also be leaving, and may have seen another active process; or it is a child being started,
  /// which keeps the open files locked until it runs its program, and removes nothing.
  private static let mostRequests = 50

  private var sites: [ItemSite] = []
  // The request for the first site.
  private var request: LeaseRequest?
  private var looks = 0
  private var requests = 0

  package init() {}

  func add(_ site: ItemSite) {
    site.closeKept()
    sites.append(site)
  }

  package func step() -> WaitingStep<Void> {
    guard let site = sites.first else { return .done(()) }
    do {
      let step = try step(at: site)
      guard case .done = step else { return step }
    } catch {
      Diagnostics.report(error)
    }
    sites.removeFirst()
    request = nil
    looks = 0
    requests = 0
    return .again
  }

  // Blocks if no other caller takes these steps, because the task of an access was cancelled.
  deinit { while step().block() == nil {} }

  private func step(at site: ItemSite) throws -> WaitingStep<Void> {
    guard looks < Self.looks else { return .done(()) }
    do {
      if request == nil {
        try site.emptyTrash()
        guard try site.mayBeUnused() else { return .done(()) }
      }
      return try site.step(toLease: &request, until: .now + Self.patience) { lease in
        looks += 1
        return try site.removeIfUnused(under: lease) ? .done(()) : .again
      }
    } catch let error as WormholeError where error.code == .leaseLost {
      request = nil
      looks += 1
      return .again
    } catch let error as WormholeError where error.code == .timedOut {
      // Probably another process is active, and removes it in turn.
      request = nil
      requests += 1
      return requests < Self.mostRequests ? .again : .done(())
    } catch let error as Errno where error == .staleHandle || error == .noSuchFile {
      // Another process was quicker.
      return .done(())
    } catch let error as Errno where error.isLackOfRoom {
      try site.removeBare()
      return .done(())
    }
  }
}
