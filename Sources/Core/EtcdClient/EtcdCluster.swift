import HTTPTransfers
import Synchronization
import SystemCalls

/// The members of a cluster as one: which of them is asked, who we are there, and that it is one
/// cluster.
final class EtcdCluster: Sendable {
  /// What it means to ask twice.
  enum Effect {
    /// Nothing more than asking once: a read, a keep-alive, a grant of a lease with a number.
    case repeatable
    /// The same, but another cluster would take it, too: a put of what never changes.
    case repeatableWrite
    /// It could happen twice, so it is sent once.
    case once
  }

  private struct State {
    /// The index of the endpoint that answered last.
    var preferred = 0
    /// The cluster that answered first; all others are refused.
    var cluster: String?
    /// The endpoints that answered as members of it.
    var verified: Set<String> = []
    var token: String?
  }

  let configuration: EtcdConfiguration
  private let client = HTTPClient()
  private let state = Mutex(State())

  init(_ configuration: EtcdConfiguration) { self.configuration = configuration }

  /// The result of asking one member.
  private enum Attempt<Answer> {
    case answered(Answer)
    /// Nothing was done. Final is what the same member would say again.
    case failed(String, isFinal: Bool)
    case doubtful(String)
    /// It was done, and its answer is longer than accepted.
    case tooLarge(String)
  }

  /// Asks the members one after the other, beginning with the one that answered last, until one
  /// answers or the deadline passes.
  func call<Answer: WireAnswer>(
    _ path: String, _ message: WireText, _ effect: Effect,
    until deadline: ContinuousClock.Instant
  ) throws(EtcdError) -> Answer {
    let content = message.bytes
    var reasons: [String: String] = [:]
    var pause = Duration.milliseconds(10)
    while true {
      var mayHelp = false
      for endpoint in endpointsInOrder {
        guard ContinuousClock.now < deadline else { throw unreachable(reasons) }
        let attempt: Attempt<Answer> = try ask(endpoint, path, content, effect, until: deadline)
        switch attempt {
        case .answered(let answer): return answer
        case .failed(let reason, let isFinal):
          reasons[endpoint] = reason
          if !isFinal { mayHelp = true }
        case .doubtful(let reason):
          if effect == .once {
            dislike(endpoint)
            throw EtcdError(.outcomeUnknown, "\(endpoint): \(reason)")
          }
          reasons[endpoint] = reason
          mayHelp = true
        case .tooLarge(let reason):
          throw EtcdError(effect == .once ? .outcomeUnknown : .tooLarge, "\(endpoint): \(reason)")
        }
        dislike(endpoint)
      }
      guard mayHelp, ContinuousClock.now + pause < deadline else { throw unreachable(reasons) }
      pauseThread(pause)
      pause = min(pause * 2, .milliseconds(500))
    }
  }

  private func unreachable(_ reasons: [String: String]) -> EtcdError {
    .unreachable(
      configuration.endpoints.map { ($0, reasons[$0] ?? "there was no time left to ask it") })
  }

  private var endpointsInOrder: [String] {
    let all = configuration.endpoints
    let first = state.withLock { $0.preferred } % all.count
    return Array(all[first...] + all[..<first])
  }

  /// The endpoint that answered last.
  var preferred: String {
    configuration.endpoints[state.withLock { $0.preferred } % configuration.endpoints.count]
  }

  /// From now on another endpoint is asked first.
  func dislike(_ endpoint: String) {
    state.withLock { state in
      if configuration.endpoints[state.preferred % configuration.endpoints.count] == endpoint {
        state.preferred = (state.preferred + 1) % configuration.endpoints.count
      }
    }
  }

  private func ask<Answer: WireAnswer>(
    _ endpoint: String, _ path: String, _ content: [UInt8], _ effect: Effect,
    until deadline: ContinuousClock.Instant
  ) throws(EtcdError) -> Attempt<Answer> {
    let deadline = min(deadline, .now + configuration.patience)
    // Another cluster would take a write, too. Its first member shows which cluster it is.
    if effect != .repeatable, !isVerified(endpoint) {
      let status: Attempt<WirePlainAnswer> = try send(
        endpoint, "maintenance/status", Array("{}".utf8), until: deadline)
      switch status {
      case .answered: break
      case .failed(let reason, let isFinal): return .failed(reason, isFinal: isFinal)
      case .doubtful(let reason), .tooLarge(let reason):
        return .failed(reason, isFinal: false)
      }
    }
    return try send(endpoint, path, content, until: deadline)
  }

  private func isVerified(_ endpoint: String) -> Bool {
    configuration.endpoints.count == 1 || state.withLock { $0.verified.contains(endpoint) }
  }

  private func send<Answer: WireAnswer>(
    _ endpoint: String, _ path: String, _ content: [UInt8],
    until deadline: ContinuousClock.Instant
  ) throws(EtcdError) -> Attempt<Answer> {
    var isRepeated = false
    while true {
      let token: String?
      switch try self.token(at: endpoint, until: deadline) {
      case .answered(let found): token = found
      case .failed(let reason, let isFinal): return .failed(reason, isFinal: isFinal)
      case .doubtful(let reason), .tooLarge(let reason):
        return .failed(reason, isFinal: false)
      }
      let result = post(endpoint, path, content, token: token, until: deadline)
      switch result {
      case .failure(let error): return try attempt(of: error)
      case .success(let answer) where answer.status == 200:
        guard let message = EtcdWire.decode(answer.content, as: Answer.self) else {
          return .doubtful("its answer is not what etcd says")
        }
        if let reason = refusal(of: message.header, from: endpoint) {
          return .doubtful(reason)
        }
        return .answered(message)
      case .success(let answer):
        switch Self.refusal(of: answer) {
        case .final(let error): throw error
        case .passing(let reason): return .failed(reason, isFinal: false)
        case .doubtful(let reason): return .doubtful(reason)
        case .tokenExpired:
          // Refused before anything was done, so asking again is no second time.
          guard let token, !isRepeated else {
            throw EtcdError(.credentialsRefused, "the token was refused")
          }
          forget(token)
          isRepeated = true
        }
      }
    }
  }

  private static func refusal(of answer: HTTPAnswer) -> Refusal {
    let error = EtcdWire.decode(answer.content, as: WireError.self)
    return Refusal(status: answer.status, code: error?.code, message: error?.message ?? "")
  }

  private func attempt<Answer>(of error: HTTPError) throws(EtcdError) -> Attempt<Answer> {
    switch error.code {
    case .libraryMissing: throw EtcdError(.libraryMissing, error.reason)
    case .certificate: return .failed(error.reason, isFinal: true)
    case .refused, .nameNotFound, .timedOut: return .failed(error.reason, isFinal: false)
    case .tooLarge: return .tooLarge(error.reason)
    case .inDoubt, .ended, .cancelled: return .doubtful(error.reason)
    }
  }

  private func post(
    _ endpoint: String, _ path: String, _ content: [UInt8], token: String?,
    until deadline: ContinuousClock.Instant
  ) -> Result<HTTPAnswer, HTTPError> {
    let request = request(endpoint, path, content, token: token)
    return Result { () throws(HTTPError) in
      try client.post(request, maximumBytes: configuration.maximumAnswerBytes, until: deadline)
    }
  }

  private func request(
    _ endpoint: String, _ path: String, _ content: [UInt8], token: String?
  ) -> HTTPRequest {
    var headers = ["Content-Type: application/json"]
    if let token { headers.append("Authorization: \(token)") }
    return HTTPRequest(
      url: "\(endpoint)/v3/\(path)", headers: headers, content: content,
      security: configuration.security)
  }
}

// Who we are, and where.
extension EtcdCluster {
  /// Returns what is wrong with the cluster that answered. The first answer says which is ours.
  func refusal(of header: WireHeader?, from endpoint: String) -> String? {
    guard let cluster = header?.clusterId else { return nil }
    return state.withLock { state in
      guard state.cluster ?? cluster == cluster else {
        return "it belongs to another cluster (\(cluster)) than the other endpoints"
      }
      state.cluster = cluster
      state.verified.insert(endpoint)
      if let index = configuration.endpoints.firstIndex(of: endpoint) { state.preferred = index }
      return nil
    }
  }

  /// The number of the cluster that answered first; nil before.
  var clusterID: String? { state.withLock(\.cluster) }

  /// The next call gets a new token.
  func forget(_ token: String) {
    state.withLock { if $0.token == token { $0.token = nil } }
  }

  /// Returns the token of the user, or nil without one.
  private func token(
    at endpoint: String, until deadline: ContinuousClock.Instant
  ) throws(EtcdError) -> Attempt<String?> {
    guard let credentials = configuration.credentials else { return .answered(nil) }
    if let token = state.withLock({ $0.token }) { return .answered(token) }
    let content: WireText = [
      "name": try .quoted(credentials.user), "password": try .quoted(credentials.password),
    ]
    switch post(endpoint, "auth/authenticate", content.bytes, token: nil, until: deadline) {
    case .failure(let error): return try attempt(of: error)
    case .success(let answer) where answer.status == 200:
      let message = EtcdWire.decode(answer.content, as: WirePlainAnswer.self)
      if let reason = refusal(of: message?.header, from: endpoint) {
        return .failed(reason, isFinal: true)
      }
      guard let token = message?.token else {
        return .failed("it gave no token", isFinal: false)
      }
      state.withLock { $0.token = token }
      return .answered(token)
    case .success(let answer):
      switch Self.refusal(of: answer) {
      // It asks nobody for a password.
      case .final(let error) where error.reason.contains("authentication is not enabled"):
        return .answered(nil)
      case .final(let error): throw error
      case .passing(let reason), .doubtful(let reason): return .failed(reason, isFinal: false)
      case .tokenExpired: return .failed("it wants a token for a token", isFinal: false)
      }
    }
  }

  /// Asks one member whether it is there.
  func look(at endpoint: String) throws(EtcdError) {
    let _: WirePlainAnswer = try ask(
      endpoint, "maintenance/status", until: .now + configuration.probePatience)
  }

  /// Asks one member for its time of day.
  ///
  /// - Returns: The seconds since 1970, without fractions; nil if it does not say.
  func time(at endpoint: String, until deadline: ContinuousClock.Instant) throws(EtcdError)
    -> Int64?
  {
    // Any answer has the time, also a refusal, so it needs no token.
    switch post(
      endpoint, "maintenance/status", Array("{}".utf8), token: nil, until: deadline)
    {
    case .success(let answer): return answer.date.flatMap(HTTPDate.seconds)
    case .failure(let error): throw .unreachable([(endpoint, error.reason)])
    }
  }

  /// Asks one member, and no other, what changes nothing.
  func ask<Answer: WireAnswer>(
    _ endpoint: String, _ path: String, until deadline: ContinuousClock.Instant
  ) throws(EtcdError) -> Answer {
    let attempt: Attempt<Answer> = try send(
      endpoint, path, Array("{}".utf8), until: deadline)
    switch attempt {
    case .answered(let answer): return answer
    case .failed(let reason, _), .doubtful(let reason), .tooLarge(let reason):
      throw .unreachable([(endpoint, reason)])
    }
  }

  /// Why a stream cannot begin.
  struct StreamFailure: Error {
    let error: EtcdError
    /// Whether the same member would say it again.
    let isFinal: Bool
  }

  /// Prepares a stream: returns the request for what it asks for, and the token in it.
  func stream(
    _ path: String, at endpoint: String
  ) throws(StreamFailure) -> (request: ([UInt8]) -> HTTPRequest, token: String?) {
    let found: Attempt<String?>
    do throws(EtcdError) {
      found = try token(at: endpoint, until: .now + configuration.patience)
    } catch {
      throw StreamFailure(error: error, isFinal: true)
    }
    switch found {
    case .answered(let token):
      return (
        { content in
          var request = self.request(endpoint, path, content, token: token)
          // A member that has lost the others ends the stream instead of staying silent.
          request.headers.append("Grpc-Metadata-hasleader: true")
          return request
        }, token
      )
    case .failed(let reason, let isFinal):
      throw StreamFailure(error: .unreachable([(endpoint, reason)]), isFinal: isFinal)
    case .doubtful(let reason), .tooLarge(let reason):
      throw StreamFailure(error: .unreachable([(endpoint, reason)]), isFinal: false)
    }
  }

  /// Returns why a stream ended that the member refuses for good; nil if the next one may last.
  func refusal(of end: HTTPStreamEnd, from endpoint: String) -> EtcdError? {
    switch end {
    case .failed(let error) where error.code == .certificate:
      return .unreachable([(endpoint, error.reason)])
    case .failed: return nil
    case .answered(let answer):
      guard case .final(let error) = Self.refusal(of: answer) else { return nil }
      return error
    }
  }
}
