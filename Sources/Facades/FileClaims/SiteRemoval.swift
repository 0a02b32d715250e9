package import AppGroup
import SystemCalls

/// Removes the sites that an access leaves, unless another process uses them. No litter: the last
/// process that leaves a site removes it, with the leftovers of dead processes.
///
/// If another process has the lease, the site is left to it; so a process that had the lease looks
/// once more afterwards (Tests/Models/claims.pml, DROP_SECOND_LOOK). Errors are only reported, because
/// the access itself has ended, and the next process removes the leftovers.
package final class SiteRemoval: Waiting {
  // Each look after the first is due to a process that came or left during the one before.
  private static let looks = 8
  /// After so long without the lease, a leaving process looks again for newcomers.
  private static let patience: Duration = .milliseconds(5)
  /// For so long it tries in total, if it finds no other process: the holder of the lease may be
  /// leaving, too, and may have seen that another process is there; or it is a child that is being
  /// started, which keeps the open files locked until it runs its program, and removes nothing.
  private static let insistence: Duration = .milliseconds(250)

  private var sites: [ItemSite] = []
  // Of the first site.
  private var request: LeaseRequest?
  private var looks = 0
  private var end: ContinuousClock.Instant?

  package init() {}

  func add(_ site: ItemSite) { sites.append(site) }

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
    end = nil
    return .again
  }

  // Blocks where nobody takes these steps, because the task of an access was cancelled.
  deinit { while step().block() == nil {} }

  private func step(at site: ItemSite) throws -> WaitingStep<Void> {
    let end = self.end ?? .now + Self.insistence
    self.end = end
    guard looks < Self.looks else { return .done(()) }
    do {
      guard let request = try self.request ?? newRequest(for: site) else { return .done(()) }
      self.request = request
      return try request.step().then { lease in
        self.request = nil
        looks += 1
        return try site.removeIfUnused(under: lease) ? .done(()) : .again
      }
    } catch let error as AppGroupError where error.code == .leaseLost {
      request = nil
      looks += 1
      return .again
    } catch let error as AppGroupError where error.code == .timedOut {
      // Most likely another process is there, and removes it in turn.
      request = nil
      return ContinuousClock.now < end ? .again : .done(())
    } catch let error as Errno where error == .staleHandle || error == .noSuchFile {
      // Another process was quicker.
      return .done(())
    } catch let error as Errno where error == .noSpace || error == .diskQuotaExceeded {
      try site.removeBare()
      return .done(())
    }
  }

  /// Nil while another process uses the site.
  private func newRequest(for site: ItemSite) throws -> LeaseRequest? {
    try site.emptyTrash()
    guard try site.mayBeUnused() else { return nil }
    return LeaseRequest(
      site: site.lease, mode: .exclusive, term: Value.standardTerm, deadline: .now + Self.patience)
  }
}
