package import SystemCalls

/// `values/<name>/start-<nonce>/`: where a program is started at most once, however late the process
/// that wanted to start it goes on.
///
/// | state of it | means | made by |
/// |---|---|---|
/// | empty | nothing was started here yet | whoever is about to start a program |
/// | holds `output` | the program's process exists, or did; this is what it printed | that process, before it becomes the program |
/// | not there | nothing will ever be started here | whoever takes over, or sweeps |
///
/// Nothing can be made in a removed directory, and a directory that holds something cannot be removed:
/// so of a starter that was stopped for a while and of somebody who took over from it, one at most
/// starts a program, and the other learns it. What a crash leaves is one of the three; the next start
/// sweeps all places but its own.
package struct StartPlace: Sendable {
  static let prefix = "start-"

  /// What names the place.
  package let nonce: String
  private let value: Value

  private init(value: Value, nonce: String) {
    self.value = value
    self.nonce = nonce
  }

  /// A place that somebody has made.
  ///
  /// - Parameter nonce: as it was noted; nil for text that names no place.
  package init?(noted nonce: String, at value: Value) {
    guard (1...16).contains(nonce.utf8.count),
      nonce.utf8.allSatisfy({ (48...57).contains($0) || (97...102).contains($0) })
    else { return nil }
    self.init(value: value, nonce: nonce)
  }

  /// Makes a place beside a value's file.
  package static func make(at value: Value) throws -> StartPlace {
    let place = StartPlace(value: value, nonce: Nonce.next())
    try reporting("make a place to start a program at", path: place.path) {
      for _ in 0..<interruptionLimit {
        let directory = try value.directory.openOrMake()
        do throws(Errno) {
          return try value.container.root.makeDirectoryIfMissing(
            place.name, at: directory.rawValue)
        } catch {
          // The name was empty, and a sweep was quicker.
          guard error == .noSuchFile else { throw error }
        }
      }
      throw Errno.staleHandle
    }
    return place
  }

  private var name: String { Self.prefix + nonce }
  private var path: String { value.directory.path + "/" + name }

  /// The file that the program's process makes, and prints to.
  package var outputPath: String { path + "/output" }

  /// The status of what the program printed; nil when no process was started here.
  package func output() throws -> FileStatus? {
    try reporting("look at what a program printed", path: outputPath) {
      do throws(Errno) {
        return try fileStatus(outputPath)
      } catch {
        guard error == .noSuchFile || error == .notDirectory else { throw error }
        return nil
      }
    }
  }

  /// Makes sure that no program will be started here any more.
  ///
  /// - Returns: false when one was already.
  package func prevent() throws -> Bool {
    try reporting("prevent a start", path: path) {
      guard let directory = try value.directory.open() else { return true }
      do throws(Errno) {
        try removeDirectory(name, at: directory.rawValue)
        return true
      } catch {
        if error == .noSuchFile { return true }
        // POSIX lets a file system say either.
        guard error == .directoryNotEmpty || error == .alreadyExists else { throw error }
        return false
      }
    }
  }

  /// The last line that the program printed, if it was no long one; for errors.
  package func lastLine() -> String? {
    do throws(Errno) {
      let file = try FileDescriptor.open(outputPath, [.readOnly, .noFollow, .nonBlocking])
      let size = try file.status().size
      try file.seek(to: max(0, size - 1_024))
      let bytes = try file.readToEnd(expectedBytes: 1_024, maximumBytes: 1 << 20)
      let lines = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
      return lines.last.map { String($0.suffix(400)) }
    } catch {
      // None, or one that grows faster than it is read: the error does without.
      return nil
    }
  }

  /// Removes all places of the value but this one, with what was printed there.
  package func sweepOthers() throws {
    try reporting("sweep places of earlier starts", path: value.directory.path) {
      guard let directory = try value.directory.open([.readOnly, .directory]) else { return }
      for entry in try directory.entries()
      where entry.name.hasPrefix(Self.prefix) && entry.name.text != name {
        try remove(entry.name.text, at: directory.rawValue)
      }
    }
  }

  private func remove(_ other: String, at directory: Int32) throws(Errno) {
    do throws(Errno) {
      do throws(Errno) {
        try removeFile(other + "/output", at: directory)
      } catch {
        guard error == .noSuchFile else { throw error }
      }
      try removeDirectory(other, at: directory)
    } catch {
      // Another sweeps, too; or somebody's file lies there, and it is in nobody's way.
      let passing: [Errno] = [.noSuchFile, .directoryNotEmpty, .alreadyExists, .notDirectory]
      guard passing.contains(error) else { throw error }
    }
  }
}
