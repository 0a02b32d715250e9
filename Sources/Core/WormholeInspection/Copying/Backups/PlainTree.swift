import Wormhole
import WormholeSystem

/// Visits everything that an archive has or will have: directories, files, links and FIFOs. No step
/// follows a link or opens a FIFO.
struct PlainTree: TreeVisitor {
  /// Why an entry may not be in an archive.
  enum Fault {
    case socket, device
    /// A second name of a file.
    case secondName
    /// tar(1) cannot make a file with such a path.
    case longPath
  }

  /// The longest path that tar(1) can open; Linux permits 4,095 bytes.
  private static let maximumPath = 4_000

  /// Takes what may not be there.
  let refuse: (_ path: TreePath, _ fault: Fault, _ place: TreePosition) throws -> Void
  /// Called for each entry; its errors end the walk.
  let check: () throws -> Void

  /// - Parameters:
  ///   - name: The directory.
  ///   - directory: Where it is.
  mutating func run(_ name: FileName, at directory: Int32) throws {
    let root = SharedDescriptor(try openDirectory(name, at: directory))
    try walk("look at the archive's files", through: root, path: TreePath(name))
  }

  mutating func visit(_ entry: FileDescriptor.Entry, at place: TreePosition) throws -> Void? {
    try check()
    let path = place.path.appending(entry.name)
    let status = try fileStatus(entry.name, at: place.rawValue)
    if let fault = Self.fault(of: status, path) {
      try refuse(path, fault, place)
      return nil
    }
    if status.kind == .directory { return () }
    // A program from elsewhere does not run as its owner.
    if status.kind == .regular, status.permissions & 0o6000 != 0 {
      try setPermissions(entry.name, at: place.rawValue, status.permissions & 0o1777)
    }
    return nil
  }

  private static func fault(of status: FileStatus, _ path: TreePath) -> Fault? {
    switch status.kind {
    case .socket: .socket
    case .device: .device
    case .regular where status.links > 1: .secondName
    case .regular, .directory, .symbolicLink, .fifo:
      path.bytes.count > maximumPath ? .longPath : nil
    }
  }

  mutating func enter(
    _ name: FileName, _ mark: Void, at place: TreePosition
  ) throws -> SharedDescriptor? {
    SharedDescriptor(try openDirectory(name, at: place.rawValue))
  }
}

extension PlainTree.Fault {
  /// The words after "it is".
  var words: String {
    switch self {
    case .socket: "a socket"
    case .device: "a device"
    case .secondName: "a second name of a file"
    case .longPath: "an entry with a path that is too long for tar(1)"
    }
  }
}
