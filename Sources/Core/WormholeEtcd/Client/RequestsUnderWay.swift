import Dispatch
import Wormhole
import WormholeSystem

/// Requests that are made at once, because each takes a round trip. Their results come in their order.
///
/// There is one at first, and then up to four as long as each takes less than a second: a slow line is
/// not given more than it carries in the time of a call.
struct RequestsUnderWay<Answer: Sendable> {
  private static var most: Int { 4 }
  private var limit = 1
  private var requests: [Awaited<Result<(Answer, Duration), any Error>>] = []

  var isEmpty: Bool { requests.isEmpty }
  /// Whether one has to end before the next one should begin.
  var isFull: Bool { requests.count >= limit }

  /// Begins one, on a thread of its own.
  mutating func add(_ request: @escaping @Sendable () throws -> Answer) {
    let answer = Awaited<Result<(Answer, Duration), any Error>>()
    requests.append(answer)
    Blocking.queue().async {
      let begin = ContinuousClock.now
      answer.settle(Result { (try request(), .now - begin) })
    }
  }

  /// Waits for the oldest one.
  mutating func next() throws -> Answer {
    let (answer, time) = try requests.removeFirst().wait().get()
    limit = time < .seconds(1) ? min(limit * 2, Self.most) : 1
    return answer
  }

  /// Waits for all of them, because none may change anything later.
  func drain() { for request in requests { _ = request.wait() } }
}
