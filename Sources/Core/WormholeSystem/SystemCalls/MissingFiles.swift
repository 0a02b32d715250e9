// Other processes rename and remove files between two calls, so a missing file is an answer more
// often than an error.

/// Makes a call on a file that may be missing.
///
/// - Returns: The result of the call, or nil if it failed with `.noSuchFile`.
/// - Throws: Every other error of the call.
@inlinable
package func ifPresent<Result: ~Copyable>(
  _ call: @autoclosure () throws(Errno) -> Result
) throws(Errno) -> Result? {
  do throws(Errno) {
    return try call()
  } catch {
    guard error == .noSuchFile else { throw error }
    return nil
  }
}

/// Makes a call that may fail in certain ways.
///
/// - Returns: The result of the call, or nil if it failed with one of the errors.
/// - Throws: Every other error of the call.
@inlinable
package func tolerating<Result: ~Copyable>(
  _ errors: [Errno], _ call: @autoclosure () throws(Errno) -> Result
) throws(Errno) -> Result? {
  do throws(Errno) {
    return try call()
  } catch {
    guard errors.contains(error) else { throw error }
    return nil
  }
}

/// Whether a directory has an entry at a path; a symbolic link is an entry, whether or not it leads
/// to a file.
package func exists(_ path: some PathText, at directory: Int32) throws(Errno) -> Bool {
  try ifPresent(fileStatus(path, at: directory)) != nil
}

/// The same, but true if that cannot be determined.
package func mayExist(_ path: String) -> Bool {
  // The caller's next call on the path reports the fault.
  (try? exists(path, at: Directory.current)) ?? true
}

/// - Returns: Whether the name existed.
@discardableResult
package func removeIfPresent(_ path: some PathText, at directory: Int32) throws(Errno) -> Bool {
  try ifPresent(removeFile(path, at: directory)) != nil
}

/// Removes a directory, unless it is missing or has entries.
///
/// - Returns: Whether this call has removed it.
@discardableResult
package func removeIfEmpty(_ path: some PathText, at directory: Int32) throws(Errno) -> Bool {
  // POSIX allows the last two errors for a directory with an entry.
  try tolerating(
    [.noSuchFile, .directoryNotEmpty, .alreadyExists], removeDirectory(path, at: directory)) != nil
}

extension FileDescriptor {
  /// Reads a whole regular file below a directory.
  ///
  /// - Parameters:
  ///   - maximumBytes: The size that the file may have.
  ///   - isTrusted: Whether the process believes a file with this owner and mode.
  /// - Throws: `.tooManyLinks` for a symbolic link, for a file of another kind and for a file that is
  ///   not trusted; `.fileTooLarge`; otherwise as in openat2(2) and read(2).
  /// - Complexity: open, fstat, read and close.
  package static func readBeneath(
    _ path: String, at directory: Int32, maximumBytes: Int,
    isTrusted: (FileStatus) throws(Errno) -> Bool
  ) throws(Errno) -> [UInt8] {
    let file = try openBeneath(path, at: directory, [.readOnly, .nonBlocking])
    let status = try file.status()
    guard status.kind == .regular, try isTrusted(status) else { throw .tooManyLinks }
    return try file.readToEnd(expectedBytes: Int(status.size), maximumBytes: maximumBytes)
  }
}
