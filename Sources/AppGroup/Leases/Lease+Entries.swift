import Synchronization
package import SystemCalls

/// The steps of a holder whose content is not bytes but files that are somewhere already: every
/// one is a rename with the lease's own descriptor at one end (rule 2), so none of them succeeds for
/// a holder that was overtaken.
extension Lease {
  /// Makes an empty directory in the lease.
  ///
  /// - Returns: its name there.
  package func makeDirectory() throws -> String {
    let name = nextEntry()
    try failingAsLost {
      () throws(Errno) in
      try site.home.makeDirectoryIfMissing(name, at: held.descriptor.rawValue, staging: nil)
    }
    return name
  }

  /// Moves something into the lease.
  ///
  /// - Parameters:
  ///   - name: what, in the directory.
  ///   - directory: an open directory; by default the site's own, seen from the lease.
  /// - Returns: its name in the lease; nil when there is no such thing.
  /// - Throws: `leaseLost`.
  package func takeIn(_ name: String, at directory: Int32? = nil) throws -> String? {
    let entry = nextEntry()
    let held = held.descriptor.rawValue
    do throws(Errno) {
      try rename(
        directory == nil ? site.layout.fromHeld + name : name, at: directory ?? held, to: entry,
        at: held)
    } catch {
      guard error == .noSuchFile else { throw error }
      if try self.held.isRemoved() { throw lost() }
      return nil
    }
    return entry
  }

  /// Moves something out of the lease.
  ///
  /// - Parameters:
  ///   - entry: its name in the lease.
  ///   - path: where to, seen from the site's directory.
  ///   - mode: what to do with what is there: with `.keep` and `.exchange` whichever of both applies
  ///     is found out, and what comes back is removed, a directory set aside.
  /// - Throws: `leaseLost`; nothing has changed then.
  package func moveOut(_ entry: String, to path: String, _ mode: RenameMode) throws {
    try moveOut(entry, as: path, mode)
  }

  /// Moves a directory out of the lease under a name that is free.
  package func moveOut(_ entry: String, toFree name: String) throws {
    try failingAsLost { () throws(Errno) in
      let held = held.descriptor.rawValue
      try rename(entry, at: held, to: site.layout.fromHeld + name, at: held)
    }
  }

  /// Puts away what is in the lease: a file is removed, a directory set aside.
  package func discard(_ entry: String) throws(Errno) {
    try discardOld(entry)
  }

  /// Ends the lease of a site that is passing, and removes it: whoever wants to hold it next makes
  /// it again, and whoever waits for it finds that it was taken away.
  ///
  /// - Parameter hasNote: whether there is a note of who took the lease away.
  /// - Returns: false when the lease was taken away, or there is something in it.
  package func dismantle(hasNote: Bool) throws(Errno) -> Bool {
    precondition(site.layout.isPassing, "the lease of a value stays")
    let directory = try site.directory()
    do throws(Errno) {
      // If this is a successor's by now, and still empty, it finds that it was taken away.
      try removeDirectory(site.layout.held, at: directory)
      if hasNote { try removeFile(site.layout.taken, at: directory) }
      return true
    } catch {
      guard [.noSuchFile, .directoryNotEmpty, .alreadyExists].contains(error) else { throw error }
      return false
    }
  }

  private func failingAsLost<Result>(_ body: () throws(Errno) -> Result) throws -> Result {
    do throws(Errno) {
      return try body()
    } catch {
      guard error == .noSuchFile else { throw error }
      throw lost()
    }
  }
}

extension LeaseSite {
  /// Whether an entry of a passing site says nothing of anybody who is or was here.
  package func isOfNobody(_ name: FileName) -> Bool {
    name.text == layout.held || isNote(name)
  }

  /// Whether an entry of a passing site belongs to the lease.
  package func isPart(_ name: FileName) -> Bool {
    isOfNobody(name)
      || [Self.brokenPrefix, Self.preparedPrefix, Self.waitingPrefix].contains {
        name.hasPrefix($0)
      }
  }

  /// Whether an entry of a passing site says who took the lease away.
  package func isNote(_ name: FileName) -> Bool { name.text == layout.taken }
}
