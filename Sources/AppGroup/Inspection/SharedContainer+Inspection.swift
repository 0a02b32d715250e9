package import PropertyLists
import SystemCalls

extension SharedContainer {
  /// What is in the container, who holds what, and what is not as it should be.
  ///
  /// Only looks: nothing is written, no lease is taken, no lock is waited for, and whatever lies in
  /// the directory (FIFOs, links, huge files, a million entries) the look ends within about ten
  /// seconds; what it could not cover makes the report partial.
  ///
  /// - Throws: `AppGroupError` when the container itself cannot be used any more.
  /// - Complexity: reads every value up to 512 MiB in all, /proc/locks, and /proc of this user's
  ///   processes.
  public func report() throws -> ContainerReport {
    try report { _, _ in nil }
  }

  /// The same, with a look at the shape of the package's own values.
  ///
  /// - Parameter problem: says what is wrong with the content of one, by its name; such a value is
  ///   reported as damaged.
  package func report(
    problem: @escaping (_ name: String, _ content: PropertyListValue) -> String?
  ) throws -> ContainerReport {
    try reporting("look through the container", path: root.path) {
      try ContainerInspection.report(on: self, problem)
    }
  }

  /// What `sweep` did.
  public struct SweepReport: Sendable {
    /// The paths that are gone.
    public internal(set) var removed: [String] = []
    /// The paths of the names that are gone, because they were empty and nobody used them.
    public internal(set) var names: [String] = []
    /// What could not be removed, and why.
    public internal(set) var failures: [AppGroupError] = []
  }

  /// Removes what dead and overtaken processes left behind, and what queues keep for a day when it is
  /// older: receipts of what was processed, and notes of how entries without a receipt ended. Nobody's
  /// work is disturbed.
  ///
  /// What belongs to a value is removed under that value's lease, as any holder would; what was on
  /// its way into the container is removed when it is a minute old.
  ///
  /// A name goes when nothing is kept under it, and nobody holds it, waits for it or watches it: of a
  /// value or a queue that is empty at once; of a notification without a state, and of a presence,
  /// when nobody has posted or been present for a day, because until then they tell of that. The
  /// names of peers stay, because they say which there are.
  ///
  /// - Parameter patience: how long to wait for the lease of each value.
  /// - Throws: as `report`.
  public func sweep(patience: Duration = .seconds(1)) throws -> SweepReport {
    var outcome = SweepReport()
    let leftovers = try report().leftovers
    var swept: Set<String> = []
    for leftover in leftovers {
      do {
        if let owner = leftover.owner {
          let value = Value(container: self, identifier: owner.identifier, kind: owner.kind)
          if leftover.kind == .abandonedPresence {
            let presence = Presence(
              container: self, name: owner.identifier, kind: owner.kind)
            try reporting("sweep a presence", path: presence.path) { try presence.place.sweep() }
          } else if leftover.kind == .abandonedEntry {
            let queue = Queue(container: self, name: owner.identifier, kind: owner.kind)
            try reporting("sweep a queue", path: queue.path) { try queue.sweep() }
          } else if swept.insert(value.path).inserted {
            try value.sweep(until: .now + patience)
          }
        } else if leftover.kind == .abandonedMailbox {
          try reporting("remove a mailbox", path: leftover.path) {
            try MailboxDirectory.sweep(inside(leftover.path), in: root)
          }
        } else {
          try reporting("remove a leftover", path: leftover.path) {
            try removeCreation(leftover.path)
          }
        }
        outcome.removed.append(leftover.path)
      } catch let error as AppGroupError {
        outcome.failures.append(error)
      }
    }
    for queue in try queueNames().map({ queue($0) }) + own.queueNames().map({ own.queue($0) }) {
      do {
        outcome.removed += try reporting("sweep a queue", path: queue.path) { try queue.expire() }
      } catch let error as AppGroupError {
        outcome.failures.append(error)
      }
    }
    try removeEmptyNames(&outcome)
    return outcome
  }

  private func removeEmptyNames(_ outcome: inout SweepReport) throws {
    let sweep = NameSweep(container: self)
    // Whether somebody consumes a queue is asked first, so consumers come after queues.
    for kind in [NameKind.value, .ownValue, .notification, .presence, .queue, .consumer] {
      for identifier in try identifiers(of: kind) {
        let directory = NamedDirectory(root: root, kind: kind, identifier: identifier)
        do {
          guard
            try reporting(
              "remove an empty name", path: directory.path,
              { try sweep.remove(identifier, of: kind) })
          else { continue }
          outcome.names.append(directory.path)
        } catch let error as AppGroupError {
          outcome.failures.append(error)
        }
      }
    }
  }

  private func inside(_ path: String) -> String { String(path.dropFirst(root.path.count + 1)) }

  /// A staged `container.plist`, or the directory of a long identifier with that one file in it.
  private func removeCreation(_ path: String) throws {
    let directory = try root.handle().descriptor.rawValue
    let inside = inside(path)
    do throws(Errno) {
      guard try fileStatus(inside, at: directory).kind == .directory else {
        return try removeFile(inside, at: directory)
      }
      do throws(Errno) {
        try removeFile(inside + "/" + NamedDirectory.identifierFile, at: directory)
      } catch {
        guard error == .noSuchFile else { throw error }
      }
      try removeDirectory(inside, at: directory)
    } catch {
      // Its maker has come back and finished.
      guard error == .noSuchFile else { throw error }
    }
  }
}

extension Value {
  /// Takes the lease, which removes what dead holders left in it, and removes the rest under it.
  fileprivate func sweep(until deadline: ContinuousClock.Instant) throws {
    let change = Change<Void>(self, .init(deadline: deadline)) { site in
      { _ in try site.clearRemains() }
    }
    try change.run()
  }
}

extension SharedContainer {
  /// Opens a container that is there, and makes nothing.
  ///
  /// - Returns: nil for a directory that could become a container and is none yet.
  /// - Throws: as `init(url:access:)`.
  package static func existing(path: String, group: String? = nil) throws -> SharedContainer? {
    let path = try absolute(path)
    let isPresent = try reporting("open the container", path: path) {
      let handle = try ContainerRoot(path: path, access: .owner).handle()
      return try ContainerFormat.isPresent(at: handle.descriptor.rawValue)
    }
    return isPresent ? try SharedContainer(path: path, group: group) : nil
  }

  /// Where the container of a group is, or would be.
  package static func path(ofGroup group: String) throws -> String {
    try ContainerLocation.path(forGroup: group)
  }
}
