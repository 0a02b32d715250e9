import Synchronization
import WormholeSystem

/// Posts requests, and keeps connections for the next ones.
///
/// Each call blocks its thread, at most until its deadline; several threads may call at once, each
/// on its own connection. A request is sent at most once: if it is in doubt whether the server got
/// it, the error says so.
package final class HTTPClient: Sendable {
  /// More connections than these are closed after their call.
  private static let maximumIdle = 8

  // A handle is in this list or belongs to one call.
  private let idle = Mutex<[EasyHandle]>([])

  package init() {}

  /// Posts a request and waits for the whole answer, whatever its status.
  ///
  /// - Parameters:
  ///   - maximumBytes: The longest content of an answer.
  ///   - deadline: Bounds the whole call: name resolution, connection, transfer.
  /// - Throws: `HTTPError`; its code says whether the server may have got the request.
  package func post(
    _ request: HTTPRequest, maximumBytes: Int, until deadline: ContinuousClock.Instant
  ) throws(HTTPError) -> HTTPAnswer {
    let left = ContinuousClock.now.duration(to: deadline).pollMilliseconds
    guard left > 0 else { throw HTTPError(.timedOut, "there was no time left for it") }
    let handle = try take()
    defer { giveBack(handle) }
    var content: [UInt8] = []
    let transfer = Transfer(sending: request.content, maximumBytes: maximumBytes)
    transfer.receive = { bytes in
      guard content.count + bytes.count <= maximumBytes else { return false }
      content += bytes
      return true
    }
    try handle.prepare(request, for: transfer, limit: Int(left), connectLimit: Int(left))
    // If libcurl writes through OpenSSL, a connection that ended raises SIGPIPE.
    let code = withExtendedLifetime(transfer) { withoutBrokenPipeSignal { handle.perform() } }
    if let error = handle.error(code, of: transfer) { throw error }
    return HTTPAnswer(
      status: handle.status, content: content, date: transfer.date,
      certificate: request.wantsCertificate ? handle.serverCertificate : nil)
  }

  private func take() throws(HTTPError) -> EasyHandle {
    if let handle = idle.withLock({ $0.popLast() }) { return handle }
    return try EasyHandle(try CurlLibrary.get())
  }

  private func giveBack(_ handle: EasyHandle) {
    // Beyond the limit it is released here, outside the lock, which closes its connection.
    idle.withLock { if $0.count < Self.maximumIdle { $0.append(handle) } }
  }
}
