import Glibc
package import SystemCalls

extension FileDescriptor {
  /// Connects to a Unix socket, for bytes in order. The corresponding C functions are `socket` and
  /// `connect`.
  ///
  /// - Parameter path: At most 107 bytes (unix(7)).
  /// - Throws: `.fileTooLarge` for a longer path; `.noSuchFile` or ECONNREFUSED if no
  ///   process listens there.
  package static func connected(toSocket path: String) throws(Errno) -> FileDescriptor {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { throw .fileTooLarge }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    let number = socket(AF_UNIX, type, 0)
    guard number != -1 else { throw Errno(rawValue: errno) }
    let made = FileDescriptor(owning: number)
    let length = socklen_t(MemoryLayout<sockaddr_un>.size)
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Glibc.connect(made.rawValue, $0, length)
      }
    }
    guard result != -1 else { throw Errno(rawValue: errno) }
    return made
  }
}
