package import Wormhole
package import WormholeSystem

extension DirectoryEngine: InspectedEngine {
  package func report(
    on container: SharedContainer, _ scope: ReportScope
  ) throws -> ContainerReport {
    var report = try ContainerInspection(container, scope).report
    report.watches = WatchUseReading.read(for: root.path)
    return report
  }

  package func sweepLeftovers(
    of container: SharedContainer, patience: Duration, _ report: inout SharedContainer.SweepReport
  ) throws {
    var swept: Set<String> = []
    let inspection = try reporting("look through the container", path: root.path) {
      try ContainerInspection(container, ReportScope(.names, keeps: { _ in false }))
    }
    for leftover in inspection.report.leftovers {
      report.attempt("remove a leftover", path: leftover.path) { report in
        try container.remove(leftover, patience: patience, &swept)
        // Its owner may have come back, or be in another namespace.
        let isGone = try ifPresent(fileStatus(leftover.path)) == nil
        if isGone { report.removed.append(leftover.path) }
      }
    }
    for kind in [NameKind.value, .ownValue] {
      for identifier in try container.identifiers(of: kind) {
        let value = PlainValue(container: container, identifier: identifier, kind: kind)
        report.attempt("remove an expired value", path: value.path) { report in
          if try value.removeExpired(until: .now + patience) { report.removed.append(value.path) }
        }
      }
    }
  }

  package func sweepNames(
    of kind: NameKind, in container: SharedContainer, _ report: inout SharedContainer.SweepReport
  ) throws {
    for identifier in try container.identifiers(of: kind) {
      let path = NamedDirectory(root: root, kind: kind, identifier: identifier).path
      report.attempt("remove an empty name", path: path) { report in
        let isGone = try NameSweep(container: container).remove(identifier, of: kind)
        if isGone { report.names.append(path) }
      }
    }
  }

  package func monitor(
    _ container: SharedContainer, isNew: Bool,
    _ hear: @escaping @Sendable (ContainerEvent) -> Void
  ) -> any Watching { DirectoryMonitor(of: container, isNew: isNew, hear) }

  package func removeUnused(_ queue: PlainQueue, in container: SharedContainer) throws {
    guard ChangeMonitor.shared.isSettled(root.path),
      try container.removeEmptyName(queue.name, .queue, isOwn: queue.directory.kind.isOwn)
    else { return }
    // A watch of this process that has not ended yet takes these removals for a program's, and then
    // the registration under which they were made is left as a dead one's.
    try queue.role.place.sweep()
    _ = try container.removeEmptyName(queue.name, .consumer, isOwn: queue.directory.kind.isOwn)
  }

  package func tryWriting() throws {
    let handle = try root.handle()
    let directory = handle.descriptor.rawValue
    let nonce = Nonce.next()
    let (first, second) = (".container-\(nonce).plist", ".container-\(nonce)-2.plist")
    let place = ".new-\(nonce)"
    do {
      let block = [UInt8](repeating: 0, count: Int(min(handle.status.blockBytes, 65_536)))
      let file = try root.access.createFile(first, at: directory)
      try file.writeAll(block)
      try rename(first, at: directory, to: second, at: directory)
      try makeDirectory(place, at: directory)
      try removeDirectory(place, at: directory)
      try removeFile(second, at: directory)
    } catch {
      for name in [first, second] { try removeIfPresent(name, at: directory) }
      throw error
    }
  }
}
