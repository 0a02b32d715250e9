import Wormhole
import WormholeSystem

/// `values/<name>/start-<nonce>/`: a place where a program is started at most once, however late
/// its starting process continues.
///
/// | its state | meaning | made by |
/// |---|---|---|
/// | empty | nothing was started here yet | the process that is about to start a program |
/// | holds `output` | the program's process exists or existed, and this is its output | that process, before it becomes the program |
/// | missing | nothing will ever be started here | the process that takes over, or sweeps |
///
/// Nothing can be created in a removed directory, and a directory with an entry cannot be removed.
/// So if a starter was stopped for a while and another process took over from it, at most one of
/// the two starts a program, and the other finds out. A crash leaves one of the three states; the
/// next start sweeps all places but its own.
struct StartPlace: Sendable {
  let nonce: String
  let value: Value

  /// Whether a text may be a place's nonce.
  static func isName(_ text: String) -> Bool {
    (1...16).contains(text.utf8.count) && text.utf8.allSatisfy(Nonce.isDigit)
  }

  static func make(at value: Value) throws -> StartPlace {
    let place = StartPlace(nonce: Nonce.next(), value: value)
    try reporting("make a place to start a program at", path: place.path) {
      for _ in 0..<renameRaceLimit {
        let directory = try value.directory.openOrMake()
        do throws(Errno) {
          return try value.container.root.makeDirectoryIfMissing(
            place.name, at: directory.rawValue)
        } catch {
          // The name was empty, and a sweep removed its directory first.
          guard error == .noSuchFile else { throw error }
        }
      }
      throw Errno.staleHandle
    }
    return place
  }

  private var name: String { NamedDirectory.startPrefix + nonce }
  private var path: String { value.directory.path + "/" + name }

  /// The file that the program's process creates and prints to.
  var outputPath: String { path + "/output" }

  /// Returns the status of the program's output, or nil if no process was started here.
  func output() throws -> FileStatus? {
    try reporting("look at what a program printed", path: outputPath) {
      try tolerating([.noSuchFile, .notDirectory], fileStatus(outputPath))
    }
  }

  /// Ensures that no program will be started here any more; false if one was started already.
  func prevent() throws -> Bool {
    try reporting("prevent a start", path: path) {
      guard let directory = try value.directory.open() else { return true }
      // POSIX allows both errors for a directory with an entry.
      return try tolerating(
        [.directoryNotEmpty, .alreadyExists],
        ifPresent(removeDirectory(name, at: directory.rawValue))) != nil
    }
  }

  /// Returns the last line of the program's output if it is short; for errors.
  func lastLine() -> String? {
    do throws(Errno) {
      let file = try FileDescriptor.open(outputPath, [.readOnly, .noFollow, .nonBlocking])
      let size = try file.status().size
      try file.seek(to: max(0, size - 1_024))
      let bytes = try file.readToEnd(expectedBytes: 1_024, maximumBytes: 1 << 20)
      let lines = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
      return lines.last.map { String($0.suffix(400)) }
    } catch {
      // The output is missing, or grows faster than it is read; the error does without it.
      return nil
    }
  }

  func sweepOthers() throws {
    try reporting("sweep places of earlier starts", path: value.directory.path) {
      guard let directory = try value.directory.open([.readOnly, .directory]) else { return }
      for entry in try directory.entries()
      where entry.name.hasPrefix(NamedDirectory.startPrefix) && entry.name.text != name {
        try remove(entry.name.text, at: directory.rawValue)
      }
    }
  }

  private func remove(_ other: String, at directory: Int32) throws(Errno) {
    // Another process is sweeping, too; or a foreign file lies there, which is harmless.
    let passing: [Errno] = [.noSuchFile, .directoryNotEmpty, .alreadyExists, .notDirectory]
    _ = try tolerating(passing, removeFile(other + "/output", at: directory))
    _ = try tolerating(passing, removeDirectory(other, at: directory))
  }
}
