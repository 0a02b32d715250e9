import WormholeShims

/// One of libcurl's handles: a transfer, and the connections that are kept for the next one.
// libcurl's rule for a handle is one thread at a time (libcurl-thread(3)): a call's handle belongs to
// its thread, or waits in the pool's lock, and a stream's handle belongs to the streams' thread.
final class EasyHandle: @unchecked Sendable {
  let library: CurlLibrary
  let raw: UnsafeMutableRawPointer
  private let errorText: UnsafeMutablePointer<CChar>
  private var headers: UnsafeMutableRawPointer?
  private var security = TransportSecurity()

  init(_ library: CurlLibrary) throws(HTTPError) {
    guard let raw = library.functions.pointee.easy_init() else {
      throw HTTPError(.refused, "libcurl has no memory for a connection")
    }
    self.library = library
    self.raw = raw
    errorText = .allocate(capacity: Int(ccurl_ERROR_BYTES))
  }

  deinit {
    library.functions.pointee.easy_cleanup(raw)
    library.functions.pointee.slist_free_all(headers)
    errorText.deallocate()
  }

  /// Prepares a transfer; only an earlier one's connections are kept.
  ///
  /// - Parameters:
  ///   - transfer: The argument of libcurl's callbacks; the caller keeps it alive.
  ///   - limit: The milliseconds for the whole transfer, or nil for a stream.
  ///   - connectLimit: The milliseconds until there is a connection.
  func prepare(
    _ request: HTTPRequest, for transfer: Transfer, limit: Int?, connectLimit: Int
  ) throws(HTTPError) {
    guard request.url.hasPrefix("http://") || request.url.hasPrefix("https://") else {
      throw HTTPError(.nameNotFound, "the address has to begin with http:// or https://")
    }
    library.functions.pointee.easy_reset(raw)
    errorText.pointee = 0
    try set(ccurl_ERRORBUFFER, errorText)
    try set(ccurl_URL, text: request.url)
    // Without signals: no alarm for a name's deadline, and no change of SIGPIPE's handler.
    try set(ccurl_NOSIGNAL, 1)
    // A slow resolver does not hold a call beyond its deadline. Older libraries lack this option.
    _ = ccurl_set_number(library.functions, raw, ccurl_QUICK_EXIT, 1)
    // HTTP and HTTPS only; HTTP/1.1 only, because of HTTP/2 libcurl repeats refused streams.
    try set(ccurl_PROTOCOLS, 3)
    try set(ccurl_HTTP_VERSION, 2)
    try set(ccurl_FOLLOWLOCATION, 0)
    // No proxy of the environment: it could repeat a request.
    try set(ccurl_PROXY, text: "")
    try set(ccurl_TCP_KEEPALIVE, 1)
    try set(ccurl_CONNECTTIMEOUT_MS, connectLimit)
    if let limit {
      try set(ccurl_TIMEOUT_MS, limit)
    } else {
      // The connection of a stream ends with it, because the rest of its answer is not wanted.
      try set(ccurl_FORBID_REUSE, 1)
    }
    try secure(by: request.security)
    if request.wantsCertificate { try set(ccurl_CERTINFO, 1) }
    // On a connection that it wants to keep, Go's server stops reading a request once it answers.
    // And libcurl reports the end of an answer only once the content is sent, or the server has
    // said that it closes the connection.
    let open = ["Transfer-Encoding: chunked", "Connection: close"]
    try set(headers: request.headers + (transfer.contentBytes == nil ? open : []))
    try set(ccurl_POST, 1)
    let context = Unmanaged.passUnretained(transfer).toOpaque()
    if let bytes = transfer.contentBytes {
      try check(
        ccurl_set_size(library.functions, raw, ccurl_POSTFIELDSIZE_LARGE, Int64(bytes)))
    }
    try set(content: request.content, of: transfer, context)
    try set(ccurl_WRITEFUNCTION, Transfer.take)
    try set(ccurl_WRITEDATA, context)
    try set(ccurl_HEADERFUNCTION, Transfer.takeHeader)
    try set(ccurl_HEADERDATA, context)
  }

  // libcurl sends a request again when a kept connection ends before the answer, unless a function
  // prevents it: one that is asked before each sending, or one that gives the content and cannot start again.
  private func set(
    content: [UInt8], of transfer: Transfer, _ context: UnsafeMutableRawPointer
  ) throws(HTTPError) {
    // libcurl sends a content of this size in one segment with the header: in two, a server wakes twice.
    // It copies the content, and older libraries lack the function.
    if let bytes = transfer.contentBytes, bytes < 64 << 10,
      ccurl_set_sending(library.functions, raw, Transfer.begin) == 0
    {
      try set(ccurl_PREREQDATA, context)
      return try check(
        content.withUnsafeBytes {
          ccurl_set_address(library.functions, raw, ccurl_COPYPOSTFIELDS, $0.baseAddress)
        })
    }
    try set(ccurl_READFUNCTION, Transfer.give)
    try set(ccurl_READDATA, context)
  }

  /// Makes the prepared transfer; blocks until it ends.
  ///
  /// - Returns: libcurl's code; 0 is success.
  func perform() -> Int32 { library.functions.pointee.easy_perform(raw) }

  /// Continues a transfer that waited for more content; on the transfer's thread.
  ///
  /// - Returns: Whether libcurl had the memory for it.
  func resume() -> Bool { library.functions.pointee.easy_pause(raw, 0) == 0 }

  private func secure(by security: TransportSecurity) throws(HTTPError) {
    self.security = security
    try set(ccurl_SSL_VERIFYPEER, 1)
    try set(ccurl_SSL_VERIFYHOST, 2)
    // 6: TLS 1.2 or newer.
    try set(ccurl_SSLVERSION, 6)
    if let file = security.authorities { try set(ccurl_CAINFO, text: file) }
    if let file = security.certificate { try set(ccurl_SSLCERT, text: file) }
    if let file = security.key { try set(ccurl_SSLKEY, text: file) }
  }

  private func set(headers lines: [String]) throws(HTTPError) {
    library.functions.pointee.slist_free_all(headers)
    headers = nil
    // libcurl would wait for "100 Continue" before large contents.
    for line in lines + ["Expect:"] {
      guard !line.utf8.contains(where: { $0 < 32 }) else {
        throw HTTPError(.refused, "a header line has a control character")
      }
      guard let longer = library.functions.pointee.slist_append(headers, line) else {
        throw HTTPError(.refused, "libcurl has no memory for a header")
      }
      headers = longer
    }
    try set(ccurl_HTTPHEADER, headers)
  }

  /// The status of the answer; 0 before there is one.
  var status: Int {
    ccurl_number(library.functions, raw, Int32(ccurl_INFO_RESPONSE_CODE))
  }

  /// The server's certificate, in PEM; nil if no connection was made, or it was not wanted.
  var serverCertificate: String? {
    ccurl_server_certificate(library.functions, raw).map { String(cString: $0) }
  }

  /// The error of a transfer that ended with a code; nil if there is a whole answer.
  func error(_ code: Int32, of transfer: Transfer) -> HTTPError? {
    if code == 0 {
      return transfer.hasWholeHeader
        ? nil : HTTPError(.inDoubt, "the connection ended in the middle of the answer's header")
    }
    if transfer.exceedsLimit {
      return HTTPError(.tooLarge, "its answer has more than \(transfer.maximumBytes) bytes")
    }
    var text = errorText.pointee == 0 ? library.text(ofCode: code) : String(cString: errorText)
    // libcurl cuts its text, perhaps within a path.
    if text.utf8.count >= ccurl_ERROR_BYTES - 1, !security.files.isEmpty {
      text += "...; the files are " + security.files
    }
    // The kernel's error number of the last connection that failed.
    let number = ccurl_number(library.functions, raw, Int32(ccurl_INFO_OS_ERRNO))
    return .transfer(code, text, contentWasTaken: transfer.contentWasTaken, errorNumber: number)
  }

  private func set(_ option: ccurl_option, _ value: Int) throws(HTTPError) {
    try check(ccurl_set_number(library.functions, raw, option, value))
  }

  private func set(_ option: ccurl_option, text: String) throws(HTTPError) {
    // libcurl copies texts.
    try check(
      text.withCString { ccurl_set_address(library.functions, raw, option, $0) })
  }

  private func set(_ option: ccurl_option, _ value: UnsafeRawPointer?) throws(HTTPError) {
    try check(ccurl_set_address(library.functions, raw, option, value))
  }

  private func set(_ option: ccurl_option, _ value: @escaping ccurl_transfer) throws(HTTPError) {
    try check(ccurl_set_transfer(library.functions, raw, option, value))
  }

  private func check(_ code: Int32) throws(HTTPError) {
    guard code != 0 else { return }
    throw HTTPError(.refused, "libcurl refused an option: " + library.text(ofCode: code))
  }
}
