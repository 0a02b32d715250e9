package import WormholeSystem

/// The mechanism of a notification: its directory holds one empty file whose name is new after
/// every post, `bell-<nonce>`.
///
/// Ringing renames that file to a name that was never used. The rename is atomic, possible on a
/// full disk, an inotify event, and visible afterwards, so that a check, or an observer whose
/// events were lost, sees that there was a post. If two processes post at once, the one whose
/// rename does not find the old name knows that another post happened during its own, and that post
/// rings for both. A crash leaves the old name or the new one.
///
/// A process that posted last posts again by one rename: see `LastBell`.
package struct Bell: BellStore {
  let directory: NamedDirectory
  private let last: LastBell
  private static let prefix = "bell-"

  /// `notifications/<name>/`.
  static let parts = [
    ContainerPart(each: .bell, prefix, copied: .meaning),
    ContainerPart(ValueFile.name(of: .notification), .content, copied: .meaning),
    .lease, .identifier(copied: .nothing),
  ]

  package init(root: ContainerRoot, name: String) {
    directory = NamedDirectory(root: root, kind: .notification, identifier: name)
    last = root.lastBells.memory(of: directory.relativePath)
  }

  package func ring() throws { try directory.root.changing(ringOnce) }

  private func ringOnce() throws {
    let container = try directory.root.handle()
    guard try !last.rename(at: container.descriptor.rawValue) else { return }
    for _ in 0..<renameRaceLimit {
      let place = try directory.openOrMake()
      // Nil if a sweep has removed the directory meanwhile.
      if try ifPresent(ring(at: place)) == true { return }
    }
    throw Errno.noSuchFile
  }

  /// - Returns: False if a sweep has removed the bell meanwhile and no process has rung.
  private func ring(at place: borrowing FileDescriptor) throws(Errno) -> Bool {
    let bells = try names(in: place)
    let new = Self.prefix + Nonce.nextWithAllDigits()
    guard let first = bells.first else {
      _ = try directory.root.access.createFile(new, at: place.rawValue)
      remember(new)
      return true
    }
    guard
      try ifPresent(rename(first.text, at: place.rawValue, to: new, at: place.rawValue)) != nil
    else {
      // Another post has rung meanwhile, or has removed this file as surplus after ringing. The
      // rest must not be removed here, because only a process that has rung leaves a file there for
      // certain.
      return try !names(in: place).isEmpty
    }
    remember(new)
    // Two first posts at once have created two files; one is enough.
    for surplus in bells.dropFirst() { try removeIfPresent(surplus, at: place.rawValue) }
    return true
  }

  private func remember(_ name: String) { last.remember(directory.relativePath + "/" + name) }

  // A name is never used again, so a post since the sound stays.
  package func remove(_ sound: BellSound) throws -> Bool {
    guard let place = try directory.open() else { return true }
    for name in sound.marks {
      guard try removeIfPresent(name, at: place.rawValue) else { return false }
    }
    return true
  }

  package static func isName(_ name: FileName) -> Bool { name.hasPrefix(prefix) }

  package func sound() throws -> BellSound {
    for _ in 0..<renameRaceLimit {
      let container = try directory.root.handle()
      let found = try directory.look { try sound(at: $0, container) }
      // Otherwise it was replaced during the look, which then may have been at the other one.
      if directory.root.lastHandle === container { return found ?? BellSound(in: container) }
    }
    throw Errno.staleHandle
  }

  private func sound(
    at place: borrowing FileDescriptor, _ container: ContainerRoot.Handle
  ) throws(Errno) -> BellSound {
    var sound = BellSound(Set(try names(in: place)), in: container)
    guard let begin = container.namedSince else { return sound }
    for name in sound.marks {
      let status = try ifPresent(fileStatus(name, at: place.rawValue))
      if let status, status.changedMoment < begin { sound.older.insert(name) }
    }
    return sound
  }

  private func names(in place: borrowing FileDescriptor) throws(Errno) -> [FileName] {
    let readable = try FileDescriptor.open(".", at: place.rawValue, [.readOnly, .directory])
    return try readable.entries().map(\.name).filter { $0.hasPrefix(Self.prefix) }
  }

  package var path: String { directory.path }

  package func listen(_ signal: @escaping @Sendable () -> Void) throws -> any BellWatching {
    FileBellWatch(bell: self, watch: try directory.watch(signal))
  }
}

private struct FileBellWatch: BellWatching {
  let bell: Bell
  let watch: Watch

  var detection: ChangeDetection { watch.detection }

  func cancel() { watch.cancel() }

  func sound(ofNow: Bool) throws -> BellSound { try bell.sound() }
}

/// The implementation of a notification: a file that is renamed, or a key on etcd.
///
/// Errors of the kernel and of etcd are thrown unchanged; the callers put them into a sentence.
package protocol BellStore: Sendable {
  /// The directory's path, or a description of the key.
  var path: String { get }

  /// Posts.
  func ring() throws
  func sound() throws -> BellSound

  /// Forgets that it was posted.
  ///
  /// - Parameter sound: The sound at the time of the decision.
  /// - Returns: False, and nothing has changed, if a process has posted since.
  func remove(_ sound: BellSound) throws -> Bool

  /// Listens from now on.
  ///
  /// - Parameter signal: Called when there may have been a post, on a thread that must not wait.
  func listen(_ signal: @escaping @Sendable () -> Void) throws -> any BellWatching
}

/// A bell that is being listened to.
package protocol BellWatching: Watching {
  /// Returns the sound.
  ///
  /// - Parameter ofNow: Whether posts count that ended before this call but caused no signal yet.
  func sound(ofNow: Bool) throws -> BellSound
}

/// The marks of a bell at one moment. Each post leaves a mark that was never there before, and a bell that was
/// never rung has none.
package struct BellSound: Sendable {
  package let marks: Set<FileName>
  /// The container's directory; nil for a container elsewhere.
  private let container: ContainerRoot.Handle?
  /// The marks that were left there before the container's path named this directory.
  var older: Set<FileName> = []

  package init(_ marks: Set<FileName> = [], in container: ContainerRoot.Handle? = nil) {
    self.marks = marks
    self.container = container
  }

  /// Whether there was a post at this place since another sound. That the marks are gone, perhaps with the
  /// container, was no post; nor were those in a directory that has taken the container's place.
  func hasRung(since last: BellSound) -> Bool {
    let new = container === last.container ? marks : marks.subtracting(older)
    return !new.isSubset(of: last.marks)
  }
}
