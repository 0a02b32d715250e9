import Synchronization
package import WormholeSystem

/// The steps of a holder whose content is existing files, not bytes. Every step is a rename with
/// the lease's own descriptor at one end (rule 2), so none of them succeeds after a takeover.
extension Lease {
  /// - Returns: The name of an empty directory in the lease.
  package func makeDirectory() throws -> String {
    let name = nextEntry()
    try failingAsLost {
      () throws(Errno) in
      try site.home.makeDirectoryIfMissing(name, at: held.descriptor.rawValue, staging: nil)
    }
    return name
  }

  /// Moves an entry into the lease.
  ///
  /// - Parameters:
  ///   - name: The entry in the directory.
  ///   - directory: An open directory; by default the site's own, seen from the lease.
  ///   - entry: Its name in the lease; by default one that declares this holder.
  /// - Returns: Its name in the lease, or nil if there is no such entry.
  /// - Throws: `leaseLost`.
  package func takeIn(
    _ name: String, at directory: Int32? = nil, as entry: String? = nil
  ) throws -> String? {
    let entry = entry ?? nextEntry()
    let held = held.descriptor.rawValue
    let source = directory == nil ? site.layout.fromHeld(name) : name
    if try ifPresent(rename(source, at: directory ?? held, to: entry, at: held)) != nil {
      return entry
    }
    if try self.held.isRemoved() { throw lost() }
    return nil
  }

  /// Moves a directory out of the lease to a free name.
  package func moveOut(_ entry: String, toFree name: String) throws {
    try failingAsLost { () throws(Errno) in
      let held = held.descriptor.rawValue
      try rename(entry, at: held, to: site.layout.fromHeld(name), at: held)
    }
  }

  /// Ends the lease of a transient site, and removes it. The next holder creates it again, and a
  /// waiter finds that it was removed.
  ///
  /// - Parameter hasNote: Whether there is a note about a takeover.
  /// - Returns: False if the lease was taken over, or is not empty.
  package func dismantle(hasNote: Bool) throws(Errno) -> Bool {
    precondition(site.layout.isTemporary, "the lease of a value stays")
    let directory = try site.directory()
    // If it is a successor's by now, and still empty, the successor finds that it was removed.
    guard try removeIfEmpty(site.layout.held, at: directory) else { return false }
    return hasNote ? try removeIfPresent(site.layout.taken, at: directory) : true
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

extension LeaseSite {
  /// Returns whether an entry of a transient site says nothing about a present or former user.
  package func isOfNobody(_ name: FileName) -> Bool {
    name.text == layout.held || isNote(name)
  }

  /// Returns whether an entry of a transient site belongs to the lease.
  package func isPart(_ name: FileName) -> Bool {
    isOfNobody(name) || name.hasPrefix(Self.brokenPrefix) || name.hasPrefix(Self.preparedPrefix)
  }

  /// Returns whether an entry of a transient site is a note about a takeover.
  package func isNote(_ name: FileName) -> Bool { name.text == layout.taken }
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
      try removeDirectory(site.layout.lease, at: directory)
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
