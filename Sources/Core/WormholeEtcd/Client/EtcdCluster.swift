import Dispatch
import Synchronization
import WormholeSystem

/// The members of a cluster as one: chooses the member to ask, identifies the user, and checks that
/// it is one cluster.
final class EtcdCluster: Sendable {
  /// The effect of a repeated request.
  enum Effect {
    /// The same as that of one request: a read, a keep-alive, a grant of a lease with a number.
    case repeatable
    /// The same, but another cluster would accept it, too: a put of content that never changes.
    case repeatableWrite
    /// The change could happen twice, so it is sent once.
    case once
  }

  /// A request to a member.
  struct Question {
    /// What the header of its answer has at least.
    enum Header {
      /// The cluster, the member and the revision.
      case whole
      /// The cluster and the member.
      case identity
      /// Nothing: etcd may leave it out.
      case optional
    }

    let path: String
    let content: [UInt8]
    let maximumBytes: Int
    let effect: Effect
    let header: Header
    /// Whether the answer has at least the newest revision that the cluster agreed on.
    var isOfNewest: Bool { path.hasPrefix("kv/") }
    /// Whether a member that has lost its leader cannot answer it.
    var needsLeader: Bool { isOfNewest || path == "lease/keepalive" }

    init(
      _ path: String, _ message: WireText = [:], maximumBytes: Int = AnswerLimit.plain,
      effect: Effect = .repeatable, header: Header = .whole
    ) {
      self.path = path
      content = message.bytes
      self.maximumBytes = maximumBytes
      self.effect = effect
      self.header = header
    }

    /// - Returns: Nil for the JSON of anything else.
    func read(_ content: [UInt8]) -> WireAnswer? {
      switch path {
      case "kv/txn": EtcdWire.decode(content, as: WireTransaction.self)?.answer
      case "lease/keepalive": EtcdWire.decode(content, as: WireStream.self)?.result
      default: EtcdWire.decode(content, as: WireAnswer.self)
      }
    }

    func accepts(_ answer: WireHeader?) -> Bool {
      switch header {
      case .whole: answer.map { $0.isIdentity && $0.revision?.value ?? 0 > 0 } ?? false
      case .identity: answer?.isIdentity ?? false
      case .optional: answer?.isIdentity ?? true
      }
    }
  }

  private struct State {
    /// The index of the endpoint that answered last.
    var preferred = 0
    /// The cluster that answered first; all others are refused.
    var cluster: String?
    /// The endpoints that answered as members of it.
    var verified: Set<String> = []
    /// When the last question was sent to each endpoint whose answer showed that it reaches its leader,
    /// and that the history was not replaced.
    var answered: [String: ContinuousClock.Instant] = [:]
    var token: String?
    /// Whether the kept token, which another process got, was tried.
    var hasTriedKept = false
    /// The current history, and its highest known revision.
    var moment = EtcdMoment.none
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
  func call<Result>(
    _ question: Question, until deadline: ContinuousClock.Instant,
    _ understand: (WireAnswer, Int) -> Result?
  ) throws(EtcdError) -> Result {
    let begin = ContinuousClock.now
    var reasons: [String: String] = [:]
    var pause = Duration.milliseconds(10)
    while true {
      var best = MemberFailure.Prospect.none
      for endpoint in endpointsInOrder {
        guard ContinuousClock.now < deadline else { throw unreachable(reasons) }
        do throws(MemberFailure) {
          return try ask(endpoint, question, until: deadline, understand)
        } catch {
          switch error {
          case .final(let error): throw error
          case .doubtful(let reason, _) where question.effect == .once:
            dislike(endpoint)
            throw EtcdError(.outcomeUnknown, "\(endpoint): \(reason)")
          case .tooLarge(let reason):
            let code: EtcdError.Code = question.effect == .once ? .outcomeUnknown : .tooLarge
            throw EtcdError(code, "\(endpoint): \(reason)")
          case .failed, .doubtful, .tokenExpired: break
          }
          reasons[endpoint] = error.reason
          best = max(best, error.prospect)
        }
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
    _ begin: ContinuousClock.Instant, _ best: MemberFailure.Prospect,
    until deadline: ContinuousClock.Instant
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
    let first = state.withLock { $0.preferred }
    return Array(all[first...] + all[..<first])
  }

  var preferred: String { endpointsInOrder[0] }

  /// From now on another endpoint is asked first.
  func dislike(_ endpoint: String) {
    let all = configuration.endpoints
    state.withLock { state in
      guard all[state.preferred] == endpoint else { return }
      state.preferred = (state.preferred + 1) % all.count
    }
  }

  private func ask<Result>(
    _ endpoint: String, _ question: Question, until deadline: ContinuousClock.Instant,
    _ understand: (WireAnswer, Int) -> Result?
  ) throws(MemberFailure) -> Result {
    let deadline = ContinuousClock.now + configuration.patience(until: deadline)
    // Another cluster would accept a write, too, and even a server other than etcd may answer. The
    // first member shows which cluster is ours.
    if question.effect != .repeatable, !state.withLock({ $0.verified.contains(endpoint) }) {
      do throws(MemberFailure) {
        try send(endpoint, Question("maintenance/status"), until: deadline) { _, _ in () }
      } catch {
        throw error.ofPreparation
      }
    }
    return try send(endpoint, question, until: deadline, understand)
  }

  func send<Result>(
    _ endpoint: String, _ question: Question, until deadline: ContinuousClock.Instant,
    _ understand: (WireAnswer, Int) -> Result?
  ) throws(MemberFailure) -> Result {
    var isRepeated = false
    while true {
      let token = try token(at: endpoint, until: deadline)
      do throws(MemberFailure) {
        return try exchange(endpoint, question, token: token, until: deadline, understand)
      } catch {
        guard error == .tokenExpired else { throw error }
        // Refused before anything was done, so asking again cannot repeat a change.
        guard let token, !isRepeated else {
          throw .final(EtcdError(.credentialsRefused, "the token was refused"))
        }
        forget(token)
        isRepeated = true
      }
    }
  }

  /// Sends a request once, and checks everything: the one place that every answer passes.
  private func exchange<Result>(
    _ endpoint: String, _ question: Question, token: String?,
    until deadline: ContinuousClock.Instant, _ understand: (WireAnswer, Int) -> Result?
  ) throws(MemberFailure) -> Result {
    let asked = moment
    let sent = ContinuousClock.now
    let answer: HTTPAnswer
    do throws(HTTPError) {
      answer = try post(endpoint, question, token: token, until: deadline)
    } catch {
      throw MemberFailure(error)
    }
    guard answer.status == 200 else { throw MemberFailure(answer) }
    guard let message = question.read(answer.content), question.accepts(message.header) else {
      throw .doubtful("its answer is not what etcd says: \(EtcdWire.shown(answer.content))", .poor)
    }
    var history = asked.history
    if let header = message.header {
      do throws(EtcdError) {
        history = try take(header, from: endpoint, asked: asked, isOfNewest: question.isOfNewest)
      } catch {
        throw .doubtful(error.reason, .good)
      }
      if question.needsLeader, header.revision?.value ?? 0 >= asked.revision {
        state.withLock { $0.answered[endpoint] = sent }
      }
    }
    guard let result = understand(message, history) else {
      throw .doubtful(
        "its answer does not fit the question: \(EtcdWire.shown(answer.content))", .poor)
    }
    return result
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
  /// - Returns: The number of the answer's history. The first answer shows which cluster is ours.
  /// - Throws: The fault of the answer.
  func take(
    _ header: WireHeader?, from endpoint: String, asked: EtcdMoment, isOfNewest: Bool
  ) throws(EtcdError) -> Int {
    guard let header, header.isIdentity, let cluster = header.clusterId else {
      throw EtcdError(.unreachable, "its answer does not say which cluster it is")
    }
    let revision = header.revision?.value ?? 0
    return try state.withLock { state throws(EtcdError) in
      guard state.cluster ?? cluster == cluster else {
        throw EtcdError(
          .unreachable, "it belongs to a different cluster (\(cluster))")
      }
      guard asked.history == state.moment.history else { throw .replaced }
      state.cluster = cluster
      state.verified.insert(endpoint)
      if let index = configuration.endpoints.firstIndex(of: endpoint) { state.preferred = index }
      if isOfNewest, revision < asked.revision {
        replaceHistory(&state, by: revision)
      } else {
        state.moment.revision = max(state.moment.revision, revision)
      }
      return state.moment.history
    }
  }

  private func replaceHistory(_ state: inout State, by revision: Int64) {
    let replacement = EtcdReplacement(known: state.moment.revision, found: revision)
    state.moment = EtcdMoment(history: state.moment.history + 1, revision: revision)
    let handlers = state.onReplacement
    Blocking.queue().async { for handler in handlers { handler(replacement) } }
  }

  var moment: EtcdMoment { state.withLock(\.moment) }

  /// When a member was asked that has answered with all that a probe would show; nil if none has.
  func answered(_ endpoint: String) -> ContinuousClock.Instant? {
    state.withLock { $0.answered[endpoint] }
  }

  func onReplacement(_ handler: @escaping @Sendable (EtcdReplacement) -> Void) {
    state.withLock { $0.onReplacement.append(handler) }
  }

  var clusterID: String? { state.withLock(\.cluster) }

  /// The next call gets a new token.
  func forget(_ token: String) {
    state.withLock { if $0.token == token { $0.token = nil } }
  }

  /// The token that another process got, once: if it is refused, the password is needed.
  private var keptToken: String? {
    guard let file = configuration.token else { return nil }
    let isTried = state.withLock { Swift.exchange(&$0.hasTriedKept, with: true) }
    guard !isTried, let token = file.read() else { return nil }
    state.withLock { $0.token = token }
    return token
  }

  /// Returns the token of the user, or nil without one.
  func token(
    at endpoint: String, until deadline: ContinuousClock.Instant
  ) throws(MemberFailure) -> String? {
    guard let credentials = configuration.credentials else { return nil }
    if let token = state.withLock({ $0.token }) ?? keptToken { return token }
    let question = Question(
      "auth/authenticate",
      ["name": .quoted(credentials.user), "password": .quoted(credentials.password.text)])
    do throws(MemberFailure) {
      let token = try exchange(endpoint, question, token: nil, until: deadline) { answer, _ in
        answer.token.flatMap { $0.isEmpty ? nil : $0 }
      }
      state.withLock { $0.token = token }
      configuration.token?.write(token)
      return token
    } catch {
      // The cluster does not ask for passwords.
      if case .final(let refusal) = error,
        refusal.reason.contains("authentication is not enabled")
      {
        return nil
      }
      throw error.ofPreparation
    }
  }
}
