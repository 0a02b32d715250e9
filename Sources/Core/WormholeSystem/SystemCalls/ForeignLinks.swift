import Glibc
import Synchronization
import WormholeShims

/// Whether other users may put symbolic links into the directories in which this process works.
///
/// A call such as renameat(2) follows a link in the directories of a path; only the last name is never
/// followed. In a directory that a Unix group shares, another member could thus lead a process out
/// of it, to files that the member cannot access. A process that has opened such a directory takes
/// each path below a descriptor step by step. Other processes only pay for reading this flag.
package enum ForeignLinks {
  private static let areExpected = Atomic(false)

  /// From now on no path below a descriptor is followed through a link, in the whole process.
  package static func expect() { areExpected.store(true, ordering: .relaxed) }

  package static var areRefused: Bool { areExpected.load(ordering: .relaxed) }
}

extension PathText {
  /// Lends a path, and the directory from which it counts, to a call that follows links in its
  /// directories. If links of other users are expected, it gets the path's last name, and the
  /// directory that contains it; a link on the way there is `ENOTDIR`.
  ///
  /// - Complexity: two more calls for each named directory of the path, if links are expected. A
  ///   path whose directories are all ".." has no place for a link.
  @inline(__always)
  func withCPath(
    at directory: Int32, _ body: (Int32, UnsafePointer<CChar>) -> Int32
  ) -> Int32 {
    withCPath { path in
      guard ForeignLinks.areRefused, directory != AT_FDCWD else { return body(directory, path) }
      let length = csys_parent(path)
      guard length > 0 else { return body(directory, path) }
      let parent = csys_open_parent(directory, path, length)
      guard parent != -1 else { return -1 }
      let result = body(parent, path + length)
      let failure = errno
      close(parent)
      errno = failure
      return result
    }
  }
}
