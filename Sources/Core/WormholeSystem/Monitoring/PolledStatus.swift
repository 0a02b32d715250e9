/// The status of a polled file, or of a polled directory and the few files in it, at a look: each
/// change after it makes it another one.
struct PolledStatus: Sendable {
  /// A directory with more entries is looked at completely each time.
  private static let most = 8

  /// The polled file or directory first.
  private var files: [(path: String, status: FileStatus)] = []

  /// - Returns: Nil if another change may leave the times as they are, as in one clock tick.
  init?(_ file: borrowing FileDescriptor) throws(Errno) {
    guard try enter(file.status(), at: "") else { return nil }
  }

  /// Determines the status of a directory on a local file system.
  ///
  /// - Parameters:
  ///   - directory: Open at the path.
  ///   - includesFiles: Whether the times of the files in it matter, too.
  /// - Returns: Nil as the other initializer; also if it has too many entries.
  init?(
    _ directory: borrowing FileDescriptor, at path: String, includesFiles: Bool
  ) throws(Errno) {
    guard try enter(directory.status(), at: path) else { return nil }
    guard includesFiles else { return }
    let readable = try FileDescriptor.open(".", at: directory.rawValue, [.readOnly, .directory])
    var entries: [FileDescriptor.Entry] = []
    while try readable.nextEntries({ entries.append($0) }) {
      guard entries.count <= Self.most else { return nil }
    }
    for entry in entries where entry.isDirectory != true {
      let status = try fileStatus(entry.name, at: directory.rawValue)
      guard enter(status, at: path + "/" + entry.name.text) else { return nil }
    }
  }

  private mutating func enter(_ status: FileStatus, at path: String) -> Bool {
    files.append((path, status))
    return status.sinceChange > .seconds(1)
  }

  /// How long ago the last change was.
  var sinceChange: Duration { files.lazy.map(\.status.sinceChange).min() ?? .zero }

  /// Returns whether an open file still has the status.
  func isCurrent(_ file: borrowing FileDescriptor) throws(Errno) -> Bool {
    try file.status() == files[0].status
  }

  /// Returns whether a directory and its files still have the status.
  func isCurrent() throws(Errno) -> Bool {
    for file in files where try fileStatus(file.path) != file.status { return false }
    return true
  }
}
