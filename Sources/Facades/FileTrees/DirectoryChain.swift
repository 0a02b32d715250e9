import SystemCalls

/// The directories from the root of a tree down to one of them, of which only the lowest are open:
/// a tree may be deeper than a process may have descriptors.
///
/// A directory that was closed is opened again as ".." of the one below it, and believed only when it
/// is the same one: someone may have moved the lower one elsewhere meanwhile.
struct DirectoryChain {
  private struct Level {
    let name: FileName
    let status: FileStatus
    var open: SharedDescriptor?
  }

  /// How many descriptors a chain keeps open besides its root.
  private static let limit = 16

  private let root: SharedDescriptor
  private var levels: [Level] = []

  init(root: SharedDescriptor) {
    self.root = root
  }

  /// The lowest directory; nil when it was lost on the way back up.
  var current: SharedDescriptor? { levels.last.map(\.open) ?? root }

  /// Goes down into a directory that was opened in the current one.
  mutating func descend(_ name: FileName, into directory: SharedDescriptor) throws(Errno) {
    let status = try directory.descriptor.status()
    levels.append(Level(name: name, status: status, open: directory))
    if levels.count > Self.limit { levels[levels.count - Self.limit - 1].open = nil }
  }

  /// Goes up to the directory above; it is lost (`current` is nil) when it is not there any more.
  mutating func ascend() {
    guard let left = levels.popLast() else { preconditionFailure("above the root is nothing") }
    guard let top = levels.last, top.open == nil else { return }
    levels[levels.count - 1].open = reopened(top, above: left) ?? walked()
  }

  private func reopened(_ level: Level, above lower: Level) -> SharedDescriptor? {
    guard let lower = lower.open else { return nil }
    do throws(Errno) {
      return try checked(
        try FileDescriptor.open("..", at: lower.descriptor.rawValue, [.readOnly, .directory]), level
      )
    } catch {
      // The way from the root may still be there.
      return nil
    }
  }

  // All the names from the root down to the current directory.
  private func walked() -> SharedDescriptor? {
    do throws(Errno) {
      var place = root
      for level in levels {
        let below = try FileDescriptor.open(
          level.name, at: place.descriptor.rawValue, [.readOnly, .directory, .noFollow])
        guard let next = try checked(below, level) else { return nil }
        place = next
      }
      return place
    } catch {
      // Removed, or not to be opened any more: for the walk it has vanished.
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
