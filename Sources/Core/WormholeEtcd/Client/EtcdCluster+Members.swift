import WormholeSystem

// What is asked of one member, and of no other.
extension EtcdCluster {
  /// Asks one member for the newest revision: whether it runs, knows the others, and has the same
  /// history as before.
  func look(at endpoint: String, reading key: [UInt8]) throws(EtcdError) {
    try ask(
      endpoint, question: Question("kv/range", .range(.key(key), countOnly: true)),
      until: .now + configuration.probePatience
    ) { _, _ in () }
  }

  /// Asks one member for its time of day.
  ///
  /// - Returns: The seconds since 1970, without fractions; nil if it does not report them.
  func time(at endpoint: String, until deadline: ContinuousClock.Instant) throws(EtcdError)
    -> Int64?
  {
    // Any answer has the time, even a refusal, so it needs no token.
    do throws(HTTPError) {
      return try post(endpoint, Question("maintenance/status"), token: nil, until: deadline)
        .date.flatMap(HTTPDate.seconds)
    } catch {
      throw .unreachable([(endpoint, error.reason)])
    }
  }

  /// Returns a member's certificate, in PEM, by a connection of its own; nil if it is not encrypted.
  func certificate(
    at endpoint: String, until deadline: ContinuousClock.Instant
  ) throws(HTTPError) -> String? {
    guard endpoint.hasPrefix("https:") else { return nil }
    var request = HTTPRequest(
      url: endpoint + "/health", content: Array("{}".utf8), security: configuration.security)
    request.wantsCertificate = true
    return try HTTPClient().post(request, maximumBytes: AnswerLimit.metrics, until: deadline)
      .certificate
  }

  /// Returns a member's metrics, in the text format of Prometheus; nil if it has none to give at
  /// this address.
  func metrics(at endpoint: String, until deadline: ContinuousClock.Instant) -> String? {
    let request = HTTPRequest(
      url: endpoint + "/metrics", content: Array("{}".utf8), security: configuration.security)
    // Some operators serve the metrics at another address; then the standard quota counts.
    let answer = try? configuration.transport.post(
      request, maximumBytes: AnswerLimit.metrics, until: deadline)
    guard let answer, answer.status == 200 else { return nil }
    return String(decoding: answer.content, as: UTF8.self)
  }

  /// Sends one member, and no other, a request that changes nothing.
  func ask<Result>(
    _ endpoint: String, question: Question, until deadline: ContinuousClock.Instant,
    _ understand: (WireAnswer, Int) -> Result?
  ) throws(EtcdError) -> Result {
    do throws(MemberFailure) {
      return try send(endpoint, question, until: deadline, understand)
    } catch {
      throw error.error(of: endpoint)
    }
  }

  /// Prepares a stream: returns its request, and the token in it.
  func stream(
    _ path: String, at endpoint: String
  ) throws(MemberFailure) -> (request: ([UInt8]) -> HTTPRequest, token: String?) {
    let token = try token(at: endpoint, until: .now + configuration.patience)
    return (
      { content in
        var request = self.request(endpoint, path, content: content, token: token)
        // A member that has lost the others ends the stream instead of staying silent.
        request.headers.append("Grpc-Metadata-hasleader: true")
        return request
      }, token
    )
  }
}
