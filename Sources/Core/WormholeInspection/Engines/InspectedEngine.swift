package import Wormhole
package import WormholePropertyLists
package import WormholeSystem

/// The engine's operations that examine, watch, sweep, copy and remove a container; most are
/// explained at the function of `SharedContainer` with the same name.
package protocol InspectedEngine: ContainerEngine {
  func report(
    on container: SharedContainer, _ cluster: ClusterExamination,
    _ problem: @escaping (_ name: String, _ content: PropertyListValue) -> String?
  ) throws -> ContainerReport

  /// Removes what dead processes have left, as the first step of a sweep.
  func sweepLeftovers(
    of container: SharedContainer, patience: Duration, _ report: inout SharedContainer.SweepReport
  ) throws

  /// Removes unused names of a kind, as the last step of a sweep.
  func sweepNames(
    of kind: NameKind, in container: SharedContainer, _ report: inout SharedContainer.SweepReport
  ) throws

  func monitor(
    _ container: SharedContainer, isNew: Bool,
    _ hear: @escaping @Sendable (ContainerEvent) -> Void
  ) throws -> any Watching

  func tryWriting() throws

  func removeUnused(_ queue: PlainQueue, in container: SharedContainer) throws

  /// Returns a source that reads the container at one moment; nil for a directory, which needs a
  /// picture.
  func copySource() -> (any CopySource)?

  /// Removes everything of the container here except the local directory.
  func removeContent() throws
}

/// How much a report examines beside the names of the container and its values.
package enum ClusterExamination {
  case nothing
  /// The members of an etcd cluster, and their leader.
  case members
  /// In a directory each entry of a queue and each message of a log; on etcd also clocks, watches,
  /// certificates, the history, keys and leases, which takes about twenty requests.
  case everything
}

/// A place to which a container can be copied, and whose members are known.
package protocol ClusterPlace: EngineLocation {
  /// Asks the members of the cluster about themselves, even if the container cannot be opened.
  func members() throws -> ClusterReport

  /// Begins a copy that no process can open before its end.
  ///
  /// - Parameter deadline: The caller's.
  func copyTarget(until deadline: ContinuousClock.Instant) throws -> any CopyTarget
}

extension SharedContainer {
  package var inspected: any InspectedEngine {
    guard let engine = engine as? any InspectedEngine else {
      preconditionFailure("each engine is an InspectedEngine")
    }
    return engine
  }
}
