import Foundation
package import WormholeSystem

/// A Unix socket that receives datagrams, as a service manager does.
package struct DatagramReceiver: ~Copyable {
  private let socket: FileDescriptor

  /// - Parameter address: As for `FileDescriptor.sendDatagram`.
  package init(at address: String) throws(Errno) {
    let number = Foundation.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
    guard number != -1 else { throw Errno(rawValue: errno) }
    let made = FileDescriptor(owning: number)
    var name = sockaddr_un()
    name.sun_family = sa_family_t(AF_UNIX)
    let path = address.utf8.map { $0 == UInt8(ascii: "@") ? 0 : $0 }
    withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: path) }
    let length = socklen_t((MemoryLayout.offset(of: \sockaddr_un.sun_path) ?? 0) + path.count)
    let result = withUnsafePointer(to: &name) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(number, $0, length) }
    }
    guard result != -1 else { throw Errno(rawValue: errno) }
    socket = made
  }

  /// Returns the next datagram's text; nil if none has come by the deadline.
  package func next(until deadline: ContinuousClock.Instant) throws(Errno) -> String? {
    guard try waitReadable([socket.rawValue], until: deadline)[0] else { return nil }
    return String(
      decoding: try Program.read(from: socket.rawValue, maximumBytes: 4_096), as: UTF8.self)
  }
}
