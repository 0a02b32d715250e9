/// Why an action on an item, or on an entry below it, failed.
package struct TreeError: Error, Equatable, Sendable {
  /// The action, as a verb: "copy", "remove", "list".
  package let action: String
  /// The entry, relative to the directory that holds the item.
  package let path: TreePath
  package let reason: Reason

  package enum Reason: Equatable, Sendable {
    /// The kernel refused a call.
    case refused(Errno)
    /// The entry is of a kind that cannot be copied.
    case unsupported(FileStatus.Kind)
    /// The entry is a directory with another file system mounted on it.
    case mountPoint
  }

  package init(action: String, path: TreePath, reason: Reason) {
    self.action = action
    self.path = path
    self.reason = reason
  }
}

extension TreeError: CustomStringConvertible {
  /// One sentence: "cannot ACTION PATH: REASON".
  package var description: String { "cannot \(action) \(path.text): \(explanation)" }

  package var explanation: String {
    switch reason {
    case .refused(let error): error.description
    case .unsupported(let kind): "a \(kind) has no content that could be copied; move it elsewhere"
    case .mountPoint: "another file system is mounted on it; unmount it first"
    }
  }
}

/// The path of an entry below some directory, byte for byte; empty for that directory itself.
package struct TreePath: Hashable, Sendable {
  package let bytes: [UInt8]

  package init(bytes: [UInt8] = []) {
    self.bytes = bytes
  }

  package init(_ name: FileName) {
    bytes = name.bytes
  }

  /// The path as text; repaired where it is not valid UTF-8, so only for display.
  package var text: String { String(decoding: bytes, as: UTF8.self) }

  package func appending(_ name: FileName) -> TreePath {
    guard !bytes.isEmpty else { return TreePath(name) }
    return TreePath(bytes: bytes + [UInt8(ascii: "/")] + name.bytes)
  }

  /// The path without its last component.
  package func parent(ofNameWith length: Int) -> TreePath {
    TreePath(bytes: Array(bytes.dropLast(length + 1)))
  }
}

extension TreeError {
  /// Whether the error says nothing about other entries.
  package var isOfOneEntry: Bool {
    switch reason {
    case .refused(let error): error.isOfOneEntry
    case .unsupported: true
    case .mountPoint: false
    }
  }
}

extension Errno {
  /// The errors of an entry that has just vanished.
  package static let vanishing: [Errno] = [.noSuchFile, .staleHandle]
  /// The same for an entry that was a directory.
  package static let noDirectory: [Errno] = vanishing + [.notDirectory, .tooManyLinks]

  package var isVanishing: Bool { Self.vanishing.contains(self) }
}

/// Calls the kernel; a refusal becomes an error that names the entry.
package func reporting<Result: ~Copyable>(
  _ action: String, _ path: @autoclosure () -> TreePath,
  _ call: @autoclosure () throws(Errno) -> Result
) throws(TreeError) -> Result {
  do throws(Errno) {
    return try call()
  } catch {
    throw TreeError(action: action, path: path(), reason: .refused(error))
  }
}
