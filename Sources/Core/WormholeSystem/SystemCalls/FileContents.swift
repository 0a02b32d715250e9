import Glibc
import WormholeShims

/// Lends memory to a call, on the stack if there is room.
@inline(__always)
package func withTemporaryBytes<Outcome>(
  _ count: Int, _ body: (UnsafeMutableRawBufferPointer) throws(Errno) -> Outcome
) throws(Errno) -> Outcome {
  try withUnsafeTemporaryAllocation(byteCount: count, alignment: 8) { buffer in
    Result { () throws(Errno) in try body(buffer) }
  }.get()
}

extension FileDescriptor {
  /// Reads at most `count` bytes; 0 is the end of the file. The corresponding C function is `read`.
  package func read(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    try perform(.read) { Glibc.read(rawValue, buffer.baseAddress, buffer.count) }
  }

  /// Reads until a buffer is full, or the file ends.
  ///
  /// - Returns: The number of bytes.
  package func fill(_ buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    var filled = 0
    while filled < buffer.count {
      let count = try read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]))
      guard count > 0 else { break }
      filled += count
    }
    return filled
  }

  /// Reads from the current offset to the end, but never more than `maximumBytes`.
  ///
  /// - Parameter expectedBytes: The file's size according to its status. One call then suffices to
  ///   read the content and to notice the end.
  /// - Throws: `.fileTooLarge` if there is more than `maximumBytes`.
  package func readToEnd(expectedBytes: Int, maximumBytes: Int) throws(Errno) -> [UInt8] {
    guard expectedBytes <= maximumBytes else { throw .fileTooLarge }
    // Leaves room for one byte beyond "no limit".
    let maximumBytes = min(maximumBytes, Int.max - 1)
    var bytes: [UInt8] = []
    // Files of /proc report a size of zero.
    var capacity = expectedBytes > 0 ? expectedBytes + 1 : 4_096
    while true {
      let room = min(capacity, maximumBytes + 1)
      let filled = bytes.count
      guard room > filled else { throw .fileTooLarge }
      let got = try read(atMost: room - filled, appendingTo: &bytes)
      if got == 0 { return bytes }
      guard bytes.count <= maximumBytes else { throw .fileTooLarge }
      // A file with exactly the expected size has ended here; another read would return 0.
      if bytes.count == expectedBytes, got < room - filled { return bytes }
      if bytes.count >= capacity { capacity = max(capacity * 2, 4_096) }
    }
  }

  /// Makes one read, and appends the bytes to an array.
  ///
  /// - Returns: The number of bytes; 0 is the end of the file.
  package func read(atMost room: Int, appendingTo bytes: inout [UInt8]) throws(Errno) -> Int {
    if room <= Self.smallBytes {
      return try withTemporaryBytes(room) { buffer throws(Errno) in
        let got = try read(into: buffer)
        bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: buffer[..<got]))
        return got
      }
    }
    let chunk = try Program.read(from: rawValue, maximumBytes: room)
    if bytes.isEmpty { bytes = chunk } else { bytes += chunk }
    return chunk.count
  }

  /// Copying so few bytes takes less time than creating an array with room for them, which looks up
  /// its type each time.
  private static let smallBytes = 4_096

  /// Writes all bytes. The corresponding C function is `write`, repeated after a short count.
  package func writeAll(_ bytes: [UInt8]) throws(Errno) {
    try Program.write(bytes, to: rawValue)
  }

  /// Writes the first bytes of an array, and then all of another, as if they were one. The
  /// corresponding C function is `writev`; after a short count, `write`.
  package func writeAll(_ first: [UInt8], count: Int, _ second: [UInt8]) throws(Errno) {
    precondition(count <= first.count, "an array has no bytes beyond its end")
    try first.withUnsafeBufferPointer { first throws(Errno) in
      try second.withUnsafeBufferPointer { second throws(Errno) in
        try writeAll(
          UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: first.prefix(count))),
          UnsafeRawBufferPointer(second))
      }
    }
  }

  private func writeAll(
    _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer
  ) throws(Errno) {
    guard second.count > 0 else { return try Program.write(first, to: rawValue) }
    var parts = (part(first), part(second))
    let done = try perform(.write) {
      withUnsafeBytes(of: &parts) {
        writev(rawValue, $0.assumingMemoryBound(to: iovec.self).baseAddress, 2)
      }
    }
    try Program.write(
      UnsafeRawBufferPointer(rebasing: first.dropFirst(done)), to: rawValue)
    try Program.write(
      UnsafeRawBufferPointer(rebasing: second.dropFirst(max(0, done - first.count))),
      to: rawValue)
  }

  private func part(_ bytes: UnsafeRawBufferPointer) -> iovec {
    iovec(
      iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
  }

  /// Waits until the content, and the metadata needed to find it, is on the disk. The corresponding
  /// C function is `fsync`. After a failure the file must be dropped and written again, because the
  /// kernel discards the error and the lost pages (fsync(2)).
  package func synchronize() throws(Errno) {
    _ = try perform(.fsync) { Glibc.fsync(rawValue) }
  }

  /// Waits until the content is written, without the metadata needed to find it. A name that the
  /// file gets afterwards reaches the disk only together with the content, or not at all. The
  /// corresponding C function is `sync_file_range` with all its flags, or `fsync` if there is none.
  package func writeBack() throws(Errno) {
    do throws(Errno) {
      _ = try perform(.syncFileRange) { csys_write_back(rawValue) }
    } catch {
      guard Self.meansNoWriteBack.contains(error) else { throw error }
      try synchronize()
    }
  }

  /// Without `sync_file_range`: an old kernel, another kind of file, or a sandbox.
  private static let meansNoWriteBack: [Errno] = [.noFunction, .invalidArgument, .notPermitted]

  /// Starts to write the content, so that the waits for several files overlap. Does nothing where there
  /// is no such call: the wait that follows writes it.
  package func startWriteBack() throws(Errno) {
    _ = try tolerating(
      Self.meansNoWriteBack,
      perform(.syncFileRange) { csys_start_write_back(rawValue) })
  }

  /// Creates a file in memory whose content is read from its beginning. The corresponding C
  /// function is `memfd_create`.
  ///
  /// - Parameter name: The name that /proc shows.
  package static func memoryFile(name: String, content: [UInt8]) throws(Errno) -> FileDescriptor {
    let file = FileDescriptor(owning: try perform(.memfdCreate) { csys_memory_file(name) })
    try file.writeAll(content)
    _ = try perform(.lseek) { lseek(file.rawValue, 0, SEEK_SET) }
    return file
  }
}

/// Returns the content of a text file.
package func textOfFile(_ path: String) throws(Errno) -> String {
  let file = try FileDescriptor.open(path, .readOnly)
  let size = Int(try file.status().size)
  return String(
    decoding: try file.readToEnd(expectedBytes: size, maximumBytes: 4 << 30), as: UTF8.self)
}
