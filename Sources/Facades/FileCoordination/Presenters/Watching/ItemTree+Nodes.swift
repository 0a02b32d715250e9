import AppGroup
import FileClaims
import SystemCalls

/// The directories of the tree and what is in them.
extension ItemTree {
  mutating func set(_ entry: Entry?, at place: Place, insteadOf old: Entry?) {
    if let old { forget(FileIdentity(old.known.status), at: place) }
    nodes[place.node]?.entries[place.name] = entry
    if let entry { places[FileIdentity(entry.known.status)] = place }
  }

  private mutating func forget(_ identity: FileIdentity, at place: Place) {
    // Of a file with several names, another may have been seen last.
    if places[identity] == place { places[identity] = nil }
  }

  mutating func makeNode(
    in parent: NodeID, _ name: FileName, _ status: FileStatus
  ) -> NodeID {
    lastID += 1
    nodes[lastID] = Node(parent: parent, name: name, identity: status)
    return lastID
  }

  mutating func drop(_ id: NodeID) {
    var waiting = [id]
    while let next = waiting.popLast() {
      guard let node = nodes.removeValue(forKey: next) else { continue }
      postponed[next] = nil
      for (name, entry) in node.entries {
        forget(FileIdentity(entry.known.status), at: Place(node: next, name: name))
        if let node = entry.node { waiting.append(node) }
      }
    }
  }

  mutating func watch(_ id: NodeID, _ directory: borrowing FileDescriptor) {
    let hear = hear
    nodes[id]?.watch = ChangeMonitor.shared.watchOpen(directory, Self.events) { hear(id, $0) }
  }

  func list(_ directory: SharedDescriptor) -> [FileName] {
    do throws(Errno) {
      return try directory.descriptor.entries().map(\.name)
    } catch {
      // Removed in this moment: what was known of it is found to be gone, name by name.
      return []
    }
  }

  /// - Returns: nil when the directory is not where it should be, or may not be read.
  func open(_ id: NodeID) -> SharedDescriptor? {
    guard let node = nodes[id] else { return nil }
    let names = names(to: id).map(\.text)
    let path = names.isEmpty ? "." : names.joined(separator: "/")
    do throws(Errno) {
      let directory = try FileDescriptor.openBeneath(
        path, at: root.descriptor.rawValue, [.readOnly, .directory])
      guard try directory.status().isSameFile(as: node.identity) else { return nil }
      return SharedDescriptor(directory)
    } catch {
      return nil
    }
  }

  private func names(to id: NodeID) -> [FileName] {
    var names: [FileName] = []
    var next = id
    while let node = nodes[next], let parent = node.parent {
      names.append(node.name)
      next = parent
    }
    return names.reversed()
  }

  func path(of id: NodeID, from root: ItemPath) -> ItemPath {
    names(to: id).reduce(root) { $0.appending($1) }
  }

  /// Which directory knows of a path below, and by which name; nil when none does.
  func place(of components: [FileName]) -> (node: NodeID, name: FileName)? {
    guard let name = components.last else { return nil }
    var id = Self.rootID
    for component in components.dropLast() {
      guard let next = nodes[id]?.entries[component]?.node else { return nil }
      id = next
    }
    return (id, name)
  }
}

/// Which file on which file system.
struct FileIdentity: Hashable, Sendable {
  let device: UInt64
  let inode: UInt64

  init(_ status: FileStatus) {
    device = status.device
    inode = status.inode
  }
}
