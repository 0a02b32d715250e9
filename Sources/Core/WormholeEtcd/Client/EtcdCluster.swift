import Dispatch
import Synchronization
import WormholeSystem

/// The members of a cluster as one: chooses the member to ask, identifies the user, and checks that
/// it is one cluster.
final class EtcdCluster: Sendable {
  /// The effect of a repeated request.
  enum Effect {
    /// The same as of one request: a read, a keep-alive, a grant of a lease with a number.
    case repeatable
    /// The same, but another cluster would accept it, too: a put of content that never changes.
    case repeatableWrite
    /// The change could happen twice, so it is sent once.
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
    /// The current history, and its highest known revision.
    var moment = EtcdMoment(history: 0, revision: 0)
    var onReplacement: [@Sendable (EtcdReplacement) -> Void] = []
  }

  let configuration: EtcdConfiguration
  private let state = Mutex(State())

  init(_ configuration: EtcdConfiguration) { self.configuration = configuration }

  /// Asks the members one after another, beginning with the one that answered last, until one
  /// answers or the deadline passes.
  ///
  /// - Parameter understand: Makes the result from an answer with a header, and the number of its
  ///   history; nil if it does not fit the request, which leaves the outcome unknown.
  func call<Answer: WireAnswer, Result>(
    _ question: Question, effect: Effect, until deadline: ContinuousClock.Instant,
    _ understand: (Answer, Int) -> Result?
  ) throws(EtcdError) -> Result {
    let begin = ContinuousClock.now
    var reasons: [String: String] = [:]
    var pause = Duration.milliseconds(10)
    while true {
      var best = Prospect.none
      for endpoint in endpointsInOrder {
        guard ContinuousClock.now < deadline else { throw unreachable(reasons) }
        let prospect: Prospect
        switch try ask(endpoint, question: question, effect: effect, until: deadline, understand) {
        case .answered(let answer): return answer
        case .failed(let reason, let found): (reasons[endpoint], prospect) = (reason, found)
        case .doubtful(let reason, let found):
          if effect == .once {
            dislike(endpoint)
            throw EtcdError(.outcomeUnknown, "\(endpoint): \(reason)")
          }
          (reasons[endpoint], prospect) = (reason, found)
        case .tooLarge(let reason):
          throw EtcdError(effect == .once ? .outcomeUnknown : .tooLarge, "\(endpoint): \(reason)")
        }
        if prospect.rawValue > best.rawValue { best = prospect }
        dislike(endpoint)
      }
      guard best != .none, ContinuousClock.now + pause < end(begin, best, until: deadline) else {
        throw unreachable(reasons)
      }
      pauseThread(pause)
      pause = min(pause * 2, .milliseconds(500))
    }
  }

  /// The time until which the members are asked again.
  private func end(
    _ begin: ContinuousClock.Instant, _ best: Prospect, until deadline: ContinuousClock.Instant
  ) -> ContinuousClock.Instant {
    guard best == .poor, clusterID == nil, let patience = configuration.firstPatience else {
      return deadline
    }
    return min(deadline, begin + patience)
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

  private func ask<Answer: WireAnswer, Result>(
    _ endpoint: String, question: Question, effect: Effect,
    until deadline: ContinuousClock.Instant, _ understand: (Answer, Int) -> Result?
  ) throws(EtcdError) -> Attempt<Result> {
    let deadline = ContinuousClock.now + configuration.patience(until: deadline)
    // Another cluster would accept a write, too, and even a server other than etcd may answer. The
    // first member shows which cluster is ours.
    if effect != .repeatable, !state.withLock({ $0.verified.contains(endpoint) }) {
      let status: Attempt<WirePlainAnswer> = try send(
        endpoint, question: Question("maintenance/status"), until: deadline
      ) { answer, _ in answer }
      if let failure = status.failure { return .failed(failure.reason, failure.prospect) }
    }
    return try send(endpoint, question: question, until: deadline, understand)
  }

  func send<Answer: WireAnswer, Result>(
    _ endpoint: String, question: Question, until deadline: ContinuousClock.Instant,
    _ understand: (Answer, Int) -> Result?
  ) throws(EtcdError) -> Attempt<Result> {
    var isRepeated = false
    while true {
      let token = try self.token(at: endpoint, until: deadline)
      if let failure = token.failure { return .failed(failure.reason, failure.prospect) }
      let answer: HTTPAnswer
      let asked = moment
      do throws(HTTPError) {
        answer = try post(endpoint, question, token: token.answer ?? nil, until: deadline)
      } catch {
        return try attempt(of: error)
      }
      if answer.status == 200 {
        return self.answer(
          answer.content, from: endpoint, asked: asked, isOfNewest: question.isOfNewest, understand)
      }
      switch Self.refusal(of: answer) {
      case .final(let error): throw error
      case .lasting(let reason): return .failed(reason, .none)
      case .passing(let reason): return .failed(reason, .good)
      case .doubtful(let reason): return .doubtful(reason, .good)
      case .tokenExpired:
        // Refused before anything was done, so asking again cannot repeat a change.
        guard let token = token.answer ?? nil, !isRepeated else {
          throw EtcdError(.credentialsRefused, "the token was refused")
        }
        forget(token)
        isRepeated = true
      }
    }
  }

  /// Checks everything: the one place that every answer passes.
  private func answer<Answer: WireAnswer, Result>(
    _ content: [UInt8], from endpoint: String, asked: EtcdMoment, isOfNewest: Bool,
    _ understand: (Answer, Int) -> Result?
  ) -> Attempt<Result> {
    guard let message = EtcdWire.decode(content, as: Answer.self), message.isHeaded else {
      return .doubtful("its answer is not what etcd says: \(EtcdWire.shown(content))", .poor)
    }
    var history = asked.history
    if let header = message.header {
      switch take(header, from: endpoint, asked: asked, isOfNewest: isOfNewest) {
      case .success(let found): history = found
      case .failure(let error): return .doubtful(error.reason, .good)
      }
    }
    guard let result = understand(message, history) else {
      return .doubtful("its answer does not fit the question: \(EtcdWire.shown(content))", .poor)
    }
    return .answered(result)
  }

  static func refusal(of answer: HTTPAnswer) -> Refusal {
    let error = EtcdWire.decode(answer.content, as: WireError.self)
    let message = error?.code == nil ? nil : error?.message
    return Refusal(
      status: answer.status, code: error?.code,
      message: message.map { EtcdWire.shown($0) } ?? EtcdWire.shown(answer.content))
  }

  private func attempt<Answer>(of error: HTTPError) throws(EtcdError) -> Attempt<Answer> {
    switch error.code {
    case .libraryMissing: throw EtcdError(.libraryMissing, error.reason)
    case .certificate: return .failed(error.reason, .none)
    case .refused, .nameNotFound: return .failed(error.reason, .poor)
    case .timedOut: return .failed(error.reason, .good)
    case .tooLarge: return .tooLarge(error.reason)
    case .inDoubt, .ended, .cancelled: return .doubtful(error.reason, .good)
    }
  }

  func post(
    _ endpoint: String, _ question: Question, token: String?,
    until deadline: ContinuousClock.Instant
  ) throws(HTTPError) -> HTTPAnswer {
    try configuration.transport.post(
      request(endpoint, question.path, content: question.content, token: token),
      maximumBytes: min(question.maximumBytes, configuration.maximumAnswerBytes), until: deadline)
  }

  func request(
    _ endpoint: String, _ path: String, content: [UInt8], token: String?
  ) -> HTTPRequest {
    var headers = ["Content-Type: application/json"]
    if let token { headers.append("Authorization: \(token)") }
    return HTTPRequest(
      url: "\(endpoint)/v3/\(path)", headers: headers, content: content,
      security: configuration.security)
  }
}

// Our user, and the cluster.
extension EtcdCluster {
  /// Evaluates a header: the answering cluster, and the progress of its history.
  ///
  /// - Parameters:
  ///   - asked: The known state of the history at the request. An answer of the newest revision has
  ///     at least that one, unless the history was replaced, for example by a snapshot. Earlier
  ///     requests no longer count then: the history of their answers is unknown.
  /// - Returns: The number of the answer's history; or the fault of the answer. The first answer
  ///   shows which cluster is ours.
  func take(
    _ header: WireHeader?, from endpoint: String, asked: EtcdMoment, isOfNewest: Bool
  ) -> Result<Int, EtcdError> {
    guard let header, header.isIdentity, let cluster = header.clusterId else {
      return .failure(
        EtcdError(.unreachable, "its answer does not say which cluster it is"))
    }
    let revision = header.revision?.value ?? 0
    return state.withLock { state in
      guard state.cluster ?? cluster == cluster else {
        return .failure(
          EtcdError(
            .unreachable, "it belongs to another cluster (\(cluster)) than the other endpoints"))
      }
      guard asked.history == state.moment.history else { return .failure(.replaced) }
      state.cluster = cluster
      state.verified.insert(endpoint)
      if let index = configuration.endpoints.firstIndex(of: endpoint) { state.preferred = index }
      if isOfNewest, revision < asked.revision {
        replaceHistory(&state, by: revision)
      } else {
        state.moment.revision = max(state.moment.revision, revision)
      }
      return .success(state.moment.history)
    }
  }

  private func replaceHistory(_ state: inout State, by revision: Int64) {
    let replacement = EtcdReplacement(known: state.moment.revision, found: revision)
    state.moment = EtcdMoment(history: state.moment.history + 1, revision: revision)
    let handlers = state.onReplacement
    Blocking.queue().async { for handler in handlers { handler(replacement) } }
  }

  /// The current history, and its highest known revision.
  var moment: EtcdMoment { state.withLock(\.moment) }

  /// Calls a closure each time the history was replaced, on a queue where it may block.
  func onReplacement(_ handler: @escaping @Sendable (EtcdReplacement) -> Void) {
    state.withLock { $0.onReplacement.append(handler) }
  }

  /// The number of the cluster that answered first; nil before.
  var clusterID: String? { state.withLock(\.cluster) }

  /// The next call gets a new token.
  func forget(_ token: String) {
    state.withLock { if $0.token == token { $0.token = nil } }
  }

  /// Returns the token of the user, or nil without one.
  func token(
    at endpoint: String, until deadline: ContinuousClock.Instant
  ) throws(EtcdError) -> Attempt<String?> {
    guard let credentials = configuration.credentials else { return .answered(nil) }
    if let token = state.withLock({ $0.token }) { return .answered(token) }
    let question = Question(
      "auth/authenticate",
      [
        "name": try .quoted(credentials.user), "password": try .quoted(credentials.password),
      ])
    let answer: HTTPAnswer
    let asked = moment
    do throws(HTTPError) {
      answer = try post(endpoint, question, token: nil, until: deadline)
    } catch {
      return try attempt(of: error)
    }
    if answer.status == 200 {
      let token: Attempt<String?> = self.answer(
        answer.content, from: endpoint, asked: asked, isOfNewest: false
      ) { (message: WirePlainAnswer, _) in
        message.token.flatMap { $0.isEmpty ? nil : $0 }
      }
      if let known = token.answer ?? nil { state.withLock { $0.token = known } }
      return token
    }
    switch Self.refusal(of: answer) {
    // The cluster does not ask for passwords.
    case .final(let error) where error.reason.contains("authentication is not enabled"):
      return .answered(nil)
    case .final(let error): throw error
    case .lasting(let reason): return .failed(reason, .none)
    case .passing(let reason), .doubtful(let reason): return .failed(reason, .good)
    case .tokenExpired: return .failed("it wants a token for a token", .good)
    }
  }
}
