import Glibc
package import WormholeSystem

extension Errno {
  /// Another process uses the port.
  static let addressInUse = Errno(rawValue: EADDRINUSE)
}

// TCP on this machine, for servers that are measured or disturbed.
extension FileDescriptor {
  private static func loopbackSocket() throws(Errno) -> FileDescriptor {
    let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard number != -1 else { throw Errno(rawValue: errno) }
    return FileDescriptor(owning: number)
  }

  /// Calls a function with the address of a port.
  private static func withAddress(
    _ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
  ) throws(Errno) {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    address.sin_port = port.bigEndian
    let length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
    }
    guard result != -1 else { throw Errno(rawValue: errno) }
  }

  /// Connects to a port of this machine, without gathering small writes. The corresponding C
  /// functions are `socket`, `connect` and `setsockopt`.
  ///
  /// - Parameter endpoint: "http://127.0.0.1:2379".
  package static func connected(to endpoint: String) throws(Errno) -> FileDescriptor {
    guard let port = endpoint.split(separator: ":").last.flatMap({ UInt16($0) }) else {
      throw .invalidArgument
    }
    let made = try loopbackSocket()
    try withAddress(port) { Glibc.connect(made.rawValue, $0, $1) }
    var isOn: Int32 = 1
    let length = socklen_t(MemoryLayout<Int32>.size)
    guard setsockopt(made.rawValue, Int32(IPPROTO_TCP), TCP_NODELAY, &isOn, length) != -1 else {
      throw Errno(rawValue: errno)
    }
    return made
  }

  /// Listens on a port of this machine. The corresponding C functions are `bind` and `listen`.
  ///
  /// - Throws: `.addressInUse`.
  static func listening(onPort port: UInt16) throws(Errno) -> FileDescriptor {
    let made = try loopbackSocket()
    try withAddress(port) { address, length in
      bind(made.rawValue, address, length) == -1 ? -1 : listen(made.rawValue, 64)
    }
    return made
  }

  /// Waits for a connection. Programs that are started do not inherit it
  /// (`ChildProcess`). The corresponding C function is `accept`.
  ///
  /// - Throws: Also once `endConnection` was called for this descriptor.
  func acceptConnection() throws(Errno) -> FileDescriptor {
    while true {
      let number = accept(rawValue, nil, nil)
      if number != -1 { return FileDescriptor(owning: number) }
      // The other side may be gone again.
      guard errno == EINTR || errno == ECONNABORTED else { throw Errno(rawValue: errno) }
    }
  }

  /// Ends a connection for both sides, also for threads that wait for it. The corresponding C function
  /// is `shutdown`.
  func endConnection() {
    // It fails if the connection has ended already.
    _ = shutdown(rawValue, Int32(SHUT_RDWR))
  }

  /// Sends all bytes; the end of the other side is an error, and no signal. The corresponding C function
  /// is `send`.
  func sendAll(_ bytes: [UInt8]) throws(Errno) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        send(rawValue, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { throw Errno(rawValue: errno) }
      rest = rest.dropFirst(count)
    }
  }
}
