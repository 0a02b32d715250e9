/// Copies file contents in the cheapest way that the two file systems allow.
package struct ContentCopy {
  private enum Way {
    case clone, kernel, memory
  }

  private static let kernelPiece: Int64 = 8 << 20
  private static let memoryPiece = 1 << 20
  /// A file of at most this many bytes is read and written at once: that is faster than asking the
  /// kernel to share or copy it, and sharing would save hardly any room.
  private static let smallBytes: Int64 = 16 << 10

  private let check: () throws -> Void
  private let copied: (Int64) -> Void
  // A refused way is not tried again for the next file.
  private var way = Way.clone

  /// - Parameters:
  ///   - check: Called before each piece; an error that it throws ends the copy.
  ///   - copied: Called after each piece with the offset of the piece's end, except for shared
  ///     content.
  package init(check: @escaping () throws -> Void, copied: @escaping (Int64) -> Void = { _ in }) {
    self.check = check
    self.copied = copied
  }

  /// Copies the file up to the size in its status; holes stay holes. Both files were just opened,
  /// and nothing was read or written.
  ///
  /// - Complexity: Memory for one piece of at most 1 MiB, whatever the size.
  package mutating func copy(
    _ source: borrowing FileDescriptor, _ status: FileStatus, to target: borrowing FileDescriptor
  ) throws {
    guard status.size > 0 else { return }
    if status.size <= Self.smallBytes, status.allocatedBytes >= status.size {
      return try copyThroughMemory(source, 0..<status.size, to: target)
    }
    if way == .clone, try isCloned(source, to: target) { return }
    if status.allocatedBytes >= status.size {
      try copy(source, 0..<status.size, to: target)
    } else {
      try copySparse(source, status, to: target)
    }
  }

  private mutating func isCloned(
    _ source: borrowing FileDescriptor, to target: borrowing FileDescriptor
  ) throws(Errno) -> Bool {
    do throws(Errno) {
      try target.clone(of: source)
      return true
    } catch {
      switch error {
      case .noSpace, .diskQuotaExceeded, .inputOutput, .interrupted: throw error
      // This file system does not support the call.
      case .unsupported, .unsuitableRequest, .noFunction: way = .kernel
      // Not for these two files: one is a swap file, has other flags, or is on another file system.
      default: break
      }
      return false
    }
  }

  private mutating func copySparse(
    _ source: borrowing FileDescriptor, _ status: FileStatus, to target: borrowing FileDescriptor
  ) throws {
    var offset: Int64 = 0
    while offset < status.size, let start = try source.nextData(from: offset),
      start < status.size, let end = try source.nextHole(from: start)
    {
      try copy(source, start..<min(end, status.size), to: target)
      offset = max(end, start + 1)
    }
    try check()
    let length = min(status.size, try source.status().size)
    if try target.status().size < length { try target.setLength(length) }
  }

  private mutating func copy(
    _ source: borrowing FileDescriptor, _ range: Range<Int64>, to target: borrowing FileDescriptor
  ) throws {
    var offset = range.lowerBound
    while offset < range.upperBound, way != .memory {
      try check()
      let count = min(range.upperBound - offset, Self.kernelPiece)
      do throws(Errno) {
        let done = try target.copyRange(of: source, from: offset, count: count)
        // The end of the file, or a file system that returns 0 instead of an error.
        if done == 0 { break }
        offset += done
        copied(offset)
      } catch {
        let refusals: [Errno] = [
          .crossesDevices, .invalidArgument, .noFunction, .unsupported, .notPermitted,
        ]
        guard refusals.contains(error) else { throw error }
        way = .memory
      }
    }
    if offset < range.upperBound {
      try copyThroughMemory(source, offset..<range.upperBound, to: target)
    }
  }

  private func copyThroughMemory(
    _ source: borrowing FileDescriptor, _ range: Range<Int64>, to target: borrowing FileDescriptor
  ) throws {
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: min(Self.memoryPiece, Int(range.upperBound - range.lowerBound)), alignment: 16)
    defer { buffer.deallocate() }
    if range.lowerBound > 0 {
      try source.seek(to: range.lowerBound)
      try target.seek(to: range.lowerBound)
    }
    var left = Int(range.upperBound - range.lowerBound)
    while left > 0 {
      try check()
      let count = try source.read(
        into: UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(left)))
      if count == 0 { return }
      try target.writeAll(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      left -= count
      copied(range.upperBound - Int64(left))
    }
  }
}
