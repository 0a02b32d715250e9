import Glibc

extension FileDescriptor {
  /// Sends a datagram to a Unix socket, and never waits for its receiver. The corresponding C functions are
  /// `socket` and `sendto`.
  ///
  /// - Parameter address: A path, or, after an `@`, a name in the abstract namespace; at most 107 bytes
  ///   (unix(7)).
  /// - Throws: `.fileNameTooLong` for a longer address; `.noSuchFile` or ECONNREFUSED if no process
  ///   receives there; `.wouldBlock` if too many wait for the receiver.
  package static func sendDatagram(
    _ bytes: [UInt8], toSocket address: String
  ) throws(Errno) {
    var name = sockaddr_un()
    name.sun_family = sa_family_t(AF_UNIX)
    var path = Array(address.utf8)
    guard path.count < MemoryLayout.size(ofValue: name.sun_path) else { throw .fileNameTooLong }
    // The length counts for an abstract name, and a path ends at a zero.
    var length = MemoryLayout.offset(of: \sockaddr_un.sun_path) ?? 0
    if path.first == UInt8(ascii: "@") { path[0] = 0 } else { path.append(0) }
    length += path.count
    withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: path) }
    let type = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    let sender = FileDescriptor(owning: try perform(.socket) { socket(AF_UNIX, type, 0) })
    let flags = Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)
    let size = socklen_t(length)
    _ = try perform(.sendto) {
      withUnsafePointer(to: &name) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { target in
          bytes.withUnsafeBytes {
            sendto(sender.rawValue, $0.baseAddress, $0.count, flags, target, size)
          }
        }
      }
    }
  }
}
