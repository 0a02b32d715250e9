package import WormholeSystem

/// Flushes an item to the disk, a directory with everything below it.
package enum TreeSynchronization {
  /// - Complexity: an fsync for each file and each directory.
  package static func run(_ name: FileName, _ status: FileStatus, at directory: Int32) throws {
    switch status.kind {
    case .regular:
      try FileDescriptor.open(name, at: directory, [.readOnly, .noFollow]).synchronize()
    case .directory:
      let root = SharedDescriptor(try openDirectory(name, at: directory))
      var visitor = Visitor()
      try visitor.walk("synchronize", through: root, path: TreePath(name))
      try root.descriptor.synchronize()
    default: return
    }
  }

  private struct Visitor: TreeVisitor {
    mutating func visit(_ entry: FileDescriptor.Entry, at place: TreePosition) throws -> Void? {
      switch try fileStatus(entry.name, at: place.rawValue).kind {
      case .directory: return ()
      case .regular:
        try FileDescriptor.open(entry.name, at: place.rawValue, [.readOnly, .noFollow])
          .synchronize()
        return nil
      default: return nil
      }
    }

    mutating func enter(
      _ name: FileName, _ mark: Void, at place: TreePosition
    ) throws -> SharedDescriptor? {
      let directory = SharedDescriptor(try openDirectory(name, at: place.rawValue))
      try directory.descriptor.synchronize()
      return directory
    }
  }
}
