package import Wormhole
package import WormholePropertyLists
import WormholeSystem

extension DirectoryEngine: InspectedEngine {
  package func report(
    on container: SharedContainer, _ cluster: ClusterExamination,
    _ problem: @escaping (_ name: String, _ content: PropertyListValue) -> String?
  ) throws -> ContainerReport {
    var report = try ContainerInspection(container, problem).report
    report.watches = WatchUseReading.read(for: root.path)
    return report
  }

  package func sweep(
    _ container: SharedContainer, patience: Duration, expiring expire: () throws -> [String]
  ) throws -> SharedContainer.SweepReport {
    try container.sweepDirectory(patience, expiring: expire)
  }

  package func sight(
    of container: SharedContainer, _ hear: @escaping @Sendable (ContainerEvent) -> Void
  ) -> any ContainerSight { FileSight(container, hear) }

  package func removeUnused(_ queue: Queue, in container: SharedContainer) throws {
    guard ChangeMonitor.shared.isSettled(root.path),
      try container.removeEmptyName(queue.name, .queue, isOwn: queue.directory.kind.isOwn)
    else { return }
    // A watch of this process that has not ended yet takes these removals for a program's, and then
    // the registration under which they were made is left as a dead one's.
    try queue.role.place.sweep()
    _ = try container.removeEmptyName(queue.name, .consumer, isOwn: queue.directory.kind.isOwn)
  }

  package func copySource() -> (any CopySource)? { nil }

  /// Its files are those of the local directory.
  package func removeContent() {}

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
