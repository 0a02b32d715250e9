import FileClaims
package import FoundationEssentials
import SystemCalls

/// The state of an access, for accessors that take long.
package struct HeldAccess: Sendable {
  let session: AccessSession

  /// The reason why the access was lost; nil as long as it was not taken over.
  ///
  /// - Throws: `FileCoordinationError` when that cannot be found out.
  /// - Complexity: two system calls.
  package func loss() throws -> FileCoordinationError? { try session.loss() }

  /// What a program inherits (`ChildProcess`) that works on the item itself: the claim stands as long as
  /// that program and what it starts run, also when this process is killed or stopped. They are ended
  /// before the claim is taken over, because they are stopped or the term is over.
  package var inheritance: Int32? { session.grants[0].access?.claim?.descriptor }

  /// Declares the process that has inherited the claim, so that others can name it and see that it is
  /// stopped.
  ///
  /// - Parameter process: one that has ended already is not named.
  /// - Throws: `FileCoordinationError` when the access was taken over, and the program ended for that.
  package func handOn(toProcess process: Int32) throws {
    guard let claim = session.grants[0].access?.claim, let status = ProcessStatus.of(process)
    else { return }
    try claim.handOn(
      to: ProcessIdentity(
        processID: process, startTicks: status.startTicks,
        namespace: ProcessIdentity.current.namespace))
  }
}

/// The forms for accessors that take long, and check whether they still have access.
extension FileCoordinator {
  /// Runs a program while the item itself is kept from others: for programs that cannot work on a copy.
  ///
  /// Nothing is published at the end, because changes in place are visible at once, incomplete ones too.
  /// A program that makes them inherits the access (`HeldAccess.inheritance`).
  package func hold<Result>(
    itemAt url: URL, isShared: Bool, until deadline: ContinuousClock.Instant?, term: Duration,
    while accessor: (URL, HeldAccess) throws -> Result
  ) throws -> Result {
    try hold(.locking(url, isShared: isShared), until: deadline, term, accessor)
  }

  /// Runs a program on a private copy that is published afterwards; see the form that takes
  /// `writingItemAt`.
  package func hold<Result>(
    copyOfItemAt url: URL, until deadline: ContinuousClock.Instant?, term: Duration,
    while accessor: (URL, HeldAccess) throws -> Result
  ) throws -> Result {
    try hold(.writing(url, []), until: deadline, term, accessor)
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
