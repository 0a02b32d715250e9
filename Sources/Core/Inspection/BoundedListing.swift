import SystemCalls

/// The entries of a directory, up to the limit of a report.
struct BoundedListing {
  let entries: [FileDescriptor.Entry]
  let isComplete: Bool

  /// - Returns: nil if there is no such directory.
  /// - Throws: `Errno`, also if it is not a directory.
  init?(_ path: String, at directory: Int32, limit: Int) throws(Errno) {
    guard
      let open = try ifPresent(
        FileDescriptor.openBeneath(path, at: directory, [.readOnly, .directory]))
    else { return nil }
    var entries: [FileDescriptor.Entry] = []
    var more = true
    while more, entries.count <= limit { more = try open.nextEntries { entries.append($0) } }
    isComplete = !more
    self.entries = isComplete ? entries : Array(entries.prefix(limit))
  }
}
