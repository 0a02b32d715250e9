package import Wormhole
import WormholeSystem

/// The copy of a whole container to another place, of either kind: complete except for the entries
/// that cannot be read, which the summary names, or not made at all.
///
/// The copy has everything that outlives processes: values with their publishers and expiry, states
/// of notifications, the last present processes, queues with all waiting, taken, kept and recorded
/// entries, their files, and logs; and the files beside the container's entries. It has nothing
/// that belongs to live processes: leases, registrations, mailboxes. An entry that a consumer has is
/// delivered again in the copy, marked as redelivered.
///
/// **Consistent.** It is as the container was at one moment. etcd is read at one revision; a
/// directory in use becomes a snapshot first (`ContainerSnapshot`), however busy it is.
package struct ContainerCopy {
  let source: SharedContainer
  /// Whether to copy although processes use the container: they continue with the original.
  package var allowsUse = false
  /// Whether no process can change the container: an unpacked backup.
  var isStill = false
  /// Whether a copy in a directory is flushed to the disk at the end.
  var isDurable = true
  package var leavesOut: @Sendable (_ ownValue: String) -> Bool = { _ in false }
  /// Called after each part with the number of parts and bytes so far.
  package var progress: (_ keys: Int, _ bytes: Int) -> Void = { _, _ in }
  /// Called between all steps; its errors end the copy.
  package var check: () throws -> Void = {}
  var deadline = ContinuousClock.now

  package init(of source: SharedContainer) { self.source = source }

  package struct Summary: Sendable {
    package fileprivate(set) var keys = 0
    package fileprivate(set) var bytes = 0
    /// The number of items beside the container's own entries.
    package fileprivate(set) var items = 0
    /// What was left out because it cannot be read.
    package internal(set) var faults = NameFaults()

    fileprivate mutating func add(_ size: Int) {
      keys += 1
      bytes += size
    }
  }

  /// - Parameters:
  ///   - location: A directory that does not exist or is empty, or a place on etcd without a container.
  ///   - group: The group whose container it becomes; nil for none.
  ///   - deadline: Checked between all steps; not while a container that cannot change is copied.
  /// - Throws: `WormholeError`: `nameCollision` if the place is taken, or in the container itself;
  ///   `timedOut` if processes use the container, if other programs change files beside it all the
  ///   time, or if the deadline has passed; `tooLarge` for content that etcd does not accept;
  ///   an error of either place. Then nothing is created.
  package func run(
    to location: String, group: String? = nil, until deadline: ContinuousClock.Instant
  ) throws -> Summary {
    var copy = self
    copy.deadline = deadline
    let place = try Engines.location(location) as? any ClusterLocation
    if place == nil { try refuseInside(location) }
    while true {
      try refuseUse()
      let target =
        try place?.copyTarget(until: deadline)
        ?? DirectoryTarget(path: location, group: group, isDurable: isDurable)
      do {
        if let done = try copy.fill(target) { return done }
      } catch {
        target.abandon()
        throw error
      }
      target.abandon()
    }
  }

  /// - Returns: Nil if it has to be tried again.
  private func fill(_ target: any CopyTarget) throws -> Summary? {
    if let reader = source.engine(as: (any CopiedEngine).self).copySource() {
      return try put(reader, besides: source.root, to: target)
    }
    if let target = target as? DirectoryTarget {
      let summary = try snapshot(to: target)
      try refuseUse()
      try target.finish()
      return summary
    }
    if isStill {
      return try put(DirectorySource(container: source).read, besides: source.root, to: target)
    }
    try refuseInside(target.directory)
    let place = try DirectoryTarget(
      path: target.directory + ".snapshot", group: nil, isDurable: false)
    defer { place.abandon() }
    let staged = try snapshot(to: place)
    // All parts are counted.
    var silent = self
    silent.progress = { _, _ in }
    var summary = try silent.put(
      DirectorySource(container: place.container).read, besides: place.root, to: target)
    summary?.faults.add(staged.faults)
    return summary
  }

  private func snapshot(to target: DirectoryTarget) throws -> Summary {
    var summary = Summary()
    let snapshot = ContainerSnapshot(
      of: source, to: target, leavesOut: leavesOut, check: checkAll,
      copied: {
        summary.add($0)
        progress(summary.keys, summary.bytes)
      })
    try reading { try snapshot.make() }
    (summary.keys, summary.bytes) = snapshot.size
    summary.items = snapshot.items
    summary.faults = snapshot.faults
    return summary
  }

  /// Copies keys, and the files beside them.
  ///
  /// - Returns: Nil if the source was changed meanwhile, so that the copy would mix two moments.
  private func put(
    _ read: CopySource, besides root: ContainerRoot, to target: any CopyTarget
  ) throws -> Summary? {
    var summary = Summary()
    var faults = NameFaults()
    let beside = try BesideCopy(root, to: target.directory, check: checkAll)
    var isDone = false
    defer { if !isDone { beside.remove() } }
    _ = try reading { try beside.copy() }
    let isWhole = try reading {
      try read(&faults) { item in
        if item.letter == .value, item.isOwn, leavesOut(item.name) { return }
        try checkAll()
        summary.add(item.value.count)
        try target.put(item)
        progress(summary.keys, summary.bytes)
      }
    }
    let changes = try reading { try beside.copy() }
    guard isWhole, changes == 0 else { return nil }
    summary.items = beside.count
    summary.faults = faults
    summary.faults.add(beside.faults)
    try refuseUse()
    try target.finish()
    isDone = true
    return summary
  }

  /// Also ends the copy at its deadline, unless the container cannot change.
  func checkAll() throws {
    try check()
    guard !isStill, ContinuousClock.now >= deadline else { return }
    throw WormholeError(
      .timedOut, "copy the container", path: source.location,
      reason: "the deadline passed before all of it was copied", remedy: "try a later deadline")
  }

  private func reading<Result>(_ body: () throws -> Result) throws -> Result {
    try reporting("copy the container", path: source.location, body)
  }

  // MARK: Refusing

  /// Refuses to copy while a process is present that would continue with the original.
  private func refuseUse() throws {
    guard !allowsUse else { return }
    try source.refuseUse(
      "copy the container",
      remedy: "end it first, so that it does not go on with the original")
  }

  /// Refuses a directory in the container itself: the copy would be copied, too, without end.
  private func refuseInside(_ location: String) throws {
    var place = try SharedContainer.absolute(location)
    try reading {
      func status(_ path: String) throws(Errno) -> FileStatus? {
        try tolerating([.noSuchFile, .notDirectory], fileStatus(path + "/."))
      }
      guard let root = try status(source.root.path) else { return }
      var found: FileStatus?
      while found == nil, let slash = place.lastIndex(of: "/") {
        place = String(place[..<slash])
        found = try status(place)
      }
      while let directory = found {
        guard !directory.isSameFile(as: root) else {
          throw WormholeError(
            .nameCollision, "copy the container", path: source.location,
            reason: "its copy would be in the container itself, and have to contain itself",
            remedy: "name a place outside it")
        }
        place += "/.."
        found = try status(place)
        if let parent = found, parent.isSameFile(as: directory) { return }
      }
    }
  }
}

/// Reads everything that outlives processes, as it was at one moment, in the order of the keys of a
/// queue's batches; false if it could not be read completely as it was at that moment.
///
/// `faults` takes what is left out because it cannot be read.
package typealias CopySource = (
  _ faults: inout NameFaults, _ body: (CopiedKey) throws -> Void
) throws -> Bool

/// The place that a container is copied to: no process can open it before the end.
package protocol CopyTarget {
  /// This machine's directory for files that lie beside the container's own entries.
  var directory: String { get }

  func put(_ item: CopiedKey) throws

  /// Makes it a container, in one step.
  func finish() throws

  /// Removes everything.
  func abandon()
}
