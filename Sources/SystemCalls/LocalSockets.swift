import Glibc

extension FileDescriptor {
  /// Connects to a server that listens at a path. The corresponding C functions are `socket` and
  /// `connect` with `AF_UNIX` and `SOCK_STREAM`.
  ///
  /// - Throws: `Errno` as in unix(7): `.noSuchFile`, or `.connectionRefused` where nobody listens;
  ///   `.fileNameTooLong` for a path of more than 107 bytes.
  package static func connected(toSocket path: String) throws(Errno) -> FileDescriptor {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else {
      throw .fileNameTooLong
    }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    let raw = try perform(.socket) {
      socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    }
    let file = FileDescriptor(owning: raw)
    let size = socklen_t(MemoryLayout<sockaddr_un>.size)
    _ = try perform(.connect) {
      withUnsafePointer(to: &address) { address in
        address.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(raw, $0, size) }
      }
    }
    return file
  }
}
