package import Wormhole
package import WormholeInspection
package import WormholePropertyLists

extension EtcdContainer: InspectedEngine {
  package func report(
    on container: SharedContainer, _ cluster: ClusterExamination,
    _ problem: @escaping (_ name: String, _ content: PropertyListValue) -> String?
  ) throws -> ContainerReport {
    var inspection = EtcdInspection(container, on: self, problem)
    if cluster != .nothing { inspection.lookAtCluster(examinesAll: cluster == .everything) }
    inspection.lookAtNames()
    return inspection.report
  }

  /// Removes unneeded keys: records of queues that are older than a day, old messages of logs, the keys
  /// of values that were removed, and traces of processes that have not come back for a month.
  package func sweep(
    _ container: SharedContainer, patience: Duration, expiring expire: () throws -> [String]
  ) throws -> SharedContainer.SweepReport {
    var outcome = SharedContainer.SweepReport()
    let (queues, own) = try (container.queueNames(), container.own.queueNames())
    for queue in queues.map({ container.queue($0) }) + own.map({ container.own.queue($0) }) {
      outcome.attempt("sweep a queue", path: queue.path) { outcome in
        outcome.removed += try queue.expire()
        try queue.sweep()
      }
    }
    for log in try container.logNames().map({ container.log($0) }) {
      outcome.attempt("sweep a log", path: log.path) {
        $0.removed += try log.sweep(until: .now + patience)
      }
    }
    let path = container.location
    outcome.attempt("sweep the positions of subscribers", path: path) {
      _ in _ = try Log.sweepPositions(in: container, until: .now + patience)
    }
    outcome.attempt("sweep what has expired", path: path) { $0.removed += try expire() }
    outcome.attempt("sweep old traces", path: path) {
      $0.removed += try EtcdRetention(self).sweep()
    }
    outcome.attempt("sweep the values", path: path) { outcome in
      for kind in [NameKind.value, .ownValue] {
        outcome.names += try removeEmptyValues(of: kind)
      }
    }
    return outcome
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
    try EtcdPresence(self, name: queue.name, kind: queue.role.kind).removeRecords()
  }

  package func copySource() -> (any CopySource)? { EtcdSource(container: self) }

  /// Removes the keys of the container that was opened, not of one that was created after it. Its processes
  /// learn of that, because their sessions end.
  package func removeContent() throws {
    let call = call()
    guard let found = try call.item(formatKey) else { return }
    let all = try call.read(keys, keysOnly: true).items
    // A value of this name has more bytes.
    let format = Array("/format".utf8)
    for key in all.map(\.key) where key != formatKey && key.suffix(format.count) == format[...] {
      guard let value = try call.item(key)?.value, value.count < Stamp.bytes else { continue }
      let nested = String(decoding: key.dropLast(format.count), as: UTF8.self)
      throw AppGroupError(
        .nameCollision, "remove the container", path: location.description,
        reason: "another one, \(nested), is below its prefix, and would be removed with it",
        remedy: "remove that one first, or copy it elsewhere")
    }
    _ = try call.repeating(EtcdTransaction(if: found.unchanged, then: [.delete(keys)]))
    for lease in Set(all.map(\.lease)) where lease != 0 {
      try client.revokeLease(lease, until: call.soon)
    }
  }
}

extension EtcdLocation: ClusterPlace {
  package func copyTarget(until deadline: ContinuousClock.Instant) throws -> any CopyTarget {
    try EtcdTarget(self, until: deadline)
  }

  package func members() throws -> ClusterReport {
    let client = EtcdClient(try configuration(keepingTokenIn: nil))
    var cluster = ClusterReport(of: self, through: client)
    for endpoint in client.endpoints {
      let (member, status) = client.member(at: endpoint)
      cluster.members.append(member)
      if status?.leaderID != nil { cluster.hasLeader = true }
    }
    return cluster
  }
}
