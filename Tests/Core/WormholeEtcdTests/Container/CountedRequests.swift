import Synchronization
import WormholeSystem

@testable import WormholeEtcd

/// Counts requests on their way to etcd, and loses answers.
final class CountedRequests: EtcdTransport {
  private let all = Mutex<[(path: String, request: HTTPRequest, thread: ThreadID)]>([])
  private let lost = Mutex<String?>(nil)
  private let held = Mutex<(path: String, other: String, count: Int)?>(nil)
  private let client = HTTPClient()

  /// The paths of the requests, after "/v3/", in their order.
  var paths: [String] { all.withLock { $0.map(\.path) } }

  /// The number of requests of a thread that remove keys.
  func removals(by thread: ThreadID) -> Int {
    all.withLock { $0 }.count {
      $0.thread == thread
        && String(decoding: $0.request.content, as: UTF8.self).contains("request_delete_range")
    }
  }

  /// Sends the last request once more, as a line that delays a copy of it does.
  func repeatLast() throws {
    guard let last = all.withLock({ $0.last?.request }) else { return }
    _ = try client.post(last, maximumBytes: 1 << 20, until: .now + .seconds(10))
  }

  /// The next request to a path gets no answer, although it is carried out.
  func loseNextAnswer(of path: String) { lost.withLock { $0 = path } }

  /// An answer of one path arrives only after the next request to another one.
  func holdAnswer(of path: String, untilRequestTo other: String) {
    held.withLock { $0 = (path, other, paths.count { $0 == other }) }
  }

  private func isHeld(_ path: String) -> Bool {
    guard let held = held.withLock(\.self), held.path == path else { return false }
    return paths.count { $0 == held.other } <= held.count
  }

  func post(
    _ request: HTTPRequest, maximumBytes: Int, until deadline: ContinuousClock.Instant
  ) throws(HTTPError) -> HTTPAnswer {
    let path = request.url.split(separator: "/v3/").last.map(String.init) ?? ""
    all.withLock { $0.append((path, request, .current)) }
    let answer = try client.post(request, maximumBytes: maximumBytes, until: deadline)
    while isHeld(path) {
      guard ContinuousClock.now < deadline else { throw HTTPError(.inDoubt, "it was held") }
      pauseThread(.milliseconds(1))
    }
    let isLost = lost.withLock { lost in
      defer { if lost == path { lost = nil } }
      return lost == path
    }
    if isLost { throw HTTPError(.inDoubt, "the answer was lost") }
    return answer
  }
}
