package import WormholePropertyLists
package import WormholeSystem

/// Storing a file that other processes see only when it is complete: it is written under a
/// temporary name, locked by its writer, and gets its final name in one step.
///
/// **What a crash leaves**: an unlocked file with a temporary name; a sweep removes it.
extension ContainerRoot {
  /// Writes a file and has it published.
  ///
  /// - Parameters:
  ///   - prefix: the path of staged files in the directory; a nonce completes it.
  ///   - publish: gives the staged file its final name, in one or several steps, and flushes it to
  ///     the disk if necessary; called when everything is written.
  /// - Throws: what `publish` throws; `.noSuchFile` if there is no such directory.
  /// - Complexity: create, flock, write.
  package func store(
    _ bytes: [UInt8], staging prefix: String, at directory: Int32,
    publish: (_ staged: String, _ file: borrowing FileDescriptor) throws(Errno) -> Void
  ) throws(Errno) {
    for _ in 0..<renameRaceLimit {
      let staged = prefix + Nonce.next()
      let file = try access.createFile(staged, at: directory)
      // A sweeper that holds the lock now removes the file; use another one.
      guard try file.tryLock(.exclusive) else { continue }
      do throws(Errno) {
        try file.writeAll(bytes)
        return try publish(staged, file)
      } catch {
        if error == .noSuchFile, try file.status().links == 0 { continue }
        try removeIfPresent(staged, at: directory)
        throw error
      }
    }
    throw .deviceBusy
  }

  /// Removes a staged file, unless its writer is alive.
  package static func sweepStaged(_ path: String, at directory: Int32) {
    do throws(Errno) {
      let file = try FileDescriptor.openBeneath(path, at: directory, [.readOnly, .nonBlocking])
      if try file.tryLock(.exclusive) { try removeIfPresent(path, at: directory) }
    } catch {
      // Renamed by its writer, or not a file of this package.
      return
    }
  }
}

/// The content of a file with the name of an entry.
package enum EntryContent {
  case bytes([UInt8], FileStatus)
  case missing
  /// Not a regular file of this container's users, or too large.
  case foreign(Errno)
}

extension ContainerRoot {
  /// Reads an entry's file; links, FIFOs, and files that belong to other users or
  /// may not be read, are foreign.
  ///
  /// - Parameter status: the directory's status.
  /// - Throws: The error of the directory, if it may not be searched.
  /// - Complexity: open, fstat, read, close.
  package func readEntry(
    _ path: String, at directory: Int32, beside status: FileStatus, maximumBytes: Int
  ) throws(Errno) -> EntryContent {
    do throws(Errno) {
      var found = status
      let bytes = try FileDescriptor.readBeneath(
        path, at: directory, maximumBytes: maximumBytes
      ) { file throws(Errno) in
        found = file
        return access.trusts(file, in: status)
      }
      return .bytes(bytes, found)
    } catch {
      switch error {
      case .noSuchFile: return .missing
      case .tooManyLinks, .noSuchDevice, .fileTooLarge, .isDirectory: return .foreign(error)
      case .accessDenied, .notPermitted:
        // The file may not be read, or its directory not be searched; only the former has a status.
        let exists = try ifPresent(fileStatus(path, at: directory)) != nil
        return exists ? .foreign(error) : .missing
      default: throw error
      }
    }
  }

  /// Reads a file that others wait behind, like `readEntry`. One that the disk fails to read three
  /// times is foreign, too.
  package func readEntryAgain(
    _ path: String, at directory: Int32, beside status: FileStatus, maximumBytes: Int
  ) throws(Errno) -> EntryContent {
    var failures = 0
    while true {
      do throws(Errno) {
        return try readEntry(path, at: directory, beside: status, maximumBytes: maximumBytes)
      } catch {
        guard error == .inputOutput else { throw error }
        failures += 1
        if failures == 3 { return .foreign(error) }
      }
    }
  }
}

extension WormholeError {
  /// Returns the error for a value that a reader of entries would not accept.
  package static func unacceptable(
    _ error: PropertyListError, _ action: String, path: String
  ) -> WormholeError {
    WormholeError(
      error.code.isOfSize ? .tooLarge : .unsupportedValue, action, path: path,
      reason: "its receiver would not accept it: \(error.reason)",
      remedy: error.code.isOfSize
        ? "an entry is meant to be small; share large content as a file" : nil)
  }
}

/// The limit on waiting entries in a directory before a sender is refused.
///
/// A complete scan admits at most a sixteenth of the limit until the next scan, so the cost of one
/// send does not grow with the number of waiting entries.
package struct Admission: Sendable {
  package let maximumEntries: Int
  package let maximumBytes: Int
  /// How much may still be stored before the next scan.
  private var entries = 0
  private var bytes = 0

  package init(entries: Int, bytes: Int) {
    maximumEntries = entries
    maximumBytes = bytes
  }

  /// Returns whether the last scan admits this much; if not, scan again.
  package func allows(_ count: Int, _ size: Int) -> Bool { entries >= count && bytes >= size }

  /// Records a scan.
  ///
  /// - Returns: whether this much may be stored.
  package mutating func note(waiting: [EntryFile], for count: Int, _ size: Int) -> Bool {
    let freeEntries = maximumEntries - waiting.reduce(0) { $0 + $1.count }
    let freeBytes = maximumBytes - waiting.reduce(0) { $0 + $1.bytes / $1.total * $1.count }
    entries = min(freeEntries, max(maximumEntries / 16, count))
    bytes = min(freeBytes, max(maximumBytes / 16, size))
    return freeEntries >= count && freeBytes >= size
  }

  package mutating func noteStored(_ entry: EntryFile) {
    entries -= entry.count
    bytes -= entry.bytes
  }
}
