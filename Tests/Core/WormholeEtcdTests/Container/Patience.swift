import Synchronization
import WormholeSystem

@testable import WormholeEtcd

/// Records how long etcd may take for each answer.
final class Patience: EtcdTransport {
  struct Question: Sendable {
    let asked: ContinuousClock.Instant
    let deadline: ContinuousClock.Instant
  }

  private let client = HTTPClient()
  private let questions = Mutex<[Question]>([])

  func post(
    _ request: HTTPRequest, maximumBytes: Int, until deadline: ContinuousClock.Instant
  ) throws(HTTPError) -> HTTPAnswer {
    // The session is renewed at any time.
    if !request.url.hasSuffix("keepalive") {
      questions.withLock { $0.append(Question(asked: .now, deadline: deadline)) }
    }
    return try client.post(request, maximumBytes: maximumBytes, until: deadline)
  }

  /// Returns the questions of a step.
  func questions(in step: () throws -> Void) throws -> [Question] {
    questions.withLock { $0 = [] }
    try step()
    return questions.withLock { $0 }
  }
}
