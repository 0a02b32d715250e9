/// The position of a walk: an open directory and its path.
package struct TreePosition {
  package let directory: SharedDescriptor
  package let path: TreePath

  package var rawValue: Int32 { directory.descriptor.rawValue }
}

/// The actions on a walk through a tree.
package protocol TreeVisitor {
  /// What the visitor needs to know about a directory between seeing and entering it.
  associatedtype Mark

  /// The name of an entry was read.
  ///
  /// - Returns: A mark for a directory to enter after all names here have been read; otherwise nil.
  mutating func visit(_ entry: FileDescriptor.Entry, at place: TreePosition) throws -> Mark?
  /// Opens a directory to be entered; nil leaves it out.
  mutating func enter(_ name: FileName, _ mark: Mark, at place: TreePosition) throws
    -> SharedDescriptor?
  /// Called after everything below the innermost entered directory. Does nothing by default.
  ///
  /// - Parameter place: the directory that contains it; nil if that has vanished.
  mutating func leave(_ name: FileName, at place: TreePosition?) throws
}

extension TreeVisitor {
  package mutating func leave(_ name: FileName, at place: TreePosition?) throws {}

  /// Walks through everything below a directory.
  ///
  /// - Parameters:
  ///   - action: the purpose of the walk, for error sentences.
  ///   - path: the path of the directory, for error sentences.
  package mutating func walk(
    _ action: String, through root: SharedDescriptor, path: TreePath
  ) throws {
    var walk = TreeWalk<Self>(action, root: root, path: path)
    try walk.run(&self)
  }
}

/// A walk through everything below a directory, which is not itself an entry of the walk.
///
/// It keeps its own stack, so a tree may have any depth, and needs few descriptors. Of each
/// directory it keeps only the names of the subdirectories.
private struct TreeWalk<Visitor: TreeVisitor> {
  private struct Frame {
    let name: FileName
    var waiting: [(name: FileName, mark: Visitor.Mark)]
  }

  private let action: String
  private var chain: DirectoryChain
  private var path: TreePath
  private var frames: [Frame] = []

  init(_ action: String, root: SharedDescriptor, path: TreePath) {
    self.action = action
    self.path = path
    chain = DirectoryChain(root: root)
  }

  mutating func run(_ visitor: inout Visitor) throws {
    frames.append(Frame(name: FileName(""), waiting: try names(&visitor)))
    while !frames.isEmpty {
      guard let next = frames[frames.count - 1].waiting.popLast() else {
        try ascend(&visitor)
        continue
      }
      guard let place, let directory = try visitor.enter(next.name, next.mark, at: place) else {
        continue
      }
      let below = path.appending(next.name)
      try reporting(action, below, chain.descend(next.name, into: directory))
      path = below
      frames.append(Frame(name: next.name, waiting: try names(&visitor)))
    }
  }

  private var place: TreePosition? { chain.current.map { TreePosition(directory: $0, path: path) } }

  private mutating func ascend(_ visitor: inout Visitor) throws {
    let left = frames.removeLast()
    guard !frames.isEmpty else { return }
    chain.ascend()
    path = path.parent(ofNameWith: left.name.bytes.count)
    try visitor.leave(left.name, at: place)
  }

  /// Visits all names of the current directory.
  private func names(
    _ visitor: inout Visitor
  ) throws -> [(name: FileName, mark: Visitor.Mark)] {
    guard let place else { return [] }
    var directories: [(name: FileName, mark: Visitor.Mark)] = []
    var entries: [FileDescriptor.Entry] = []
    while try next(at: place, &entries) {
      for entry in entries {
        if let mark = try visitor.visit(entry, at: place) { directories.append((entry.name, mark)) }
      }
      entries.removeAll(keepingCapacity: true)
    }
    return directories
  }

  private func next(
    at place: TreePosition, _ entries: inout [FileDescriptor.Entry]
  ) throws -> Bool {
    // A directory that was removed while it was open has no entries (getdents(2)).
    try reporting(
      action, place.path,
      tolerating(
        Errno.vanishing, place.directory.descriptor.nextEntries { entries.append($0) })) ?? false
  }
}

/// The directories from the root of a tree down to one of them, of which only the lowest are open:
/// a tree may be deeper than a process may have descriptors.
///
/// A directory that was closed is opened again as ".." of the one below it, and accepted only if it
/// is the same directory, because the lower one may have been moved meanwhile.
package struct DirectoryChain {
  private struct Level {
    let name: FileName
    let status: FileStatus
    var open: SharedDescriptor?
  }

  /// How many descriptors a chain keeps open besides its root.
  private static let limit = 16

  private let root: SharedDescriptor
  private var levels: [Level] = []

  package init(root: SharedDescriptor) {
    self.root = root
  }

  /// The lowest directory; nil when it was lost on the way back up.
  package var current: SharedDescriptor? { levels.last.map(\.open) ?? root }

  /// Goes down into a directory that was opened in the current one.
  package mutating func descend(_ name: FileName, into directory: SharedDescriptor) throws(Errno) {
    let status = try directory.descriptor.status()
    levels.append(Level(name: name, status: status, open: directory))
    if levels.count > Self.limit { levels[levels.count - Self.limit - 1].open = nil }
  }

  /// Goes up to the directory above; if it no longer exists, it is lost (`current` is nil).
  package mutating func ascend() {
    guard let left = levels.popLast() else { preconditionFailure("above the root is nothing") }
    guard let top = levels.last, top.open == nil else { return }
    levels[levels.count - 1].open = reopened(top, above: left) ?? walked()
  }

  private func reopened(_ level: Level, above lower: Level) -> SharedDescriptor? {
    guard let lower = lower.open else { return nil }
    // If it fails, the way from the root may still exist.
    return try? checked(.open("..", at: lower.descriptor.rawValue, [.readOnly, .directory]), level)
  }

  // All the names from the root down to the current directory.
  private func walked() -> SharedDescriptor? {
    do throws(Errno) {
      var place = root
      for level in levels {
        let below = try openDirectory(level.name, at: place.descriptor.rawValue)
        guard let next = try checked(below, level) else { return nil }
        place = next
      }
      return place
    } catch {
      // Removed, or no longer accessible: for the walk it has vanished.
      return nil
    }
  }

  private func checked(
    _ directory: consuming FileDescriptor, _ level: Level
  ) throws(Errno) -> SharedDescriptor? {
    guard try directory.status().isSameFile(as: level.status) else { return nil }
    return SharedDescriptor(directory)
  }
}

/// Opens a directory, and no other kind of file, to read its names.
package func openDirectory(_ name: FileName, at directory: Int32) throws(Errno) -> FileDescriptor {
  try FileDescriptor.open(name, at: directory, [.readOnly, .directory, .noFollow, .nonBlocking])
}

/// Whether an entry is a directory; false if that cannot be determined.
package func isDirectory(_ name: FileName, at directory: Int32) -> Bool {
  // The caller's next call on the entry reports the fault.
  (try? fileStatus(name, at: directory).kind == .directory) ?? false
}
