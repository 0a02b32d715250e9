import Synchronization
package import WormholeSystem

/// The steps of a holder that adds files beside existing ones, and replaces none.
extension Lease {
  /// Writes content into the lease, with the current time.
  ///
  /// - Parameter prepared: the same content, if it was written before the lease was taken.
  /// - Returns: its name there.
  package func stage(_ content: PublishedContent, _ prepared: PreparedContent?) throws -> String {
    let now = realTime()
    let directory = stagingPlace.directory
    guard let prepared else {
      let file = try takeStaged()
      try content.write(to: file)
      try file.setModified(seconds: now.seconds, nanoseconds: now.nanoseconds)
      return stagingPlace.name
    }
    let entry = nextEntry()
    try failingAsLost { () throws(Errno) in
      try rename(prepared.path, at: try site.directory(), to: entry, at: directory)
      try setModified(
        FileName(entry), at: directory, seconds: now.seconds, nanoseconds: now.nanoseconds)
    }
    return entry
  }

  /// Moves content out of the lease, to a name that is free, in one step.
  ///
  /// - Parameters:
  ///   - staged: its name in the lease.
  ///   - path: its name as seen from the site.
  ///   - directory: the directory in the site that contains it, which is created if it is missing.
  /// - Returns: false if the name is taken.
  /// - Throws: `leaseLost`; then nothing has changed.
  package func add(_ staged: String, as path: String, in directory: String) throws -> Bool {
    let held = held.descriptor.rawValue
    var mode = LeaseFault.overwritingMessages.isActive ? RenameMode.replace : .keep
    for _ in 0..<renameRaceLimit {
      do throws(Errno) {
        try rename(
          staged, at: stagingPlace.directory, to: site.layout.fromHeld(path), at: held, mode)
        if staged == stagingPlace.name { isDeclared.store(false, ordering: .relaxed) }
        return true
      } catch {
        switch error {
        case .alreadyExists: return false
        case .noSuchFile:
          if try mode == .replace || self.held.isRemoved() { throw lost() }
          try site.home.makeDirectoryIfMissing(directory, at: try site.directory(), staging: nil)
        // This file system has no such rename; no other process adds anything meanwhile.
        case .unsupported where mode == .keep:
          if try seesFile(path) { return false }
          mode = .replace
        default: throw error
        }
      }
    }
    throw lost()
  }

  /// Returns whether there is an entry at a path of the site.
  package func seesFile(_ path: String) throws(Errno) -> Bool {
    try exists(site.layout.fromHeld(path), at: held.descriptor.rawValue)
  }

  /// Flushes the names in a directory of the site, and its own, to the disk.
  package func synchronize(path: String) throws(Errno) {
    let paths = [site.layout.fromHeld(path), site.layout.fromHeld]
    for path in try site.commitsTogether() ? paths.prefix(1) : paths[...] {
      try FileDescriptor.open(path, at: held.descriptor.rawValue, [.readOnly, .directory])
        .synchronize()
    }
  }
}
