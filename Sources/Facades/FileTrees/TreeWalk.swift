package import SystemCalls

/// Where a walk is: an open directory and its path.
package struct TreePlace {
  package let directory: SharedDescriptor
  package let path: TreePath

  package var rawValue: Int32 { directory.descriptor.rawValue }
}

/// What is done on a walk through a tree.
package protocol TreeVisitor {
  /// What the visitor needs to know of a directory between seeing and entering it.
  associatedtype Mark

  /// The name of an entry was read.
  ///
  /// - Returns: not nil if it is a directory to be entered, after all names here have been read.
  mutating func visit(_ entry: FileDescriptor.Entry, at place: TreePlace) throws -> Mark?
  /// Opens a directory that is to be entered; nil leaves it out.
  mutating func enter(_ name: FileName, _ mark: Mark, at place: TreePlace) throws
    -> SharedDescriptor?
  /// All below the directory that was entered last and not yet left has been visited.
  ///
  /// - Parameter place: the directory that holds it; nil when that has vanished.
  mutating func leave(_ name: FileName, at place: TreePlace?) throws
}

/// A walk through all below a directory, which is not itself an entry of the walk.
///
/// It keeps its own stack, so a tree may be as deep as it likes, and few descriptors. Of a directory
/// it keeps only the names of the directories inside.
package struct TreeWalk<Visitor: TreeVisitor> {
  private struct Frame {
    let name: FileName
    var waiting: [(name: FileName, mark: Visitor.Mark)]
  }

  private let action: String
  private var chain: DirectoryChain
  private var path: TreePath
  private var frames: [Frame] = []

  /// - Parameters:
  ///   - action: the purpose of the walk, for error sentences.
  ///   - path: the path of the root, for error sentences.
  package init(_ action: String, root: SharedDescriptor, path: TreePath) {
    self.action = action
    self.path = path
    chain = DirectoryChain(root: root)
  }

  package mutating func run(_ visitor: inout Visitor) throws {
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

  private var place: TreePlace? { chain.current.map { TreePlace(directory: $0, path: path) } }

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
    at place: TreePlace, _ entries: inout [FileDescriptor.Entry]
  ) throws -> Bool {
    // A directory that was removed while it was open has no entries (getdents(2)).
    try reportingUnless(
      Errno.vanishing, action, place.path,
      place.directory.descriptor.nextEntries { entries.append($0) }) ?? false
  }
}

extension Errno {
  /// What was there a moment ago is there no more.
  static let vanishing: [Errno] = [.noSuchFile, .staleHandle]
  /// The same for what was a directory then.
  static let noDirectory: [Errno] = vanishing + [.notDirectory, .tooManyLinks]

  var isVanishing: Bool { Self.vanishing.contains(self) }
}

/// Calls the kernel; what it refuses becomes an error that names the entry.
func reporting<Result: ~Copyable>(
  _ action: String, _ path: @autoclosure () -> TreePath,
  _ call: @autoclosure () throws(Errno) -> Result
) throws(TreeError) -> Result {
  do throws(Errno) {
    return try call()
  } catch {
    throw TreeError(action: action, path: path(), reason: .refused(error))
  }
}

/// The same for a call that may fail with certain errors.
///
/// - Returns: nil if it did.
func reportingUnless<Result: ~Copyable>(
  _ errors: [Errno], _ action: String, _ path: @autoclosure () -> TreePath,
  _ call: @autoclosure () throws(Errno) -> Result
) throws(TreeError) -> Result? {
  try reporting(action, path(), tolerating(errors, try call()))
}
