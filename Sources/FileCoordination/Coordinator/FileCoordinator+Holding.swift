package import FoundationEssentials
import SystemCalls

/// What a long-running accessor may ask about its access.
package struct HeldAccess: Sendable {
  let session: AccessSession

  /// Why this is no access any more; nil as long as nobody has taken it away.
  ///
  /// - Throws: `FileCoordinationError` when that cannot be found out.
  /// - Complexity: two system calls.
  package func loss() throws -> FileCoordinationError? { try session.loss() }

  /// What a program inherits (`ChildProcess`) that works on the item itself: the claim stands as long as
  /// that program and what it starts run, also when this process is killed or stopped. They are ended
  /// before the claim is taken away, because they are stopped or the term is over.
  package var inheritance: Int32? { session.grants[0].access?.claim?.descriptor }

  /// Says which process has inherited it, for others to name it and to see it stopped.
  ///
  /// - Parameter process: one that has ended already is not named.
  /// - Throws: `FileCoordinationError` when the access was taken away, and the program ended for it.
  package func handOn(toProcess process: Int32) throws {
    guard let claim = session.grants[0].access?.claim, let status = ProcessStatus.of(process)
    else { return }
    try claim.handOn(
      to: ProcessIdentity(
        processID: process, startTicks: status.startTicks,
        namespace: ProcessIdentity.current.namespace))
  }
}

/// The forms for accessors that take long, and want to know whether they still have access.
extension FileCoordinator {
  /// Runs a program's work while the item itself is kept from others: for what cannot work on a copy.
  ///
  /// Nothing is published at the end, for what was changed in place is visible at once, half changes
  /// too. A program that does it inherits the access (`HeldAccess.inheritance`).
  package func hold<Result>(
    itemAt url: URL, isShared: Bool, until deadline: ContinuousClock.Instant?, term: Duration,
    while accessor: (URL, HeldAccess) throws -> Result
  ) throws -> Result {
    try hold(.init(url, .locking(isShared: isShared)), until: deadline, term, accessor)
  }

  /// Runs a program's work on a private copy that is published afterwards; see the form that takes
  /// `writingItemAt`.
  package func hold<Result>(
    copyOfItemAt url: URL, until deadline: ContinuousClock.Instant?, term: Duration,
    while accessor: (URL, HeldAccess) throws -> Result
  ) throws -> Result {
    try hold(.init(url, .writing([])), until: deadline, term, accessor)
  }

  private func hold<Result>(
    _ request: AccessRequest, until deadline: ContinuousClock.Instant?, _ term: Duration,
    _ accessor: (URL, HeldAccess) throws -> Result
  ) throws -> Result {
    try session([request], until: deadline, term: term) { session in
      try accessor(URL(filePath: session.grants[0].path), HeldAccess(session: session))
    }
  }
}
