import Foundation
package import WormholeSystem

/// The kernel's view of raw descriptors, read without the module under test.
package enum Descriptors {
  package static func isOpen(_ number: Int32) -> Bool { fcntl(number, F_GETFD) != -1 }

  package static func closesOnExec(_ number: Int32) -> Bool {
    let flags = fcntl(number, F_GETFD)
    return flags != -1 && flags & FD_CLOEXEC != 0
  }

  /// Returns a descriptor with a number that no other test gets, because they take the lowest free
  /// one.
  ///
  /// - Parameter number: At most 1,000; with a larger limit of descriptors, the number is as far below
  ///   that as below 1,024, because many tests at once have more than a thousand open.
  package static func high(over number: Int32) throws(Errno) -> Int32 {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    let room = Int32(clamping: min(limit.rlim_cur, 60_000)) - 1_024
    let null = try FileDescriptor.open("/dev/null", .readWrite)
    return fcntl(null.rawValue, F_DUPFD_CLOEXEC, number + max(0, room))
  }

  /// Opens another file under a free number.
  package static func reopen(_ number: Int32) throws(Errno) {
    let null = try FileDescriptor.open("/dev/null", .readWrite)
    _ = dup2(null.rawValue, number)
  }

  /// Returns the number of open descriptors.
  package static func open() throws(Errno) -> Int {
    try FileDescriptor.open("/proc/self/fd", [.readOnly, .directory]).entries().count
  }
}
