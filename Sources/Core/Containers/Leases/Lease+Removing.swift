import Synchronization
package import SystemCalls

extension Lease {
  /// Removes the lease itself, with its parts that have no user.
  ///
  /// - Returns: False if another process has arrived.
  package func removeSite() throws(Errno) -> Bool {
    let directory = try site.directory()
    // The kept version of this start of the machine, which a late holder must not remove from a
    // successor.
    try dropKept(of: nil)
    do throws(Errno) {
      for entry in try held.descriptor.entries() {
        try removeFile(entry.name, at: held.descriptor.rawValue)
      }
      isDeclared.store(false, ordering: .relaxed)
      // If it is a successor's by now, and still empty, the successor finds that it was removed.
      try removeDirectory(site.layout.held, at: directory)
      let lease = try site.openLeaseDirectory()
      for entry in try lease.remainingEntries() where Self.isOfNobody(entry.name) {
        try removeFile(entry.name, at: lease.rawValue)
      }
      try removeDirectory(site.layout.lease, at: directory)
      return true
    } catch {
      guard [.noSuchFile, .directoryNotEmpty, .alreadyExists].contains(error) else { throw error }
      return false
    }
  }

  // A note, or a version of an earlier start of the machine, which means nothing without a value.
  private static func isOfNobody(_ name: FileName) -> Bool {
    name.text == "taken.plist"
      || name.hasPrefix(KeptVersion.prefix) && name.text != KeptVersion.name
  }
}
