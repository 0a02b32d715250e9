import SystemCalls

/// The entries of a directory, as far as a report goes.
struct BoundedListing {
  let entries: [FileDescriptor.Entry]
  let isComplete: Bool

  /// - Returns: nil when there is no such directory.
  /// - Throws: `Errno`, also for what is no directory.
  init?(_ path: String, at directory: Int32, limit: Int) throws(Errno) {
    let open: FileDescriptor
    do throws(Errno) {
      open = try FileDescriptor.openBeneath(path, at: directory, [.readOnly, .directory])
    } catch {
      guard error == .noSuchFile else { throw error }
      return nil
    }
    var entries: [FileDescriptor.Entry] = []
    var more = true
    while more, entries.count <= limit { more = try open.nextEntries { entries.append($0) } }
    isComplete = !more
    self.entries = isComplete ? entries : Array(entries.prefix(limit))
  }
}
