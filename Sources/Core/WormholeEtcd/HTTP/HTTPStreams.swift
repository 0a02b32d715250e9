import Synchronization
import WormholeShims
import WormholeSystem

/// The answer to a request that does not end: it is delivered line by line as it arrives. The
/// request may continue, too: some servers read it while they answer.
package final class HTTPStream: Sendable {
  let request: HTTPRequest
  let maximumLineBytes: Int
  let connectLimit: Duration
  let onLine: @Sendable ([UInt8]) -> Void
  let onEnd: @Sendable (End) -> Void
  let isOpen: Bool
  let isCancelled = Atomic(false)
  private let unsent = Mutex<[UInt8]>([])

  /// An answer whose status is not 200, so that its content is not a stream; `.ended` is the end
  /// that the server chose.
  package typealias End = Result<HTTPAnswer, HTTPError>

  /// Starts a stream; its functions are called one at a time on the thread of all streams, which
  /// they must not block.
  ///
  /// - Parameters:
  ///   - maximumLineBytes: The longest line.
  ///   - connectLimit: The time until there is a connection. The rest has no limit.
  ///   - isOpen: Whether `send` adds to the request's content, which then never ends. The server is
  ///     asked to close the connection after its answer. If it closes it before its header, or
  ///     without an announcement, that goes unnoticed.
  ///   - onLine: Gets each line.
  ///   - onEnd: Called exactly once, after the last line.
  /// - Throws: `.libraryMissing`, or `.refused` if the process has no resources for a thread.
  package init(
    _ request: HTTPRequest, maximumLineBytes: Int, connectLimit: Duration, isOpen: Bool = false,
    onLine: @escaping @Sendable ([UInt8]) -> Void,
    onEnd: @escaping @Sendable (End) -> Void
  ) throws(HTTPError) {
    self.request = request
    self.maximumLineBytes = maximumLineBytes
    self.connectLimit = connectLimit
    self.isOpen = isOpen
    self.onLine = onLine
    self.onEnd = onEnd
    try HTTPStreams.shared.get().start(self)
  }

  /// Adds to the content of the request. Returns at once.
  package func send(_ content: [UInt8]) {
    precondition(isOpen, "the length of the content has been sent")
    let isFirst = unsent.withLock { unsent in
      defer { unsent += content }
      return unsent.isEmpty
    }
    if isFirst { HTTPStreams.wakeShared() }
  }

  func takeUnsent() -> [UInt8] { unsent.withLock { exchange(&$0, with: []) } }

  /// Ends the stream. Returns at once; a line that is being delivered is the last one.
  package func cancel() {
    if !isCancelled.exchange(true, ordering: .acquiringAndReleasing) { HTTPStreams.wakeShared() }
  }
}

/// The thread that serves all streams of the process. It sleeps until a stream has news or another
/// thread wakes it.
final class HTTPStreams: Sendable {
  static let shared = Result { () throws(HTTPError) in try HTTPStreams() }

  // libcurl allows other threads to wake the poll of a multi handle, which is all that they do with
  // it (curl_multi_wakeup(3)); the streams' thread does the rest.
  private struct Multi: @unchecked Sendable {
    let raw: UnsafeMutableRawPointer
  }

  private let library: CurlLibrary
  private let multi: Multi
  private let starting = Mutex<[HTTPStream]>([])

  private init() throws(HTTPError) {
    library = try CurlLibrary.get()
    guard let raw = library.functions.pointee.multi_init() else {
      throw HTTPError(.refused, "libcurl has no memory for streams")
    }
    multi = Multi(raw: raw)
    do throws(Errno) {
      try startThread(name: "http streams") { [self] in run() }
    } catch {
      throw HTTPError(.refused, "the process cannot have another thread: \(error)")
    }
  }

  func start(_ stream: HTTPStream) {
    starting.withLock { $0.append(stream) }
    wake()
  }

  /// Without the thread no stream exists.
  static func wakeShared() {
    if case .success(let streams) = shared { streams.wake() }
  }

  private func wake() {
    // Fails only if the pipe of the wake-up is broken, which would be a fault of this process.
    _ = library.functions.pointee.multi_wakeup(multi.raw)
  }

  private func run() {
    var active: [UnsafeMutableRawPointer: Active] = [:]
    while true {
      begin(&active)
      for (raw, stream) in active
      where stream.stream.isCancelled.load(ordering: .acquiring) {
        end(raw, Active.cancelled, active: &active)
      }
      var running: Int32 = 0
      _ = library.functions.pointee.multi_perform(multi.raw, &running)
      // Streams that wait for content go on even if there is none: libcurl does not report the end
      // of a paused one.
      if active.values.count(where: { $0.resume() }) > 0 {
        _ = library.functions.pointee.multi_perform(multi.raw, &running)
      }
      var code: Int32 = 0
      while let raw = ccurl_take_ended(library.functions, multi.raw, &code) {
        guard let stream = active[raw] else { continue }
        end(raw, stream.result(code), active: &active)
      }
      // Returns earlier for news, a wake-up (even an earlier one), or a deadline of libcurl's own.
      let failure = library.functions.pointee.multi_poll(multi.raw, nil, 0, Int32.max, nil)
      // No memory: the streams continue as soon as there is some.
      if failure != 0 { pauseThread(.milliseconds(100)) }
    }
  }

  private func begin(_ active: inout [UnsafeMutableRawPointer: Active]) {
    for stream in starting.withLock({ exchange(&$0, with: []) }) {
      do throws(HTTPError) {
        let begun = try Active(stream, library)
        guard library.functions.pointee.multi_add_handle(multi.raw, begun.handle.raw) == 0 else {
          throw HTTPError(.refused, "libcurl has no memory for a stream")
        }
        active[begun.handle.raw] = begun
      } catch {
        stream.onEnd(.failure(error))
      }
    }
  }

  private func end(
    _ raw: UnsafeMutableRawPointer, _ end: HTTPStream.End,
    active: inout [UnsafeMutableRawPointer: Active]
  ) {
    guard let stream = active.removeValue(forKey: raw) else { return }
    // Fails only for handles that are not this one's.
    _ = library.functions.pointee.multi_remove_handle(multi.raw, raw)
    stream.stream.onEnd(end)
  }
}

/// A stream with its connection; belongs to the streams' thread.
private final class Active {
  let stream: HTTPStream
  let handle: EasyHandle
  private let transfer: Transfer
  private var lines: LineSplitter
  /// The content, if its status is not 200.
  private var content: [UInt8] = []

  static let cancelled = HTTPStream.End.failure(HTTPError(.cancelled, "it was cancelled"))

  init(_ stream: HTTPStream, _ library: CurlLibrary) throws(HTTPError) {
    self.stream = stream
    handle = try EasyHandle(library)
    transfer = Transfer(
      sending: stream.request.content, isOpen: stream.isOpen,
      maximumBytes: stream.maximumLineBytes)
    lines = LineSplitter(maximumBytes: stream.maximumLineBytes)
    // The transfer ends before its stream is released.
    transfer.receive = { [unowned self] in take($0) }
    try handle.prepare(
      stream.request, for: transfer, limit: nil,
      connectLimit: max(1, Int(stream.connectLimit.pollMilliseconds)))
  }

  private var isCancelled: Bool { stream.isCancelled.load(ordering: .acquiring) }

  private func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
    // The remaining bytes of a fast server are not read.
    guard !isCancelled else { return false }
    guard handle.status == 200 else {
      content += bytes
      return content.count <= stream.maximumLineBytes
    }
    return lines.take(bytes) { line in if !isCancelled { stream.onLine(line) } }
  }

  /// - Returns: Whether it was paused.
  func resume() -> Bool {
    guard transfer.isPaused else { return false }
    transfer.resume(stream.takeUnsent())
    // Without memory it is tried again.
    transfer.isPaused = !handle.resume()
    return !transfer.isPaused
  }

  func result(_ code: Int32) -> HTTPStream.End {
    guard !isCancelled else { return Self.cancelled }
    if let error = handle.error(code, of: transfer) { return .failure(error) }
    return handle.status == 200
      ? .failure(HTTPError(.ended, "it ended the stream"))
      : .success(HTTPAnswer(status: handle.status, content: content))
  }
}
