import WormholeSystem

// What is asked of one member, and of no other.
extension EtcdCluster {
  /// Returns a member's certificate, in PEM, over its own connection; nil if it is not encrypted.
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
