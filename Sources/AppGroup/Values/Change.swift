import PropertyLists
import SystemCalls

/// One change of a value from beginning to end: get the lease, do the work, publish; begin again
/// when the lease was taken away meanwhile.
final class Change<Result: Sendable>: SteppedWork {
  /// How a change is made: for how long, until when, and whether again after a lost lease.
  struct Terms {
    var term = LeaseTerm.standard
    var deadline: ContinuousClock.Instant
    var repeatsAfterLoss = true
  }

  typealias Work = @Sendable (Lease) throws -> Result

  private let value: Value
  private let terms: Terms
  private let prepare: @Sendable (LeaseSite) throws -> Work
  private var request: LeaseRequest?
  private var work: Work?

  /// - Parameter prepare: what can be done before the lease is there; returns what must be done
  ///   under it. Both are called again after a lost lease.
  init(
    _ value: Value, _ terms: Terms, prepare: @escaping @Sendable (LeaseSite) throws -> Work
  ) {
    self.value = value
    self.terms = terms
    self.prepare = prepare
  }

  /// What to raise when the change is to look again.
  var latch: WakeLatch? { request?.latch }

  func step() throws -> StepProgress<Result> {
    try reporting("change the value", path: value.path) {
      while true {
        let step: LeaseRequest.Step
        do {
          step = try current().attempt()
        } catch let error as Errno where error == .staleHandle || isUnprepared(error) {
          // The value's directory was removed, perhaps with the whole container.
          guard ContinuousClock.now < terms.deadline else { throw error }
          self.request = nil
          // Whoever removes it may not be done.
          pauseThread(.milliseconds(1))
          continue
        }
        switch step {
        case .wait(let deadline): return .wait(until: deadline)
        case .acquired(let lease):
          self.request = nil
          guard let result = try perform(lease) else { continue }
          return .done(result)
        }
      }
    }
  }

  // The same, while what comes before the request was on its way.
  private func isUnprepared(_ error: Errno) -> Bool { request == nil && error == .noSuchFile }

  private func current() throws -> LeaseRequest {
    if let request { return request }
    let value = value
    let held = try value.directory.openHeld()
    let site: LeaseSite
    if let held {
      site = LeaseSite(
        held: held, home: value.container.root, path: value.path, fault: value.container.fault)
    } else {
      site = LeaseSite(
        directory: try value.directory.openOrMake(), home: value.container.root, path: value.path,
        fault: value.container.fault)
    }
    work = try prepare(site)
    let request = LeaseRequest(
      site: site, held: held, mode: .exclusive, term: terms.term, deadline: terms.deadline)
    self.request = request
    return request
  }

  /// - Returns: nil when the lease was lost and the change is to begin again.
  private func perform(_ lease: Lease) throws -> Result? {
    guard let work else { preconditionFailure("a request is made together with its work") }
    do {
      return try work(lease)
    } catch let error as BodyError {
      throw error.cause
    } catch let error as AppGroupError where error.code == .leaseLost {
      guard terms.repeatsAfterLoss, ContinuousClock.now < terms.deadline else { throw error }
      return nil
    } catch let error as Errno where error == .noSuchFile {
      // A step before publishing found the lease's directory removed.
      let lost = lease.lost()
      guard terms.repeatsAfterLoss, ContinuousClock.now < terms.deadline else { throw lost }
      return nil
    }
  }
}
