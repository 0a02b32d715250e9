import Foundation
import SystemCalls

/// What the kernel says of raw descriptors, asked without the module under test.
enum Descriptors {
  static func isOpen(_ number: Int32) -> Bool { fcntl(number, F_GETFD) != -1 }

  static func closesOnExec(_ number: Int32) -> Bool {
    let flags = fcntl(number, F_GETFD)
    return flags != -1 && flags & FD_CLOEXEC != 0
  }

  /// A descriptor whose number no other test gets: they take the lowest that is free.
  static func high(over number: Int32) throws(Errno) -> Int32 {
    let null = try FileDescriptor.open("/dev/null", .readWrite)
    return fcntl(null.rawValue, F_DUPFD_CLOEXEC, number)
  }

  /// Puts another file under a number that is free.
  static func reopen(_ number: Int32) throws(Errno) {
    let null = try FileDescriptor.open("/dev/null", .readWrite)
    _ = dup2(null.rawValue, number)
  }

  /// All that are open now.
  static func open() throws(Errno) -> Int {
    try FileDescriptor.open("/proc/self/fd", [.readOnly, .directory]).entries().count
  }
}
