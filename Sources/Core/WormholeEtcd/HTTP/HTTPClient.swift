import Synchronization
import WormholeSystem

/// Posts requests, and keeps connections for the next ones: for a moment as many as a burst of
/// requests needed, and then one.
///
/// Each call blocks its thread, at most until its deadline; several threads may call at once, each
/// on its own connection. A request is sent at most once: if it is in doubt whether the server got
/// it, the error says so.
package final class HTTPClient: Sendable {
  /// More connections than these are closed after their call.
  private static let maximumIdle = 8
  /// How long any but the last connection is kept without a request.
  private let patience: Duration

  /// A handle that belongs to no call, and the time of its last one.
  private struct Idle: Sendable {
    let handle: EasyHandle
    let since: ContinuousClock.Instant
  }

  private struct State: Sendable {
    /// The one that was used last is at the end, and is taken first.
    var idle: [Idle] = []
    /// Whether spare ones will be looked for.
    var isWaiting = false
  }

  private let state = Mutex(State())

  package init(keepingSpares patience: Duration = .seconds(5)) { self.patience = patience }

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
    if let last = state.withLock({ $0.idle.popLast() }) { return last.handle }
    return try EasyHandle(try CurlLibrary.get())
  }

  private func giveBack(_ handle: EasyHandle) {
    // Beyond the limit it is released here, outside the lock, which closes its connection.
    let mustWait = state.withLock { state in
      if state.idle.count < Self.maximumIdle {
        state.idle.append(Idle(handle: handle, since: .now))
      }
      defer { state.isWaiting = state.isWaiting || state.idle.count > 1 }
      return !state.isWaiting && state.idle.count > 1
    }
    if mustWait { closeSparesLater() }
  }

  private func closeSparesLater() {
    Blocking.queue().after(patience) { [weak self] in self?.closeSpares() }
  }

  private func closeSpares() {
    let (old, areMore) = state.withLock { state in
      let end = ContinuousClock.now - patience
      let old = Array(state.idle.dropLast().prefix { $0.since <= end })
      state.idle.removeFirst(old.count)
      state.isWaiting = state.idle.count > 1
      return (old, state.isWaiting)
    }
    // Released outside the lock, which closes the connections.
    withExtendedLifetime(old) {}
    if areMore { closeSparesLater() }
  }

  var idleConnections: Int { state.withLock(\.idle.count) }
}
