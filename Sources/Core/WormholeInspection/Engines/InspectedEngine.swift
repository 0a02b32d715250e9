package import Wormhole
package import WormholePropertyLists

/// What looks through, watches, sweeps, copies and removes a container on one engine.
package protocol InspectedEngine: ContainerEngine {
  /// Returns the content of the container; see `SharedContainer.report`.
  func report(
    on container: SharedContainer,
    _ problem: @escaping (_ name: String, _ content: PropertyListValue) -> String?
  ) throws -> ContainerReport

  /// Removes what nobody needs; see `SharedContainer.sweep`.
  func sweep(
    _ container: SharedContainer, patience: Duration, expiring expire: () throws -> [String]
  ) throws -> SharedContainer.SweepReport

  /// Returns what a monitor sees.
  func sight(
    of container: SharedContainer, _ hear: @escaping @Sendable (ContainerEvent) -> Void
  ) -> any ContainerSight

  /// Tries what every writer does; see `SharedContainer.tryWriting`.
  func tryWriting() throws

  /// Removes an empty queue that nobody uses; see `SharedContainer.removeUnusedQueue`.
  func removeUnused(_ queue: Queue, in container: SharedContainer) throws

  /// Returns what reads the container as it is at one moment; nil for a directory, of which a picture is
  /// made.
  func copySource() -> (any CopySource)?

  /// Removes all that the container has here, but for the local directory.
  func removeContent() throws
}

/// A place to which a container can be copied.
package protocol CopyPlace: EngineLocation {
  /// Begins a copy that nobody can open before its end.
  func copyTarget() throws -> any CopyTarget
}

extension SharedContainer {
  /// Its engine, as those see it who look through the container.
  package var inspected: any InspectedEngine {
    guard let engine = engine as? any InspectedEngine else {
      preconditionFailure("each engine is an InspectedEngine")
    }
    return engine
  }
}
