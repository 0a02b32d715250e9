package import SystemCalls

/// Why something could not be done to an item or an entry below it.
package struct TreeError: Error, Equatable, Sendable {
  /// What was being done, as a verb: "copy", "remove", "list".
  package let action: String
  /// The entry, seen from the directory that holds the item.
  package let path: TreePath
  package let reason: Reason

  package enum Reason: Equatable, Sendable {
    /// The kernel refused a call.
    case refused(Errno)
    /// The entry is of a kind that cannot be copied.
    case unsupported(FileStatus.Kind)
    /// The entry is a directory that another file system is mounted on.
    case mountPoint
  }
}

extension TreeError: CustomStringConvertible {
  /// One sentence: "cannot ACTION PATH: REASON".
  package var description: String { "cannot \(action) \(path.text): \(explanation)" }

  private var explanation: String {
    switch reason {
    case .refused(let error): error.description
    case .unsupported(let kind): "a \(kind) has no content that could be copied; move it elsewhere"
    case .mountPoint: "another file system is mounted on it; unmount it first"
    }
  }
}
