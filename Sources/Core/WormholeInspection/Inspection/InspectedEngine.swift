package import Wormhole
package import WormholeSystem

/// The engine's operations that examine, watch and sweep a container; most are
/// explained at the function of `SharedContainer` with the same name.
package protocol InspectedEngine: ContainerEngine {
  func report(on container: SharedContainer, _ scope: ReportScope) throws -> ContainerReport

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

/// What a report covers.
package struct ReportScope {
  /// How much is examined beside the names of the container and its values.
  package enum Depth {
    case names
    /// The members of an etcd cluster, and their leader.
    case members
    /// In a directory each entry of a queue and each message of a log; on etcd also clocks, watches,
    /// certificates, the history, keys and leases, which takes about twenty requests.
    case everything
  }

  package let depth: Depth
  /// Returns whether a name is looked at.
  package let includes: (_ name: String, NameKind) -> Bool
  /// Returns the use of one of the package's own names; nil for a user's.
  package let use: (_ name: String, NameKind) -> OwnUse?
  /// Given each value of a user, in the order of their names; returns whether the report needs it.
  /// There may be a hundred thousand of them. A report on etcd has all.
  package let keeps: (ContainerReport.NamedContent) -> Bool

  package init(
    _ depth: Depth, includes: @escaping (_ name: String, NameKind) -> Bool = { _, _ in true },
    use: @escaping (_ name: String, NameKind) -> OwnUse? = { _, _ in nil },
    keeps: @escaping (ContainerReport.NamedContent) -> Bool = { _ in true }
  ) {
    self.depth = depth
    self.includes = includes
    self.use = use
    self.keeps = keeps
  }
}

extension SharedContainer {
  var inspected: any InspectedEngine { engine(as: (any InspectedEngine).self) }
}
