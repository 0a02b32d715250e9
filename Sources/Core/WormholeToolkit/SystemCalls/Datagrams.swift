import Glibc
package import WormholeSystem

/// Datagrams between processes of this machine: each arrives whole, in the order of its sender, or is
/// refused. A path to a socket has at most 107 bytes (unix(7)).
extension FileDescriptor {
  /// Sends a datagram to a Unix socket, and never waits for its receiver. The corresponding C
  /// functions are `socket`, `connect` and `send`.
  ///
  /// - Parameter address: A path, or, after an `@`, a name in the abstract namespace.
  /// - Throws: As `datagramSocket(to:)` and `sendDatagram(_:)`.
  package static func sendDatagram(
    _ bytes: [UInt8], toSocket address: String
  ) throws(Errno) {
    try datagramSocket(to: address).sendDatagram(bytes)
  }

  /// Makes a socket whose datagrams go to another one. The corresponding C functions are `socket` and
  /// `connect`.
  ///
  /// - Parameter address: A path, or, after an `@`, a name in the abstract namespace.
  /// - Throws: `.fileNameTooLong` for a longer address; `.noSuchFile` or ECONNREFUSED if no process
  ///   receives there.
  package static func datagramSocket(to address: String) throws(Errno) -> FileDescriptor {
    let made = try datagramSocket()
    try made.connect(to: address)
    return made
  }

  /// Makes a socket whose datagrams go to this one, which is open only as a path (`O_PATH`): an
  /// address would follow links. Needs /proc.
  ///
  /// - Throws: As `datagramSocket(to:)`.
  package func datagramSender() throws(Errno) -> FileDescriptor {
    try .datagramSocket(to: "/proc/self/fd/\(rawValue)")
  }

  /// Connects a Unix socket of any kind to another one; see `datagramSocket(to:)`.
  package func connect(to address: String) throws(Errno) {
    try Self.withSocketAddress(address) { target, size throws(Errno) in
      _ = try perform(.connect) { Glibc.connect(rawValue, target, size) }
    }
  }

  /// Makes a socket that receives datagrams at a new path. The corresponding C functions are `socket` and
  /// `bind`.
  ///
  /// - Throws: EADDRINUSE if the path exists, otherwise as in bind(2).
  package static func datagramSocket(receivingAt path: String) throws(Errno) -> FileDescriptor {
    let made = try datagramSocket()
    try withSocketAddress(path) { target, size throws(Errno) in
      _ = try perform(.bind) { Glibc.bind(made.rawValue, target, size) }
    }
    return made
  }

  /// Makes a socket without an address. The corresponding C function is `socket`.
  package static func datagramSocket() throws(Errno) -> FileDescriptor {
    let type = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    return FileDescriptor(owning: try perform(.socket) { socket(AF_UNIX, type, 0) })
  }

  private static func withSocketAddress(
    _ address: String, _ body: (UnsafePointer<sockaddr>, socklen_t) throws(Errno) -> Void
  ) throws(Errno) {
    var name = sockaddr_un()
    name.sun_family = sa_family_t(AF_UNIX)
    var path = Array(address.utf8)
    guard path.count < MemoryLayout.size(ofValue: name.sun_path) else { throw .fileNameTooLong }
    // The length delimits an abstract name; a path ends at a zero.
    if path.first == UInt8(ascii: "@") { path[0] = 0 } else { path.append(0) }
    let length = (MemoryLayout.offset(of: \sockaddr_un.sun_path) ?? 0) + path.count
    withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: path) }
    try withUnsafePointer(to: &name) { pointer throws(Errno) in
      try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { target throws(Errno) in
        try body(target, socklen_t(length))
      }
    }
  }

  /// Sends a datagram to the connected socket, and never waits. The C function is `send`.
  ///
  /// - Throws: `.wouldBlock` if too many wait for the receiver; ECONNREFUSED if its process has ended.
  package func sendDatagram(_ bytes: [UInt8]) throws(Errno) {
    let flags = Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)
    _ = try perform(.send) {
      bytes.withUnsafeBytes { send(rawValue, $0.baseAddress, $0.count, flags) }
    }
  }

  /// Takes the next datagram, and never waits. The C function is `recv`.
  ///
  /// - Returns: Its bytes; nil if none waits. One longer than `maximumBytes` counts as empty.
  package func receiveDatagram(maximumBytes: Int) throws(Errno) -> [UInt8]? {
    do throws(Errno) {
      return try withTemporaryBytes(maximumBytes) { buffer throws(Errno) in
        // With MSG_TRUNC the result is the size of the datagram, even if it does not fit.
        let count = try perform(.recv) {
          recv(rawValue, buffer.baseAddress, maximumBytes, Int32(MSG_DONTWAIT | MSG_TRUNC))
        }
        return count > maximumBytes ? [] : Array(buffer.prefix(count))
      }
    } catch {
      guard error == .wouldBlock else { throw error }
      return nil
    }
  }

  /// Ends receiving: waits for the socket end, and senders are refused. The C function is `shutdown`.
  package func endReceiving() throws(Errno) {
    _ = try perform(.shutdown) { shutdown(rawValue, Int32(SHUT_RD)) }
  }
}
