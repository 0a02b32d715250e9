package import Wormhole
package import WormholePropertyLists
package import WormholeSystem

/// The engine's operations that examine, watch and sweep a container; most are
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

extension SharedContainer {
  var inspected: any InspectedEngine { engine(as: (any InspectedEngine).self) }
}
