package import Wormhole
package import WormholeInspection
package import WormholePropertyLists

extension EtcdContainer: InspectedEngine {
  package func report(
    on container: SharedContainer,
    _ problem: @escaping (_ name: String, _ content: PropertyListValue) -> String?
  ) throws -> ContainerReport {
    try EtcdInspection.report(on: container, self, problem)
  }

  package func sweep(
    _ container: SharedContainer, patience: Duration, expiring expire: () throws -> [String]
  ) throws -> SharedContainer.SweepReport {
    try container.sweepKeys(self, expiring: expire)
  }

  package func sight(
    of container: SharedContainer, _ hear: @escaping @Sendable (ContainerEvent) -> Void
  ) -> any ContainerSight { EtcdKeySight(self, hear) }

  package func tryWriting() throws {
    _ = try client.commit(
      EtcdTransaction(
        if: [.version(of: formatKey, -1)], then: [.put(key: formatKey, value: [])]),
      until: .now + .seconds(10))
  }

  package func removeUnused(_ queue: Queue, in container: SharedContainer) throws {
    guard try !queue.awaitFirstUse(until: .now, willWait: {}) else { return }
    try queue.role.removeRecords(from: self)
  }

  package func copySource() -> (any CopySource)? { EtcdSource(container: self) }

  /// Removes the keys of the container that was opened, not of one that was created after it.
  package func removeContent() throws {
    let call = call()
    guard let found = try call.item(formatKey) else { return }
    _ = try call.repeating(EtcdTransaction(if: found.unchanged, then: [.delete(keys)]))
  }
}

extension EtcdLocation: CopyPlace {
  package func copyTarget(until deadline: ContinuousClock.Instant) throws -> any CopyTarget {
    try EtcdTarget(self, until: deadline)
  }
}
