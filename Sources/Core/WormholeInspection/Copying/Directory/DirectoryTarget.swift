import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeToolkit

/// Writes keys into a directory beside the new container's, which gets its name as the last step.
final class DirectoryTarget: CopyTarget {
  private let path: String
  private let staged: StagedDirectory
  let container: SharedContainer
  private let isDurable: Bool
  /// The queue whose keys are being written.
  private var queue: (name: String, isOwn: Bool, writer: QueueWriter)?

  var directory: String { staged.path }

  var root: ContainerRoot { container.root }

  /// Takes the place of an empty directory. If a group's members share it, they share the
  /// container.
  ///
  /// - Throws: `WormholeError.nameCollision` if something else is at the path.
  init(path: String, group: String?, isDurable: Bool = true) throws {
    self.isDurable = isDurable
    self.path = try SharedContainer.absolute(path)
    let former = try Self.emptyDirectory(at: self.path)
    try ContainerLocation.create(parentDirectory(of: self.path))
    staged = try StagedDirectory(
      "\(self.path).copying-\(Nonce.next())", "copy the container", sharedAs: former)
    do {
      container = try SharedContainer(path: staged.path, group: group, access: nil)
    } catch {
      staged.remove()
      throw error
    }
  }

  private static func emptyDirectory(at path: String) throws -> FileStatus? {
    try reporting("copy the container", path: path) {
      guard let status = try ifPresent(fileStatus(path)) else { return nil }
      guard status.kind == .directory,
        try FileDescriptor.open(path, [.readOnly, .directory]).entries().isEmpty
      else {
        throw WormholeError(
          .nameCollision, "copy the container", path: path, reason: "something is there already",
          remedy: "name a directory that does not exist, or an empty one")
      }
      return status
    }
  }

  // MARK: Writing

  func put(_ item: CopiedKey) throws {
    switch item.letter {
    case .value, .state: try putValue(item.value, file(of: item), in: directory(of: item))
    case .post: try PostFile(root: root, name: item.name).post()
    case .presence, .consumer:
      guard item.part == CopiedKey.last else { return }
      let place = try directory(of: item).openOrMake()
      try root.access.createFile(file(of: item), at: place.rawValue).writeAll(item.value)
    case .queue: try writer(for: item).put(item.part, item.value)
    case .log: try putLog(item)
    }
  }

  /// Removes written keys, except a queue's.
  func remove(_ item: CopiedKey) throws {
    guard item.letter != .queue, let place = try directory(of: item).open() else { return }
    if item.letter == .post {
      let posts = PostFile(root: root, name: item.name)
      _ = try posts.remove(posts.mark())
    } else {
      try removeIfPresent(file(of: item), at: place.rawValue)
    }
  }

  private func directory(of item: CopiedKey) -> NamedDirectory {
    NamedDirectory(root: root, kind: item.kind, identifier: item.name)
  }

  private func file(of item: CopiedKey) -> String {
    let parts = root.parts(of: item.kind.primitive)
    guard let name = parts.first(where: { $0.copied == .meaning && $0.name != nil })?.name else {
      preconditionFailure("each letter but a post's and a queue's has a file")
    }
    return name
  }

  private func putValue(
    _ stamped: [UInt8], _ name: String, in directory: NamedDirectory
  ) throws {
    var bytes = Array(stamped.dropFirst(CopiedKey.stampBytes))
    // It was removed.
    guard !bytes.isEmpty else { return }
    let record = PublicationRecord.take(from: &bytes)
    let place = try directory.openOrMake()
    let file = try root.access.createFile(name, at: place.rawValue)
    try root.access.write(PublishedContent(bytes, record), to: file)
  }

  private func putLog(_ item: CopiedKey) throws {
    guard !item.part.isEmpty else {
      let log = container.log(item.name).value
      return try putValue(item.value, log.fileName, in: log.directory)
    }
    // A directory has no head: the last message is found by its file.
    guard let number = item.messageNumber else { return }
    let place = try directory(of: item).openOrMake()
    _ = try root.access.makeDirectoryIfMissing(LogDirectory.entries, at: place.rawValue)
    let file = try root.access.createFile(LogDirectory.path(number), at: place.rawValue)
    try file.writeAll(item.value)
    var bytes = item.value
    // The time of its file is the time of the message.
    guard let publisher = PublicationRecord.take(from: &bytes)?.publisher else { return }
    let (seconds, nanoseconds) = max(0, publisher.nanosecondsSince1970)
      .quotientAndRemainder(dividingBy: 1_000_000_000)
    try file.setModified(seconds: seconds, nanoseconds: nanoseconds)
  }

  private func writer(for item: CopiedKey) throws -> QueueWriter {
    if let queue, queue.name == item.name, queue.isOwn == item.isOwn { return queue.writer }
    try finishQueue()
    let place = try PlainQueue(container: container, name: item.name, kind: item.kind).openOrMake()
    let writer = try QueueWriter(place)
    queue = (item.name, item.isOwn, writer)
    return writer
  }

  private func finishQueue() throws {
    try queue?.writer.finish()
    queue = nil
  }

  // MARK: The end

  func finish() throws {
    try finishQueue()
    try reporting("copy the container", path: path) {
      let parent = try staged.openParent()
      var access = try TreeAccess(in: root, path: TreePath(staged.name))
      try access.walk("set the mode", through: staged.root, path: access.path)
      if isDurable {
        try TreeSynchronization.run(staged.name, fileStatus(staged.path), at: parent.rawValue)
      }
      // An empty directory of this name gives way.
      try rename(staged.path, at: Directory.current, to: path, at: Directory.current)
      if isDurable { try parent.synchronize() }
    }
  }

  func abandon() { staged.remove() }
}

/// - Parameter path: Absolute.
package func parentDirectory(of path: String) -> String {
  let end = path.lastIndex(of: "/") ?? path.startIndex
  return end == path.startIndex ? "/" : String(path[..<end])
}

/// A directory for the time of one piece of work. Its name says its purpose, and no other program
/// mistakes it for its own.
struct StagedDirectory {
  let path: String
  let root: SharedDescriptor

  /// - Parameter former: a directory; it has the same group if members of that share it.
  init(_ path: String, _ action: String, sharedAs former: FileStatus? = nil) throws {
    self.path = path
    root = try reporting(action, path: path) {
      try makeDirectory(path, mode: 0o700)
      do {
        let open = try FileDescriptor.open(path, [.readOnly, .directory, .noFollow])
        if let former, ContainerAccess(of: former) == .group {
          try open.setOwner(Program.effectiveUser, group: former.group)
          try open.setPermissions(former.permissions)
        }
        return SharedDescriptor(open)
      } catch {
        // The error that is thrown below is the one to report.
        try? removeDirectory(path)
        throw error
      }
    }
  }

  var name: FileName { FileName(path.split(separator: "/").last ?? "") }

  func openParent() throws(Errno) -> FileDescriptor {
    try .open(parentDirectory(of: path), [.readOnly, .directory])
  }

  func remove() {
    do {
      let parent = try openParent()
      try TreeRemoval().remove(name, at: parent.rawValue)
    } catch {
      // The failure of the work itself has to be reported.
      return
    }
  }
}
