import WormholePropertyLists
package import WormholeSystem

/// One change from beginning to end: take the lease, do the work, publish. Begins again if the lease
/// was taken over meanwhile.
///
/// A change of several values takes their leases one after another, in the order that it is given.
package final class Change<Result: Sendable>: Waiting {
  /// A value, or another thing with a lease.
  typealias Target = (directory: NamedDirectory, file: String, keptLease: KeptLease?)

  private let targets: [Target]
  private let terms: ChangeTerms
  private let content: (@Sendable () -> PublishedContent)?
  private let work: @Sendable ([Lease], PreparedContent?) throws -> Result
  private var request: LeaseRequest?
  private var prepared: PreparedContent?
  /// The leases that it has; the next one belongs to the target with this number.
  private var leases: [Lease] = []
  private var copyPause = CopyPauseFile.CopyPauseWait()

  private var path: String {
    let target = targets.dropFirst(leases.count).first ?? targets.last
    return target.map { $0.directory.path + "/" + $0.file } ?? ""
  }

  /// - Parameters:
  ///   - directory: The directory that contains the lease.
  ///   - file: The file in it that the lease protects, for messages.
  ///   - keptLease: The lease, if this process may have kept it open.
  ///   - content: Created and written before the lease is taken, and passed to the work as a
  ///     prepared file; not passed if it is small and durable, and there is no disk.
  ///   - work: Done under the lease; done again, with newly prepared content, after a lost lease.
  package convenience init(
    _ directory: NamedDirectory, protecting file: String = LeaseSite.lease,
    keeping keptLease: KeptLease? = nil, _ terms: ChangeTerms,
    preparing content: (@Sendable () -> PublishedContent)? = nil,
    _ work: @escaping @Sendable (Lease, PreparedContent?) throws -> Result
  ) {
    self.init([(directory, file, keptLease)], terms, preparing: content) {
      try work($0[0], $1)
    }
  }

  /// - Parameter targets: In an order on which all processes agree; otherwise two of them could wait
  ///   for each other until a lease is overdue.
  init(
    _ targets: [Target], _ terms: ChangeTerms,
    preparing content: (@Sendable () -> PublishedContent)? = nil,
    _ work: @escaping @Sendable ([Lease], PreparedContent?) throws -> Result
  ) {
    self.targets = targets
    self.terms = terms
    self.content = content
    self.work = work
  }

  package func step() throws -> WaitingStep<Result> {
    try reporting("change the value", path: path) {
      // Only an empty change gets here with all of its leases.
      guard leases.count < targets.count else { return try perform() }
      if leases.isEmpty, request == nil, let target = targets.first,
        copyPause.mustWait(in: target.directory.root, until: terms.deadline)
      {
        return .spin(.milliseconds(1))
      }
      let next = targets[leases.count]
      if request == nil, content == nil, terms.durability == .standard,
        let lease = try next.keptLease?.take(term: terms.term)
      {
        return try add(lease)
      }
      let step: WaitingStep<Lease>
      do {
        step = try current().step()
      } catch let error as Errno where error == .staleHandle || isUnprepared(error) {
        // The value's directory was removed, perhaps with the whole container.
        guard ContinuousClock.now < terms.deadline else {
          throw WormholeError(
            .timedOut, "change the value", path: path,
            reason: "the deadline passed while another process removed its empty directory",
            remedy: "try again, or with a later deadline", errorNumber: error.rawValue)
        }
        self.request = nil
        // The removing process may not have finished.
        return .spin(.milliseconds(1))
      }
      return try step.then { lease in
        self.request = nil
        return try add(lease)
      }
    }
  }

  private func add(_ lease: Lease) throws -> WaitingStep<Result> {
    leases.append(lease)
    return leases.count == targets.count ? try perform() : .again
  }

  // The directory was missing before there was a request.
  private func isUnprepared(_ error: Errno) -> Bool { request == nil && error == .noSuchFile }

  private func current() throws -> LeaseRequest {
    if let request { return request }
    let target = targets[leases.count]
    if let absence = terms.absence, try target.directory.open() == nil { throw absence() }
    let site = try target.directory.leaseSite(protecting: target.file)
    let scope = terms.durability == .durable ? try site.commitScope() : .content
    if terms.durability == .durable, !scope.isEverything {
      try target.directory.synchronizeNames()
    }
    prepared = try content.flatMap { make in
      let content = make()
      // Small content that need not wait for a disk is quickly written under the lease.
      guard scope != .everythingAtOnce || content.count >= PreparedContent.worthwhileBytes else {
        return nil
      }
      return try PreparedContent(content, at: site, durability: terms.durability)
    }
    let request = LeaseRequest(
      site: site, term: terms.term, deadline: terms.deadline, keeping: target.keptLease)
    self.request = request
    return request
  }

  private func perform() throws -> WaitingStep<Result> {
    defer { leases = [] }
    let result = try terms.attempt(under: leases.first, path) { try work(leases, prepared) }
    return result.map { .done($0) } ?? .again
  }
}

extension ChangeTerms {
  /// Does the work of a change.
  ///
  /// - Parameters:
  ///   - lease: The first of its leases; nil for a change of no value.
  ///   - path: For messages.
  /// - Returns: Nil if a lease was taken over meanwhile, and the change begins again.
  /// - Throws: The cause of a `BodyError`; the loss, if the change is not to be repeated.
  func attempt<Result>(
    under lease: Lease?, _ path: @autoclosure () -> String, _ work: () throws -> Result
  ) throws -> Result? {
    let loss: WormholeError
    do {
      return try work()
    } catch let error as BodyError {
      guard LeaseFault.repeatingForClosure.isActive, let cause = error.cause as? WormholeError,
        cause.code == .leaseLost
      else { throw error.cause }
      loss = cause
    } catch let error as WormholeError where error.code == .leaseLost {
      loss = error
    } catch let error as Errno where error == .noSuchFile {
      // A step before publishing found the lease's directory removed.
      guard let lease else { throw error }
      loss = lease.lost()
    }
    guard repeatsAfterLoss, !LeaseFault.neverRepeating.isActive, ContinuousClock.now < deadline
    else { throw loss }
    Diagnostics.note(
      .retry, at: .notice, "a change begins again: \(loss)", in: lease?.site.containerPath,
      dimensions: ["what": "lease"], fields: ["path": path()])
    return nil
  }
}
