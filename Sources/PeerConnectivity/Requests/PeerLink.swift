import AppGroup
import Dispatch
import PropertyLists
import Synchronization

/// The way from a session to one peer: what is to be posted there, in the order of the calls.
///
/// Whoever calls while nobody posts, posts itself, and what others add meanwhile if that is no wait
/// for it; so a lone call costs no hop to another thread.
final class PeerLink: Sendable {
  struct OutgoingCall: Sendable {
    let id: UInt64
    let replyTo: String
    let value: PropertyListValue
    let expectsReply: Bool
    let deadline: ContinuousClock.Instant
    let expiry: Expiry
  }

  enum Item: Sendable {
    case call(OutgoingCall)
    /// The peer need not handle it any more.
    case cancel(id: UInt64, address: String, replyTo: String)
  }

  private struct Outbox {
    var items: [Item] = []
    var next = 0
    /// Somebody posts, and looks for more before it stops.
    var isPosting = false

    mutating func take() -> Item {
      defer {
        next += 1
        if next == items.count || next == 1_024 {
          items.removeFirst(next)
          next = 0
        }
      }
      return items[next]
    }
  }

  let target: PeerTarget
  private let name: String
  private let calls: CallTable
  private let outbox = Mutex(Outbox())
  private let queue = Blocking.queue()

  /// How long to wait for a mailbox that was removed while its owner lives, who makes it again.
  private static let pause: Duration = .milliseconds(20)

  /// - Parameter name: whose calls these are.
  init(_ target: PeerTarget, from name: String, _ calls: CallTable) {
    self.target = target
    self.name = name
    self.calls = calls
  }

  // MARK: In order

  /// - Returns: whether the caller has to post.
  func add(_ item: Item) -> Bool {
    outbox.withLock { outbox in
      outbox.items.append(item)
      defer { outbox.isPosting = true }
      return !outbox.isPosting
    }
  }

  /// Adds what another thread is to post.
  func addForLater(_ item: Item) {
    if add(item) { queue.async { while self.postNext() {} } }
  }

  /// Posts what the caller has added; blocks. What others have added meanwhile is not for it to wait
  /// for.
  func postOwn() {
    // Nobody was posting, so nothing was there: what it has added comes first.
    if postNext() { queue.async { while self.postNext() {} } }
  }

  // One at a time, so the order of the calls is that of the files.
  /// - Returns: whether there is more; if not, nobody posts from now on.
  private func postNext() -> Bool {
    post(outbox.withLock { $0.take() })
    return outbox.withLock { outbox in
      // Excludes: a call that finds somebody posting who has just seen that nothing is there.
      outbox.isPosting = outbox.next < outbox.items.count
      return outbox.isPosting
    }
  }

  /// Whether anything is to be posted, or the peer is reached.
  var isNeeded: Bool { target.current != nil || outbox.withLock(\.isPosting) }

  private func post(_ item: Item) {
    switch item {
    case .call(let call):
      do {
        try post(call)
      } catch {
        let failure = PeerError(any: error, "ask \"\(target.peer)\"", peer: target.peer)
        calls.remove(call.id)?.end(.failure(failure))
      }
    case .cancel(let id, let address, let replyTo):
      do {
        guard let current = target.current, current.address == address else { return }
        let message = RequestMessage.cancel(id: id, replyTo: replyTo)
        _ = try current.outlet.post(message.propertyList)
      } catch {
        // The peer does work for nobody: a full disk is no reason to tell its caller anything else.
        return
      }
    }
  }

  private func post(_ call: OutgoingCall) throws {
    // A caller that is blocked here looks at the clock afterwards.
    while calls.contains(call.id), ContinuousClock.now < call.deadline {
      let current = try target.resolve(until: call.deadline)
      // Noted first: if the peer ends from now on, so does the call.
      guard calls.assign(call.id, to: current.address) else { return }
      guard target.isCurrent(current) else { continue }
      switch try current.outlet.post(message(call)) {
      case .posted: return
      case .full: throw PeerError.full(target.peer, current.member)
      case .gone:
        try target.look()
        if target.isCurrent(current) { pause() }
      }
    }
  }

  private func message(_ call: OutgoingCall) -> PropertyListValue {
    let call = RequestMessage.IncomingCall(
      id: call.id, sender: name, replyTo: call.replyTo, expectsReply: call.expectsReply,
      value: call.value, expiry: call.expiry)
    return RequestMessage.request(call).propertyList
  }

  private func pause() { WakeLatch().block(until: .now + Self.pause) }
}
