package import WormholeSystem
import WormholeToolkit

/// A Unix socket that receives datagrams, as a service manager does.
package struct DatagramReceiver: ~Copyable {
  private let socket: FileDescriptor

  /// - Parameter address: As for `FileDescriptor.sendDatagram`.
  package init(at address: String) throws(Errno) {
    socket = try .datagramSocket(receivingAt: address)
  }

  /// Returns the next datagram's text; nil if none has come by the deadline.
  package func next(until deadline: ContinuousClock.Instant) throws(Errno) -> String? {
    guard try waitReadable([socket.rawValue], until: deadline)[0] else { return nil }
    return try socket.receiveDatagram(maximumBytes: 4_096).map {
      String(decoding: $0, as: UTF8.self)
    }
  }
}
