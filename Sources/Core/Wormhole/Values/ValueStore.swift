import WormholePropertyLists
import WormholeSystem

/// The implementation of a value: its file, or its key on etcd.
///
/// Calls may block. Errors of the kernel and of etcd are thrown unchanged; `Value` describes them.
package protocol ValueStore: AnyObject, Located {
  /// The value's file, or the file that it would have in this machine's directory; with its container
  /// and its identifier.
  var file: ValueFile { get }

  func snapshot(limits: PropertyListLimits) throws -> PlainSnapshot
  func version() throws -> Version?

  /// Publishes bytes, whatever the old content is; blocks the calling thread until then.
  func replace(_ bytes: [UInt8], _ terms: ChangeTerms) throws
  /// Reads the value and publishes the decision of a closure; blocks the calling thread until then.
  /// An error of the closure is thrown unchanged.
  func modify<Result: Sendable>(
    _ terms: ChangeTerms, _ decide: @escaping @Sendable (PlainSnapshot) throws -> (Edit, Result)
  ) throws -> Result

  /// Returns a change that publishes bytes, or removes the value, whatever the old content is.
  ///
  /// - Parameter bytes: Nil to remove it.
  /// - Returns: The change; its outcome is false if there was no value to remove.
  func replacement(_ bytes: [UInt8]?, _ terms: ChangeTerms) -> sending any Waiting<Bool>
  /// Returns a change that reads the value and publishes the decision of a closure. An error of the
  /// closure is thrown as `BodyError`.
  func modification<Result: Sendable>(
    _ terms: ChangeTerms, _ decide: @escaping @Sendable (PlainSnapshot) throws -> (Edit, Result)
  ) -> sending any Waiting<Result>

  /// Returns proof that the value still has a holder's number, for changes that only it may make.
  func proof(of number: UInt64, lost: WormholeError) -> RoleProof
  /// Returns the next holder's number, to be stored in the value; nil if it is the revision.
  func nextFence(after snapshot: PlainSnapshot) -> UInt64?

  /// Follows the value from now on.
  ///
  /// - Parameters:
  ///   - monitor: The monitor that takes the events, and that the waiting threads lead; nil for the
  ///     process's own.
  ///   - signal: Called when it may have changed, on a thread that must not wait.
  /// - Returns: Nil if the waiting threads would have no events to take, as on etcd.
  func follow(
    leading monitor: ChangeMonitor?, _ signal: @escaping @Sendable () -> Void
  ) throws -> (any ValueFollowing)?
}

extension ValueStore {
  package var container: SharedContainer { file.container }
  package var identifier: String { file.identifier }

  package func proof(of number: UInt64, lost: WormholeError) -> RoleProof {
    RoleProof(value: PlainValue(self), number: number, location: container.location, lost: lost)
  }

  package func nextFence(after snapshot: PlainSnapshot) -> UInt64? {
    RoleProof.next(after: snapshot)
  }

  package func replace(_ bytes: [UInt8], _ terms: ChangeTerms) throws {
    _ = try replacement(bytes, terms).run()
  }

  package func modify<Result: Sendable>(
    _ terms: ChangeTerms, _ decide: @escaping @Sendable (PlainSnapshot) throws -> (Edit, Result)
  ) throws -> Result {
    try modification(terms, decide).run()
  }
}

/// A followed value: its content now, and whether events report its changes.
package protocol ValueFollowing: Watching {
  /// Returns the value as of now, or as of a moment after the last signal.
  ///
  /// - Parameter mayWait: Whether it may make calls that wait. Otherwise any thread may call it.
  /// - Returns: Nil if that takes calls that may wait.
  func snapshot(mayWait: Bool) throws -> PlainSnapshot?
}

/// The terms of a change: its durability, its term, and whether it is repeated after a lost lease.
package struct ChangeTerms: Sendable {
  package var durability: Durability
  package var deadline: ContinuousClock.Instant
  /// How long the work may take before other processes may take the lease over.
  package var term: Duration
  package var repeatsAfterLoss: Bool
  /// Receives the new version just before it becomes visible; again after a lost lease.
  package var willPublish: @Sendable (Stamp) -> Void
  /// The moment from which the new content counts as never written, in nanoseconds since 1970.
  package var expiry: Int64?
  /// The publishing peer; nil for the only peer that this process is.
  package var peer: String?
  /// The error if a program removed the value with its directory; nil to make the directory again.
  package var absence: (@Sendable () -> WormholeError)?

  /// - Parameters:
  ///   - deadline: The end of the wait for the lease; by default `SharedContainer.standardWait` from now.
  ///   - lifetime: The lifetime of the new content from now; nil means forever.
  package init(
    _ durability: Durability = .standard, until deadline: ContinuousClock.Instant? = nil,
    term: Duration = SharedContainer.standardTerm, repeatsAfterLoss: Bool = true,
    expiresAfter lifetime: Duration? = nil, peer: String? = nil,
    willPublish: @escaping @Sendable (Stamp) -> Void = { _ in }
  ) {
    self.durability = durability
    self.deadline = deadline ?? .now + SharedContainer.standardWait
    self.term = term
    self.repeatsAfterLoss = repeatsAfterLoss
    self.willPublish = willPublish
    expiry = lifetime.map(PublicationRecord.expiry)
    self.peer = peer
  }
}

/// The decision of an update about a value.
package enum Edit: Sendable {
  /// Keeps the value; nothing is published.
  case keep
  case replace([UInt8])
  case remove
}

/// The error of an update's body. It never means that the update itself lost its lease, even if
/// another change within the body threw exactly that error.
package struct BodyError: Error {
  package let cause: any Error

  package init(cause: any Error) { self.cause = cause }
}

/// The engine's operations for values.
package protocol ValueEngine: ContainerEngine {
  func value(_ identifier: String, _ kind: NameKind, in container: SharedContainer)
    -> any ValueStore
  /// Returns a change of several values in one step.
  func change<Result: Sendable>(_ update: ValuesUpdate<Result>) -> sending any Waiting<Result>
}
