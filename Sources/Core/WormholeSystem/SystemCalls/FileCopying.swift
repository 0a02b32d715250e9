import Glibc
import WormholeShims

extension FileDescriptor {
  /// Makes this empty file share all content of another file until one of them is changed. The call
  /// is immediate and takes no room. The corresponding C request is `FICLONE` (ioctl_ficlone(2)).
  ///
  /// - Throws: `.unsupported`, `.unsuitableRequest`, `.invalidArgument` or `.crossesDevices` if the
  ///   file system cannot clone.
  package func clone(of source: borrowing FileDescriptor) throws(Errno) {
    let other = source.rawValue
    _ = try perform(.cloneFile) { csys_clone_file(rawValue, other) }
  }

  /// Copies content of another file to the same offset in this one, inside the kernel. The
  /// corresponding C function is `copy_file_range`.
  ///
  /// - Returns: The number of copied bytes; 0 at the end of the other file.
  /// - Throws: `.crossesDevices`, `.invalidArgument`, `.noFunction` or `.unsupported` if the kernel
  ///   cannot copy between the two files.
  package func copyRange(
    of source: borrowing FileDescriptor, from offset: Int64, count: Int64
  ) throws(Errno) -> Int64 {
    let other = source.rawValue
    return try perform(.copyFileRange) {
      var (from, to) = (offset, offset)
      return Int64(csys_copy_file_range(other, &from, rawValue, &to, Int(count)))
    }
  }

  /// Sets the length of the file; added bytes read as zeros. The C function is `ftruncate`.
  package func setLength(_ length: Int64) throws(Errno) {
    _ = try perform(.ftruncate) { ftruncate(rawValue, Int(length)) }
  }

  /// Sets the file's offset. The corresponding C function is `lseek`.
  package func seek(to offset: Int64) throws(Errno) {
    _ = try perform(.lseek) { lseek(rawValue, Int(offset), SEEK_SET) }
  }

  /// Returns the offset of the next content that is not a hole, or nil if there is none. The
  /// corresponding C function is `lseek` with `SEEK_DATA`.
  package func nextData(from offset: Int64) throws(Errno) -> Int64? {
    try find(Int32(csys_SEEK_DATA), from: offset)
  }

  /// Returns the offset of the next hole, at the latest the end of the file; nil beyond the end.
  /// The corresponding C function is `lseek` with `SEEK_HOLE`.
  package func nextHole(from offset: Int64) throws(Errno) -> Int64? {
    try find(Int32(csys_SEEK_HOLE), from: offset)
  }

  private func find(_ what: Int32, from offset: Int64) throws(Errno) -> Int64? {
    do throws(Errno) {
      return Int64(try perform(.lseek) { lseek(rawValue, Int(offset), what) })
    } catch {
      // ENXIO: only a hole follows, or the offset is beyond the end of the file (lseek(2)).
      guard error == .noSuchDevice else { throw error }
      return nil
    }
  }

  /// Writes all bytes of a buffer. The C function is `write`, repeated after a short count.
  package func writeAll(_ buffer: UnsafeRawBufferPointer) throws(Errno) {
    try Program.write(buffer, to: rawValue)
  }
}
