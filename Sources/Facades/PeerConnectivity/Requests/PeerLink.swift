import AppGroup
import Dispatch
import PropertyLists
import Synchronization

/// The way from a session to one peer: it posts calls there in their order.
///
/// A caller that finds no thread posting posts itself, so a lone call costs no hop to another thread.
final class PeerLink: Sendable {
  struct OutgoingCall: Sendable {
    let id: UInt64
    let question: Question
  }

  private struct Outbox {
    var calls: ArraySlice<OutgoingCall> = []
    /// A thread posts, and looks for more before it stops.
    var isPosting = false
  }

  let target: PeerTarget
  private let name: String
  private let calls: CallEndpoint
  private let outbox = Mutex(Outbox())
  private let queue = Blocking.queue()

  /// How long to wait for a mailbox that was removed while its owner lives: the owner makes it again.
  private static let pause: Duration = .milliseconds(20)

  /// - Parameter name: whose calls these are.
  init(_ target: PeerTarget, from name: String, _ calls: CallEndpoint) {
    self.target = target
    self.name = name
    self.calls = calls
  }

  // MARK: In order

  /// - Returns: whether the caller has to post.
  func add(_ call: OutgoingCall) -> Bool {
    outbox.withLock { outbox in
      outbox.calls.append(call)
      defer { outbox.isPosting = true }
      return !outbox.isPosting
    }
  }

  /// Adds a call for another thread to post.
  func addForLater(_ call: OutgoingCall) {
    if add(call) { queue.async { while self.postNext() {} } }
  }

  /// Posts the call that the caller has added; blocks. The caller does not wait for calls that others have
  /// added meanwhile.
  func postOwn() {
    // No thread was posting, so the queue was empty: the caller's call comes first.
    if postNext() { queue.async { while self.postNext() {} } }
  }

  // One at a time, so the order of the calls is that of the files.
  /// - Returns: whether there is more; if not, no thread posts from now on.
  private func postNext() -> Bool {
    let call = outbox.withLock { $0.calls.removeFirst() }
    do {
      try post(call)
    } catch {
      calls.end(call.id, as: .failed(error))
    }
    return outbox.withLock { outbox in
      // Excludes: a call that finds a thread posting that has just seen an empty queue.
      outbox.isPosting = !outbox.calls.isEmpty
      // Otherwise what was posted stays in memory.
      if !outbox.isPosting { outbox.calls = [] }
      return outbox.isPosting
    }
  }

  /// Whether anything is to be posted, or the peer is reached.
  var isNeeded: Bool { target.current != nil || outbox.withLock(\.isPosting) }

  private func post(_ call: OutgoingCall) throws {
    let question = call.question
    // It may have ended by the second attempt.
    var seen = question.seen
    // A caller that is blocked here looks at the clock afterwards.
    while calls.isUnderWay(call.id), ContinuousClock.now < question.deadline {
      let current = try target.resolve(seen: seen.take(), until: question.deadline)
      let outcome = try calls.post(
        call.id, question.propertyList(from: name), expires: question.expiry, to: current.party
      ) { target.isCurrent(current) }
      switch outcome {
      case .posted: return
      case .full: throw PeerError.full(target.peer, current.member)
      case .gone:
        try target.look()
        if target.isCurrent(current) { pause() }
      }
    }
  }

  private func pause() { WakeLatch().block(until: .now + Self.pause) }
}
