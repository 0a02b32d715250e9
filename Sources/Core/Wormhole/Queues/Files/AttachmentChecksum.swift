import Dispatch
import Synchronization
package import WormholeSystem

package enum AttachmentChecksum {
  /// Small enough to stay in the cache of one core.
  private static let piece = 256 << 10

  /// Reads a file from its current position to its end.
  package static func value(of file: borrowing FileDescriptor) throws -> UInt64 {
    var hash = XXH64()
    _ = try read(file, into: &hash, atMost: .max)
    return hash.value
  }

  /// - Returns: the number of bytes read; fewer only at the end of the file.
  fileprivate static func read(
    _ file: borrowing FileDescriptor, into hash: inout XXH64, atMost limit: Int64
  ) throws -> Int64 {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: piece, alignment: 64)
    defer { buffer.deallocate() }
    var done: Int64 = 0
    while done < limit {
      let room = Int(min(Int64(piece), limit - done))
      let count = try file.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<room]))
      if count == 0 { break }
      hash.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      done += Int64(count)
    }
    return done
  }
}

/// The checksum of a file that is being copied, computed by its own thread from bytes that have
/// just been copied: they are still in memory, and the copy does not wait.
final class OverlappedChecksum: Sendable {
  private struct Progress {
    var available: Int64 = 0
    var isComplete = false
  }

  private let file: Result<SharedDescriptor, any Error>
  private let progress = Mutex(Progress())
  private let more = WakeLatch()
  private let result = Awaited<Result<UInt64, any Error>>()

  /// - Parameter path: the file's; it is opened only for this.
  init(of path: String) {
    file = Result { SharedDescriptor(try .open(path, .readOnly)) }
    Blocking.queue().async { self.result.settle(Result { try self.hashAll() }) }
  }

  /// - Throws: why the file cannot be read.
  func check() throws { _ = try file.get() }

  /// The number of bytes copied so far.
  func advance(to offset: Int64) {
    progress.withLock { $0.available = max($0.available, offset) }
    more.raise()
  }

  /// Ends the copy at a length; waits for the result.
  func finish(at offset: Int64) throws -> UInt64 {
    progress.withLock { ($0.available, $0.isComplete) = (offset, true) }
    more.raise()
    return try result.wait().get()
  }

  /// The result is no longer needed. Without effect after `finish`.
  func abandon() {
    progress.withLock { if !$0.isComplete { ($0.available, $0.isComplete) = (-1, true) } }
    more.raise()
  }

  private func hashAll() throws -> UInt64 {
    let file = try file.get()
    var hash = XXH64()
    var offset: Int64 = 0
    while true {
      let (available, isComplete) = progress.withLock { ($0.available, $0.isComplete) }
      guard available >= 0 else { throw CancellationError() }
      if offset < available {
        let count = try AttachmentChecksum.read(
          file.descriptor, into: &hash, atMost: available - offset)
        offset += count
        // It has become shorter, so the copy differs from the file.
        guard count > 0 else { throw Errno.inputOutput }
      } else if isComplete {
        return hash.value
      } else {
        more.block(until: nil)
      }
    }
  }
}
