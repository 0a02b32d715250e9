package import Containers
import Digests
import FileTrees
import SystemCalls

/// The copy of a whole container to another place, of either kind: complete, or not made at all.
///
/// What outlives processes is copied: values with their publishers and expiry, states of notifications,
/// who was present last, queues with everything that waits, is taken, kept or noted, their files, and
/// between directories logs; and the files that lie beside the container's entries. What is tied to
/// living processes is not: leases, registrations, mailboxes. An entry that a consumer has is delivered
/// again in the copy, marked as redelivered.
///
/// **Consistent.** etcd is read at one revision. A directory is read twice, and copied again if that
/// shows a difference, until the deadline.
package struct ContainerCopy {
  private let source: SharedContainer
  /// Whether it is made although processes use the container: they go on with the original.
  package var allowsUse = false
  /// What is left out, of the package's own values.
  package var leavesOut: @Sendable (_ ownValue: String) -> Bool = { _ in false }
  /// Told after each part how many there were, and their bytes.
  package var progress: (_ keys: Int, _ bytes: Int) -> Void = { _, _ in }

  package init(of source: SharedContainer) { self.source = source }

  /// What was copied.
  package struct Summary: Sendable {
    package fileprivate(set) var keys = 0
    package fileprivate(set) var bytes = 0
    /// The number of items beside the container's own entries.
    package fileprivate(set) var items = 0
    fileprivate var hash = XXH64()

    fileprivate mutating func add(_ item: CopiedKey) {
      keys += 1
      bytes += item.value.count
      for part in [
        Array("\(item.letter)\(item.isOwn)\(item.name)\0\(item.part)\0".utf8), item.value,
      ] {
        part.withUnsafeBytes { hash.update($0) }
      }
    }
  }

  /// Makes the copy.
  ///
  /// - Parameters:
  ///   - location: A directory that does not exist or is empty, or a place on etcd without a container.
  ///   - group: The group whose container it becomes; nil for none.
  /// - Throws: `AppGroupError`: `nameCollision` if something is there; `timedOut` if processes use the
  ///   container, or change it all the time; `tooLarge` for what etcd does not take; `notSupported` for
  ///   logs on etcd; an error of either place. Nothing is made then.
  package func run(
    to location: String, group: String? = nil, until deadline: ContinuousClock.Instant
  ) throws -> Summary {
    let isOnEtcd = EtcdLocation.isMeant(by: location)
    if isOnEtcd { try refuseLogs() }
    repeat {
      try refuseUse()
      let target: any CopyTarget =
        isOnEtcd
        ? try EtcdTarget(EtcdLocation(location))
        : try DirectoryTarget(path: location, group: group)
      do {
        if let done = try fill(target, hasLogs: !isOnEtcd) { return done }
      } catch {
        target.abandon()
        throw error
      }
      target.abandon()
    } while ContinuousClock.now < deadline
    throw AppGroupError(
      .timedOut, "copy the container", path: source.location,
      reason: "processes changed it during each attempt, and the deadline passed",
      remedy: "stop them, or try with a later deadline")
  }

  /// - Returns: Nil if the source was changed meanwhile.
  private func fill(_ target: any CopyTarget, hasLogs: Bool) throws -> Summary? {
    let reader: any CopySource =
      switch source.engine {
      case .directory(let root): DirectorySource(container: source, root: root)
      case .etcd(let container): EtcdSource(container: container)
      }
    var summary = Summary()
    let beside = try reading { try BesideFiles(source.root, hasLogs: hasLogs) }
    let before = try reading { try beside.look() }
    try read(reader) { item in
      summary.add(item)
      try target.put(item)
      progress(summary.keys, summary.bytes)
    }
    summary.items = try reading { try beside.copy(to: target.directory) }
    var isDone = false
    defer { if !isDone { beside.remove(from: target.directory) } }
    if !reader.isSnapshot {
      var again = Summary()
      try read(reader) { again.add($0) }
      guard again.hash.value == summary.hash.value else { return nil }
    }
    let after = try reading { try BesideFiles(source.root, hasLogs: hasLogs).look() }
    let isUnchanged =
      before.count == after.count && zip(before, after).allSatisfy { $1.isUnchanged(since: $0) }
    guard isUnchanged else { return nil }
    try refuseUse()
    try target.finish()
    isDone = true
    return summary
  }

  private func read(_ reader: any CopySource, _ body: (CopiedKey) throws -> Void) throws {
    try reading {
      try reader.read { item in
        if item.letter == .value, item.isOwn, leavesOut(item.name) { return }
        try body(item)
      }
    }
  }

  private func reading<Result>(_ body: () throws -> Result) throws -> Result {
    try reporting("copy the container", path: source.location, body)
  }

  // MARK: Refusing

  /// Refuses to copy while somebody is there who would go on with the original.
  private func refuseUse() throws {
    guard !allowsUse else { return }
    try ContainerUse.refuse(
      "copy the container", source,
      remedy: "end it first, so that it does not go on with the original")
  }

  private func refuseLogs() throws {
    for name in try source.identifiers(of: .log) {
      throw AppGroupError(
        .notSupported, "copy the container", path: source.location,
        reason: "there is a log, \"\(name)\", and etcd has none",
        remedy: "remove it first, or copy to a directory")
    }
  }
}
