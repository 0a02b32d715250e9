import Glibc
import WormholeShims

/// Creates a directory. The corresponding C function is `mkdirat`; the umask applies.
package func makeDirectory(
  _ path: some PathText, at directory: Int32 = Directory.current, mode: UInt32 = 0o700
) throws(Errno) {
  _ = try perform(.mkdirat) { path.withCPath(at: directory) { mkdirat($0, $1, mode) } }
}

/// Removes the name of a file. The corresponding C function is `unlinkat`.
package func removeFile(
  _ path: some PathText, at directory: Int32 = Directory.current
) throws(Errno) {
  _ = try perform(.unlinkat) { path.withCPath(at: directory) { unlinkat($0, $1, 0) } }
}

/// Removes an empty directory. The corresponding C function is `unlinkat` with `AT_REMOVEDIR`.
package func removeDirectory(
  _ path: some PathText, at directory: Int32 = Directory.current
) throws(Errno) {
  _ = try perform(.unlinkat) { path.withCPath(at: directory) { unlinkat($0, $1, AT_REMOVEDIR) } }
}

/// The effect of a rename if the new name is taken.
package enum RenameMode: Sendable {
  /// Replaces the file with the new name. The corresponding C function is `renameat`.
  case replace
  /// Fails with `.alreadyExists` (`RENAME_NOREPLACE`).
  ///
  /// Some file systems have no such mode (FUSE, NFS). There it consists of other steps:
  ///
  /// | renamed entry | steps | meanwhile, and after a crash between them |
  /// |---|---|---|
  /// | a directory | `renameat`, which replaces an empty directory and refuses any other | – |
  /// | any other file | `linkat`, which refuses a taken name; `unlinkat` of the old one | it has both names |
  ///
  /// The new name has exactly one winner in both cases. The old name of a file may have two: two
  /// processes that move one file to two names may both succeed. So a process that moves a file
  /// that others may move as well uses `replace`, or holds a lock on it meanwhile.
  case keep
  /// The same in one step; `.unsupported` where it would take two.
  case keepAtOnce
  /// Exchanges the two files; both must exist (`RENAME_EXCHANGE`).
  case exchange
}

/// Renames a file in one step; for `RenameMode.keep` see there. The corresponding C functions are
/// `renameat` and `renameat2`.
///
/// - Throws: `Errno` as in rename(2); `.unsupported` if the file system cannot do it in this mode.
package func rename(
  _ old: some PathText, at oldDirectory: Int32, to new: some PathText, at newDirectory: Int32,
  _ mode: RenameMode = .replace
) throws(Errno) {
  let flag: UInt32
  switch mode {
  case .replace:
    _ = try perform(.renameat) {
      old.withCPath(at: oldDirectory) { oldDirectory, old in
        new.withCPath(at: newDirectory) { renameat(oldDirectory, old, $0, $1) }
      }
    }
    return
  case .keep, .keepAtOnce: flag = UInt32(csys_RENAME_NOREPLACE)
  case .exchange: flag = UInt32(csys_RENAME_EXCHANGE)
  }
  do throws(Errno) {
    _ = try perform(.renameat2) {
      old.withCPath(at: oldDirectory) { oldDirectory, old in
        new.withCPath(at: newDirectory) { csys_renameat2(oldDirectory, old, $0, $1, flag) }
      }
    }
  } catch {
    // renameat2(2) names EINVAL; ENOSYS and EPERM come from an old kernel or a sandbox. If the file
    // may not be renamed, the other way says so.
    guard [.invalidArgument, .noFunction, .unsupported, .notPermitted].contains(error) else {
      throw error
    }
    guard mode == .keep else { throw .unsupported }
    try renameInSteps(old, at: oldDirectory, to: new, at: newDirectory)
  }
}

// See `RenameMode.keep`.
private func renameInSteps(
  _ old: some PathText, at oldDirectory: Int32, to new: some PathText, at newDirectory: Int32
) throws(Errno) {
  if try fileStatus(old, at: oldDirectory).kind == .directory {
    do throws(Errno) {
      return try rename(old, at: oldDirectory, to: new, at: newDirectory)
    } catch {
      switch error {
      case .directoryNotEmpty: throw .alreadyExists
      case .notDirectory: throw try exists(new, at: newDirectory) ? .alreadyExists : error
      default: throw error
      }
    }
  }
  do throws(Errno) {
    try link(old, at: oldDirectory, to: new, at: newDirectory)
  } catch {
    throw [.notPermitted, .noFunction].contains(error) ? .unsupported : error
  }
  do throws(Errno) {
    try removeIfPresent(old, at: oldDirectory)
  } catch {
    // Undone, unless the file was taken from there in the meantime.
    if try removeIfPresent(new, at: newDirectory) { throw error }
  }
}

/// Gives a file a second name; a symbolic link is not followed. The corresponding C function is
/// `linkat`.
package func link(
  _ old: some PathText, at oldDirectory: Int32, to new: some PathText, at newDirectory: Int32
) throws(Errno) {
  _ = try perform(.linkat) {
    old.withCPath(at: oldDirectory) { oldDirectory, old in
      new.withCPath(at: newDirectory) { linkat(oldDirectory, old, $0, $1, 0) }
    }
  }
}

/// Returns the target of a symbolic link: as text for the path of text, byte for byte for a name. The
/// corresponding C function is `readlinkat`.
///
/// - Throws: `.illegalByteSequence` if text is wanted and the target is not valid UTF-8; otherwise as
///   in readlink(2).
package func linkTarget<Path: PathText>(
  _ path: Path, at directory: Int32 = Directory.current
) throws(Errno) -> Path {
  // A target is shorter than the longest path with its terminator (symlink(2)).
  var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
  let count = try perform(.readlinkat) {
    path.withCPath { path in
      buffer.withUnsafeMutableBytes { raw in
        guard let base = raw.baseAddress else { return -1 }
        return readlinkat(directory, path, base.assumingMemoryBound(to: CChar.self), raw.count)
      }
    }
  }
  guard let target = Path(pathBytes: Array(buffer[..<count])) else {
    throw .illegalByteSequence
  }
  return target
}

extension FileDescriptor {
  package struct Entry: Hashable, Sendable {
    package let name: FileName
    /// Whether the entry is a directory; nil if the file system does not say.
    package let isDirectory: Bool?
    /// The file's number on its file system.
    package let inode: UInt64
  }

  /// Passes the next entries of an open directory to a closure, without "." and "..".
  ///
  /// - Returns: False at the end. One call returns all entries of a small directory.
  /// - Complexity: One `getdents64` of 4 KiB.
  package func nextEntries(_ body: (Entry) -> Void) throws(Errno) -> Bool {
    try next { name, type, inode in
      let isDirectory: Bool? = type == UInt8(DT_UNKNOWN) ? nil : type == UInt8(DT_DIR)
      body(Entry(name: FileName(bytes: Array(name)), isDirectory: isDirectory, inode: inode))
    }
  }

  /// Passes the names of the next entries to a closure, like `nextEntries`. A name is valid only
  /// during the call.
  package func nextNames(_ body: (UnsafeRawBufferPointer) -> Void) throws(Errno) -> Bool {
    try next { name, _, _ in body(name) }
  }

  private func next(_ body: (UnsafeRawBufferPointer, UInt8, UInt64) -> Void) throws(Errno) -> Bool {
    try withTemporaryBytes(4_096) { buffer throws(Errno) in
      guard let base = buffer.baseAddress else { return false }
      let count = try perform(.getdents64) { csys_getdents64(rawValue, base, buffer.count) }
      Self.parse(UnsafeRawBufferPointer(rebasing: buffer[..<count]), body)
      return count > 0
    }
  }

  /// Moves an open directory back to its first entry. The corresponding C function is `lseek`.
  package func rewind() throws(Errno) {
    _ = try perform(.lseek) { lseek(rawValue, 0, SEEK_SET) }
  }

  /// Returns all entries of an open directory, from its beginning.
  package func entries() throws(Errno) -> [Entry] {
    try rewind()
    return try remainingEntries()
  }

  /// Returns the open directory's entries that were not returned yet; after opening, all of them.
  package func remainingEntries() throws(Errno) -> [Entry] {
    var all: [Entry] = []
    while try nextEntries({ all.append($0) }) {}
    return all
  }

  // struct linux_dirent64 { u64 ino; s64 off; u16 reclen; u8 type; char name[]; } (getdents(2))
  private static func parse(
    _ buffer: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer, UInt8, UInt64) -> Void
  ) {
    var offset = 0
    while offset + 19 <= buffer.count {
      let length = Int(buffer.loadUnaligned(fromByteOffset: offset + 16, as: UInt16.self))
      guard length > 19, offset + length <= buffer.count else { return }
      let type = buffer[offset + 18]
      let inode = buffer.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
      var end = offset + 19
      while end < offset + length, buffer[end] != 0 { end += 1 }
      let name = UnsafeRawBufferPointer(rebasing: buffer[(offset + 19)..<end])
      offset += length
      if name.isEqual(to: ".") || name.isEqual(to: "..") { continue }
      body(name, type, inode)
    }
  }
}
