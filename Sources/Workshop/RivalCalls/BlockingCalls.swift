import Glibc
package import SystemCalls

// The floors that Benchmarks compares with wait in the kernel. The library has no such forms on
// purpose: a stopped process on the other side would block their caller for ever.
extension FileDescriptor {
  /// Takes the file's lock, waiting as long as another open file has it. The corresponding C function
  /// is `flock`.
  package func lockBlocking(_ mode: LockMode) throws(Errno) {
    let operation = mode == .exclusive ? LOCK_EX : LOCK_SH
    _ = try perform(.flock) { flock(rawValue, operation) }
  }

  /// Makes an event queue whose reads wait for an event. The C function is `inotify_init1`.
  package static func blockingEventQueue() throws(Errno) -> FileDescriptor {
    FileDescriptor(owning: try perform(.inotifyInit) { inotify_init1(Int32(IN_CLOEXEC)) })
  }
}
