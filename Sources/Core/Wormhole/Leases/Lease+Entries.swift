import Synchronization
package import WormholeSystem

extension Lease {
  /// Moves an entry of the site's directory into the lease.
  ///
  /// - Returns: Its name in the lease, or nil if there is no such entry.
  /// - Throws: `leaseLost`.
  package func takeIn(_ name: String) throws -> String? {
    let entry = nextEntry()
    let held = held.descriptor.rawValue
    if try ifPresent(rename(site.layout.fromHeld(name), at: held, to: entry, at: held)) != nil {
      return entry
    }
    if try self.held.isRemoved() { throw lost() }
    return nil
  }

  /// Finishes the work that the holders before this one have left.
  ///
  /// This holder has declared itself by now. So if it ends in the middle, the next one finds its
  /// declaration, or a lease that is not clean, and begins here, too.
  func begin(after remains: LeaseRequest.Remains) throws {
    try site.home.settle(self)
    try site.removeLeftovers(remains.entries, in: held)
    if !remains.isClean { try site.markClean(held) }
  }

  /// Runs a step that finds nothing once the lease was taken over.
  package func failingAsLost<Result>(_ body: () throws(Errno) -> Result) throws -> Result {
    guard let result = try ifPresent(body()) else { throw lost() }
    return result
  }
}

extension Lease {
  /// Removes the lease itself, with its parts that have no user.
  ///
  /// - Returns: False if another process has arrived.
  package func removeSite() throws(Errno) -> Bool {
    let directory = try site.directory()
    // The kept version of this boot, which a late holder must not remove from a successor.
    try dropKept()
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
      try removeDirectory(LeaseSite.lease, at: directory)
      return true
    } catch {
      guard [.noSuchFile, .directoryNotEmpty, .alreadyExists].contains(error) else { throw error }
      return false
    }
  }

  // A note, or a version of an earlier boot, which means nothing without a value.
  private static func isOfNobody(_ name: FileName) -> Bool {
    name.text == LeaseSite.note
      || name.hasPrefix(KeptVersion.prefix) && name.text != KeptVersion.name
  }
}
