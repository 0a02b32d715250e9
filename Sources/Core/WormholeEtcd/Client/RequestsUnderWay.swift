import Dispatch
import Synchronization
import Wormhole
import WormholeSystem

/// Requests made at once, because each takes a round trip. Their results come in their order.
///
/// There is one at first, and then up to four while each takes less than a second: a slow line gets
/// no more than it carries in the time of a call.
struct RequestsUnderWay<Answer: Sendable> {
  /// A request that is made once: on a thread of its own or, if none has begun it, by the caller
  /// who waits for it. So no caller waits for a thread that a busy process does not get.
  private final class Request: Sendable {
    private let work: Mutex<(@Sendable () throws -> Answer)?>
    private let answer = Awaited<Result<(Answer, Duration), any Error>>()

    init(_ work: @escaping @Sendable () throws -> Answer) { self.work = Mutex(work) }

    func make() {
      guard let work = work.withLock({ $0.take() }) else { return }
      let begin = ContinuousClock.now
      answer.settle(Result { (try work(), .now - begin) })
    }

    func wait() -> Result<(Answer, Duration), any Error> {
      make()
      return answer.wait()
    }
  }

  private static var most: Int { 4 }
  private var limit = 1
  private var requests: [Request] = []
  private let thread: @Sendable () -> BlockingQueue

  /// - Parameter thread: Returns the queue of the next request.
  init(on thread: @escaping @Sendable () -> BlockingQueue = Blocking.queue) {
    self.thread = thread
  }

  var isEmpty: Bool { requests.isEmpty }
  /// Whether one has to end before the next one should begin.
  var isFull: Bool { requests.count >= limit }

  /// Begins one, on a thread of its own.
  mutating func add(_ work: @escaping @Sendable () throws -> Answer) {
    let request = Request(work)
    requests.append(request)
    thread().async { request.make() }
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
