package import Wormhole
package import WormholeInspection
package import WormholeSystem

extension EtcdContainer: InspectedEngine {
  package func report(
    on container: SharedContainer, _ scope: ReportScope
  ) throws -> ContainerReport {
    var inspection = EtcdInspection(container, on: self, scope)
    if scope.depth == .names {
      inspection.lookAtNames()
    } else {
      inspection.lookAtClusterAndNames()
    }
    return inspection.report
  }

  /// Removes the marks of entries that are gone, files that no entry names, and traces of processes
  /// that have not come back for a month. Registrations end with their sessions.
  package func sweepLeftovers(
    of container: SharedContainer, patience: Duration, _ report: inout SharedContainer.SweepReport
  ) throws {
    for queue in try container.allQueues() {
      report.attempt("sweep a queue", path: queue.path) { _ in
        try EtcdQueue(queue, in: self).sweep()
      }
    }
    report.attempt("sweep old traces", path: container.location) {
      $0.removed += try EtcdRetention(self).sweep()
    }
  }

  /// Removes the keys of values that were removed; all other names have no keys once they are unused.
  package func sweepNames(
    of kind: NameKind, in container: SharedContainer, _ report: inout SharedContainer.SweepReport
  ) throws {
    guard kind.primitive == .value else { return }
    report.attempt("sweep the values", path: container.location) {
      $0.names += try removeEmptyValues(of: kind)
    }
  }

  package func monitor(
    _ container: SharedContainer, isNew: Bool,
    _ hear: @escaping @Sendable (ContainerEvent) -> Void
  ) throws -> any Watching { try EtcdMonitor(self, isNew: isNew, hear) }

  package func tryWriting() throws {
    _ = try client.commit(
      EtcdTransaction(
        if: [.version(of: formatKey, -1)], then: [.put(key: formatKey, value: [])]),
      until: .now + .seconds(10))
  }

  package func removeUnused(_ queue: PlainQueue, in container: SharedContainer) throws {
    guard try !queue.awaitFirstUse(until: .now, willWait: {}) else { return }
    try EtcdPresence(self, name: queue.name, kind: queue.role.kind).removeRecords()
  }
}

extension EtcdContainer: CopiedEngine {
  package func copySource() -> CopySource? { EtcdSource(container: self).read }

  /// Removes the keys of the container that was opened, not of one created after it. Its processes
  /// learn of that, because their sessions end.
  package func removeContent() throws -> Bool {
    let call = call()
    guard let found = try call.item(formatKey) else { return true }
    let all = try call.read(keys, keysOnly: true).items
    // A value of this name has more bytes.
    let format = Array("/format".utf8)
    for key in all.map(\.key) where key != formatKey && key.suffix(format.count) == format[...] {
      guard let value = try call.item(key)?.value, value.count < Stamp.bytes else { continue }
      let nested = String(decoding: key.dropLast(format.count), as: UTF8.self)
      throw WormholeError(
        .nameCollision, "remove the container", path: location.description,
        reason: "another one, \(nested), is below its prefix, and would be removed with it",
        remedy: "remove that one first, or copy it elsewhere")
    }
    _ = try call.repeating(EtcdTransaction(if: found.unchanged, then: [.delete(keys)]))
    for lease in Set(all.map(\.lease)) where lease != 0 {
      try client.revokeLease(lease, ofKeysIn: keys, until: call.callDeadline)
    }
    return true
  }
}

extension EtcdLocation: ClusterLocation {
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
