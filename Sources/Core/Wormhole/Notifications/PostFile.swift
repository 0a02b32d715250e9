package import WormholeSystem

/// The mechanism of a notification: its directory holds one empty file whose name is new after
/// every post, `bell-<nonce>`; that name on disk is older than the word post.
///
/// A post renames that file to a name that was never used. The rename is atomic, possible on a
/// full disk, an inotify event, and visible afterwards, so that a check, or an observer whose
/// events were lost, sees that there was a post. If two processes post at once, the one whose
/// rename does not find the old name knows that another post happened during its own, and that post
/// counts for both. A crash leaves the old name or the new one.
///
/// A process that posted last posts again by one rename: see `LastPost`.
package struct PostFile: PostStore {
  let directory: NamedDirectory
  private let last: LastPost
  private static let prefix = "bell-"

  /// `notifications/<name>/`.
  package static let parts = [
    ContainerPart(each: .post, prefix, copied: .meaning),
    ContainerPart(ValueFile.name(of: .notification), .content, copied: .meaning),
    .lease, .identifier(copied: .nothing),
  ]

  package init(root: ContainerRoot, name: String) {
    directory = NamedDirectory(root: root, kind: .notification, identifier: name)
    last = root.memory(LastPosts.self).names.memory(of: directory.relativePath)
  }

  package func post() throws { try directory.root.changing(postOnce) }

  private func postOnce() throws {
    let container = try directory.root.handle()
    guard try !last.rename(at: container.descriptor.rawValue) else { return }
    for _ in 0..<renameRaceLimit {
      let place = try directory.openOrMake()
      // Nil if a sweep has removed the directory meanwhile.
      if try ifPresent(post(at: place)) == true { return }
    }
    throw Errno.noSuchFile
  }

  /// - Returns: False if a sweep has removed the file meanwhile and no process has posted.
  private func post(at place: borrowing FileDescriptor) throws(Errno) -> Bool {
    let posts = try names(in: place)
    let new = Self.prefix + Nonce.nextWithAllDigits()
    guard let first = posts.first else {
      _ = try directory.root.access.createFile(new, at: place.rawValue)
      remember(new)
      return true
    }
    guard
      try ifPresent(rename(first.text, at: place.rawValue, to: new, at: place.rawValue)) != nil
    else {
      // Another process has posted meanwhile, or has removed this file as surplus after its post. The
      // rest must not be removed here, because only a process that has posted leaves a file there for
      // certain.
      return try !names(in: place).isEmpty
    }
    remember(new)
    // Two first posts at once have created two files; one is enough.
    for surplus in posts.dropFirst() { try removeIfPresent(surplus, at: place.rawValue) }
    return true
  }

  private func remember(_ name: String) { last.remember(directory.relativePath + "/" + name) }

  // A name is never used again, so a post since the mark stays.
  package func remove(_ mark: PostMark) throws -> Bool {
    guard let place = try directory.open() else { return true }
    for name in mark.marks {
      guard try removeIfPresent(name, at: place.rawValue) else { return false }
    }
    return true
  }

  package static func isName(_ name: FileName) -> Bool { name.hasPrefix(prefix) }

  package func mark() throws -> PostMark {
    for _ in 0..<renameRaceLimit {
      let container = try directory.root.handle()
      let found = try directory.withOpenDirectory { try mark(at: $0, container) }
      // Otherwise it was replaced during the look, which then may have been at the other one.
      if directory.root.lastHandle === container { return found ?? PostMark(in: container) }
    }
    throw Errno.staleHandle
  }

  private func mark(
    at place: borrowing FileDescriptor, _ container: ContainerRoot.Handle
  ) throws(Errno) -> PostMark {
    var mark = PostMark(Set(try names(in: place)), in: container)
    guard let begin = container.namedSince else { return mark }
    for name in mark.marks {
      let status = try ifPresent(fileStatus(name, at: place.rawValue))
      if let status, status.changedMoment < begin { mark.older.insert(name) }
    }
    return mark
  }

  private func names(in place: borrowing FileDescriptor) throws(Errno) -> [FileName] {
    let readable = try FileDescriptor.open(".", at: place.rawValue, [.readOnly, .directory])
    return try readable.entries().map(\.name).filter { $0.hasPrefix(Self.prefix) }
  }

  package var path: String { directory.path }

  package func listen(_ signal: @escaping @Sendable () -> Void) throws -> any PostWatching {
    PostFileWatch(posts: self, watch: try directory.watch(signal))
  }
}

private struct PostFileWatch: PostWatching {
  let posts: PostFile
  let watch: Watch

  var detection: ChangeDetection { watch.detection }

  func cancel() { watch.cancel() }

  func mark(ofNow: Bool) throws -> PostMark { try posts.mark() }
}

/// The implementation of a notification: a file that is renamed, or a key on etcd.
///
/// Errors of the kernel and of etcd are thrown unchanged; the callers describe them.
package protocol PostStore: Located {
  func post() throws
  func mark() throws -> PostMark

  /// Forgets that it was posted.
  ///
  /// - Parameter mark: The mark at the time of the decision.
  /// - Returns: False, and nothing has changed, if a process has posted since.
  func remove(_ mark: PostMark) throws -> Bool

  /// Listens from now on.
  ///
  /// - Parameter signal: Called when there may have been a post, on a thread that must not wait.
  func listen(_ signal: @escaping @Sendable () -> Void) throws -> any PostWatching
}

/// A notification that is being listened to.
package protocol PostWatching: Watching {
  /// - Parameter ofNow: Whether posts count that ended before this call but caused no signal yet.
  func mark(ofNow: Bool) throws -> PostMark
}

/// The marks of a notification at one moment. Each post leaves a mark that was never there before,
/// and a notification that was never posted has none.
package struct PostMark: Sendable {
  package let marks: Set<FileName>
  /// The container's directory; nil for a container elsewhere.
  private let container: ContainerRoot.Handle?
  /// The marks that were left there before the container's path named this directory.
  var older: Set<FileName> = []

  package init(_ marks: Set<FileName> = [], in container: ContainerRoot.Handle? = nil) {
    self.marks = marks
    self.container = container
  }

  /// Whether there was a post at this place since another mark. Marks that are gone, perhaps with
  /// the container, are no post; nor are those in a directory that has taken the container's place.
  func hasPost(since last: PostMark) -> Bool {
    let new = container === last.container ? marks : marks.subtracting(older)
    return !new.isSubset(of: last.marks)
  }
}

/// The engine's operation for notifications.
package protocol PostEngine: ContainerEngine {
  func posts(_ name: String) -> any PostStore
}

extension DirectoryEngine: PostEngine {
  package func posts(_ name: String) -> any PostStore { PostFile(root: root, name: name) }
}
