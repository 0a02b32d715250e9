import Containers
import FileTrees
import SystemCalls

/// The files in a container's directory that are nobody's keys: those that a group keeps beside the
/// container's own entries, a phone app's directories for its watches, and the logs of a directory.
///
/// On etcd they lie in this machine's directory of the container.
struct BesideFiles {
  private let source: ContainerRoot
  /// The paths of the items, relative to the container.
  private let items: [String]

  /// The entries that are read as keys, or belong to living processes.
  private static let ofContainer: Set<String> = {
    let kinds = NameKind.users.filter { $0 != .log }.map(\.path)
    return Set(
      kinds + [
        NameKind.own, NameKind.log.path, ContainerFormat.fileName, "mailboxes", "quarantine",
      ])
  }()
  private static let ofWatches = NameKind.own + "/watches"
  /// What of a log belongs to living processes.
  private static let ofLease: Set<String> = [LeaseSite.lease, "staged"]

  /// - Parameter hasLogs: Whether the logs are copied, too.
  init(_ source: ContainerRoot, hasLogs: Bool) throws {
    self.source = source
    let directory = try source.handle().descriptor.rawValue
    func names(in path: String) throws -> [String] {
      try (SharedContainer.entries(path, at: directory) ?? []).map(\.name.text).sorted()
    }
    var items = try names(in: ".").filter { name in
      !Self.ofContainer.contains(name) && !name.hasPrefix(".container-") && !name.hasPrefix(".new-")
    }
    items += try names(in: Self.ofWatches).map { Self.ofWatches + "/" + $0 }
    if hasLogs {
      items += try names(in: NameKind.log.path).map { NameKind.log.path + "/" + $0 }
    }
    self.items = items
  }

  /// What is there, to see later whether it was changed.
  func look() throws -> [TreeManifest] {
    let directory = try source.handle().descriptor.rawValue
    return try items.map {
      try TreeManifest(of: FileName($0), at: directory, leavingOut: Self.isOfLease($0))
    }
  }

  /// Copies all of it into another directory, where nothing may have one of these names.
  ///
  /// - Returns: How many items there are.
  func copy(to path: String) throws -> Int {
    guard !items.isEmpty else { return 0 }
    try ContainerLocation.create(path)
    let from = try source.handle().descriptor.rawValue
    let target = try ContainerRoot(path: path, access: .owner)
    let to = try target.handle().descriptor.rawValue
    for item in items where try exists(item, at: to) {
      throw AppGroupError(
        .nameCollision, "copy the container", path: path + "/" + item,
        reason: "there is something already", remedy: "move it away")
    }
    do {
      for item in items {
        for slash in item.indices where item[slash] == "/" {
          try target.makeDirectoryIfMissing(String(item[..<slash]), at: to)
        }
        try TreeCopy(leavesOut: Self.isOfLease(item))
          .copy(FileName(item), at: from, to: FileName(item), at: to)
      }
    } catch {
      remove(from: path)
      throw error
    }
    return items.count
  }

  /// Removes what was copied.
  func remove(from path: String) {
    do {
      let directory = try FileDescriptor.open(path, [.readOnly, .directory])
      for item in items { try TreeRemoval().remove(FileName(item), at: directory.rawValue) }
    } catch {
      // The copy has failed, which is told; and the next one names what is in its way.
      return
    }
  }

  private static func isOfLease(_ item: String) -> (FileName) -> Bool {
    guard item.hasPrefix(NameKind.log.path + "/") else { return { _ in false } }
    return { ofLease.contains($0.text) }
  }
}
