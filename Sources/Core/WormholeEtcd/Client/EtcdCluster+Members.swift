import WormholeSystem

// What is asked of one member, and of no other.
extension EtcdCluster {
  /// Asks one member for the newest revision: whether it runs, knows the others, and has the same
  /// history as before.
  func look(at endpoint: String, reading key: [UInt8]) throws(EtcdError) {
    try ask(
      endpoint, question: Question("kv/range", .range(.key(key), countOnly: true)),
      until: .now + configuration.probePatience
    ) { (_: WireRangeAnswer, _) in () }
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

  /// Sends one member, and no other, a request that changes nothing.
  func ask<Answer: WireAnswer, Result>(
    _ endpoint: String, question: Question, until deadline: ContinuousClock.Instant,
    _ understand: (Answer, Int) -> Result?
  ) throws(EtcdError) -> Result {
    let attempt = try send(endpoint, question: question, until: deadline, understand)
    guard let answer = attempt.answer else {
      throw .unreachable([(endpoint, attempt.failure?.reason ?? "it said nothing")])
    }
    return answer
  }

  /// Why a stream cannot begin.
  struct StreamFailure: Error {
    let error: EtcdError
    /// Whether the same member would answer the same again.
    let isFinal: Bool
  }

  /// Prepares a stream: returns its request, and the token in it.
  func stream(
    _ path: String, at endpoint: String
  ) throws(StreamFailure) -> (request: ([UInt8]) -> HTTPRequest, token: String?) {
    let found: Attempt<String?>
    do throws(EtcdError) {
      found = try token(at: endpoint, until: .now + configuration.patience)
    } catch {
      throw StreamFailure(error: error, isFinal: true)
    }
    if let failure = found.failure {
      throw StreamFailure(
        error: .unreachable([(endpoint, failure.reason)]), isFinal: failure.prospect == .none)
    }
    let token = found.answer ?? nil
    return (
      { content in
        var request = self.request(endpoint, path, content: content, token: token)
        // A member that has lost the others ends the stream instead of staying silent.
        request.headers.append("Grpc-Metadata-hasleader: true")
        return request
      }, token
    )
  }

  /// Returns why the member refuses a stream for good; nil if the next one may last.
  func refusal(of end: HTTPStreamEnd, from endpoint: String) -> EtcdError? {
    switch end {
    case .failed(let error) where error.code == .certificate:
      return .unreachable([(endpoint, error.reason)])
    case .failed: return nil
    case .answered(let answer):
      switch Self.refusal(of: answer) {
      case .final(let error): return error
      case .lasting(let reason): return .unreachable([(endpoint, reason)])
      case .passing, .doubtful, .tokenExpired: return nil
      }
    }
  }
}
