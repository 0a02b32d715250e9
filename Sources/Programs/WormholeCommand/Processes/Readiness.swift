import WormholeSystem
import WormholeToolkit

/// Reports to the starter of this program that it is ready: that it misses nothing from now on.
///
/// A service manager waits for a datagram on the socket `NOTIFY_SOCKET` (sd_notify(3)); a script or a
/// supervisor, for a line break on the descriptor of `--ready-fd`.
struct Readiness: Sendable {
  static let socketVariable = "NOTIFY_SOCKET"

  /// The address of the service manager's socket; nil if there is none.
  let socket: String?
  /// The descriptor that the starter gave; nil without one.
  let descriptor: Int32?

  /// - Throws: `CommandError` for a descriptor that is not open.
  init(socket: String?, descriptor: UInt64?) throws(CommandError) {
    self.socket = socket.flatMap { $0.isEmpty ? nil : $0 }
    self.descriptor = descriptor.flatMap(Int32.init(exactly:))
    guard let descriptor else { return }
    guard let own = self.descriptor, Program.isOpen(own) else {
      throw CommandError(
        cannot: "use descriptor \(descriptor) for --ready-fd",
        because: "it is not open; a shell opens it with \(descriptor)>FILE", status: .usage)
    }
  }

  /// Reports readiness. Errors go to `report`, and the work continues, because only the starter
  /// waits.
  func announce(_ report: (String) -> Void) {
    if let descriptor {
      do throws(Errno) {
        try Program.write([UInt8(ascii: "\n")], to: descriptor)
        // The starter may wait for the end of the file; standard streams are still needed.
        if descriptor > 2 { try FileDescriptor(owning: descriptor).close() }
      } catch {
        report("cannot say on descriptor \(descriptor) that it is ready: \(error)")
      }
    }
    if let socket {
      do throws(Errno) {
        try FileDescriptor.sendDatagram(Array("READY=1".utf8), toSocket: socket)
      } catch {
        report(
          "cannot notify the service manager (\(Self.socketVariable)) that it is ready: \(error)")
      }
    }
  }
}
