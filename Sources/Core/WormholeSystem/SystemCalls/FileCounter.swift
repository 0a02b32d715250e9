import Glibc
import WormholeShims

/// A number in a file: processes wait until another one adds to it.
///
/// Only the kernel reads and changes it, through futex(2) and pread(2). So a file that is truncated
/// or damaged at any moment causes an error, and not a fault in the mapped memory.
package final class FileCounter: Sendable {
  private let file: FileDescriptor
  private let address: UInt

  /// The content of a new file.
  package static let initialContent = [UInt8](repeating: 0, count: MemoryLayout<UInt32>.size)

  /// - Parameter file: A regular file, open for reading and writing, on a local file system.
  package init(_ file: consuming FileDescriptor) throws(Errno) {
    var address = UInt(bitPattern: MAP_FAILED)
    let descriptor = file.rawValue
    _ = try perform(.mmap) { () -> Int in
      address = UInt(
        bitPattern: mmap(
          nil, Self.initialContent.count, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0))
      return address == UInt(bitPattern: MAP_FAILED) ? -1 : 0
    }
    self.file = file
    self.address = address
  }

  deinit { munmap(UnsafeMutableRawPointer(bitPattern: address), Self.initialContent.count) }

  /// Returns the number; nil if the file has none.
  package func value() throws(Errno) -> UInt32? {
    var value: UInt32 = 0
    let count = try perform(.read) {
      withUnsafeMutableBytes(of: &value) { pread(file.rawValue, $0.baseAddress, $0.count, 0) }
    }
    return count == MemoryLayout<UInt32>.size ? value : nil
  }

  /// Blocks the calling thread until it is chosen by `addOne`, the time has passed, or a signal arrives;
  /// returns at once if the number is not the given one.
  ///
  /// - Returns: False if the file has no number.
  package func wait(unlessChangedFrom value: UInt32, atMost limit: Duration) -> Bool {
    csys_await_change(address, value, Int(limit / .nanoseconds(1))) == 0
      || [EAGAIN, ETIMEDOUT, EINTR].contains(errno)
  }

  /// Adds one, and wakes the thread that has waited longest, of any process. One system call.
  ///
  /// - Returns: Whether a thread was woken.
  package func addOne() -> Bool { csys_add_and_wake(address) > 0 }
}
