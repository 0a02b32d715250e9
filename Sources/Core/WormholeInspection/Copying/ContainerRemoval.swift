package import Wormhole
import WormholeSystem

/// The removal of a whole container.
///
/// **What a crash leaves.** In a directory the file that makes it a container is removed last, so
/// an interrupted removal can be repeated. On etcd all keys are removed in one step, and then this
/// machine's directory of the container. A process that continues to use the container creates
/// parts of it again.
package struct ContainerRemoval {
  private let container: SharedContainer
  /// Whether it is removed although processes use it.
  package var allowsUse = false
  /// Whether to also remove files that programs keep beside the container's own entries.
  package var removesFiles = false

  private static let action = "remove the container"

  package init(of container: SharedContainer) { self.container = container }

  /// - Returns: The names of programs' files that were left in its directory, sorted.
  /// - Throws: `WormholeError`: `timedOut` with a process that uses it; or an error of the file system or
  ///   of etcd: the rest still exists.
  /// - Complexity: One call for a file, four for a directory. On etcd one transaction.
  package func run() throws -> [String] {
    if !allowsUse {
      try container.refuseUse(
        Self.action, remedy: "end it first, so that it does not begin again")
    }
    return try reporting(Self.action, path: container.location) {
      let isBeside = try container.engine(as: (any CopiedEngine).self).removeContent()
      return try removeDirectory(isOwn: isBeside || isOfGroup)
    }
  }

  /// - Parameter isOwn: Whether the package has made the directory itself; not one that a user has
  ///   named.
  private func removeDirectory(isOwn: Bool) throws -> [String] {
    let handle = try container.root.handle()
    let directory = handle.descriptor.rawValue
    let all = try ContainerRoot.entries(".", at: directory) ?? []
    let ours = all.filter { removesFiles || SharedContainer.isOurs($0.name) }.map(\.name)
    let format = FileName(ContainerFormat.fileName)
    for name in ours where name != format { try TreeRemoval().remove(name, at: directory) }
    try TreeRemoval().remove(format, at: directory)
    let left = try ContainerRoot.entries(".", at: directory) ?? []
    if left.isEmpty, isOwn {
      // Another program may have created something in it meanwhile; then it stays.
      try removeIfEmpty(container.root.path, at: Directory.current)
    }
    return left.map(\.name.text).sorted()
  }

  /// Whether the directory was made for a group.
  private var isOfGroup: Bool {
    do throws(WormholeError) {
      guard let group = container.groupIdentifier else { return false }
      return try ContainerLocation.path(forGroup: group) == container.root.path
    } catch {
      // Without a home directory there are no groups.
      return false
    }
  }
}

extension SharedContainer {
  /// Whether an entry of a container's directory belongs to the container, or soon will.
  static func isOurs(_ name: FileName) -> Bool {
    ContainerFormat.ownEntries.contains(name.text) || isStaged(name)
  }

  /// Whether an entry has the name of a `container.plist` or a directory that is being created.
  /// Other names that begin like these are a user's.
  static func isStaged(_ name: FileName) -> Bool {
    let text = name.text
    if text.hasPrefix(".new-") { return Nonce.isOne(text.dropFirst(5)) }
    guard text.hasPrefix(".container-"), text.hasSuffix(".plist") else { return false }
    let nonce = text.dropFirst(11).dropLast(6)
    return Nonce.isOne(nonce.hasSuffix("-2") ? nonce.dropLast(2) : nonce)
  }

  /// Refuses an action while a process uses the container: one that is present in it, or a consumer
  /// of its queues. Processes that only read and write values are not seen.
  ///
  /// - Throws: `WormholeError.timedOut` with the process.
  func refuseUse(_ action: String, remedy: String) throws {
    let kinds = [NameKind.Primitive.presence, .consumer].flatMap {
      [NameKind($0), NameKind($0, isOwn: true)]
    }
    // The action itself meets the faults of names.
    var unreported = NameFaults()
    for kind in kinds {
      for name in try identifiers(of: kind, &unreported) {
        let presence = Presence(container: self, name: name, kind: kind)
        let users = try unreported.attempt(action, path: presence.path) { try presence.members() }
        guard let user = users?.first else { continue }
        throw WormholeError(
          .timedOut, action, path: location,
          reason: "\(user.program) (\(user.processID)) uses it: it is present as \"\(name)\"",
          remedy: remedy, holder: user.holder)
      }
    }
  }
}
