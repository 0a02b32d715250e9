import WormholeSystem

/// A file that a user names and that any program may have written.
package enum ForeignFile {
  /// Returns the content of a regular file; follows a link to one.
  ///
  /// - Parameter maximumBytes: The largest accepted size.
  /// - Throws: `AppGroupError`: `tooLarge`, `notAValue` for anything but a regular file (a FIFO
  ///   would block forever, a device may never end), or an error of the file system.
  package static func read(_ path: String, maximumBytes: Int) throws -> [UInt8] {
    let action = "read the file"
    return try reporting(action, path: path) {
      let file = try FileDescriptor.open(path, [.readOnly, .nonBlocking])
      let status = try file.status()
      guard status.kind == .regular else {
        throw AppGroupError(
          .notAValue, action, path: path, reason: "it is not a regular file",
          remedy: "name a file")
      }
      do throws(Errno) {
        return try file.readToEnd(expectedBytes: Int(status.size), maximumBytes: maximumBytes)
      } catch {
        guard error == .fileTooLarge else { throw error }
        throw AppGroupError(
          .tooLarge, action, path: path,
          reason: "it has more bytes than the limit of \(maximumBytes)")
      }
    }
  }
}
