import Wormhole
import WormholePropertyLists

/// The open calls of an endpoint in both directions, and the processes at their other ends.
///
/// The thread that takes a call of this process out of the table ends it, so each ends exactly once,
/// whatever happens at the same time.
struct CallTable {
  /// A call that this process makes.
  struct Call: Sendable {
    let key: CallKey
    /// A word chosen by the client: calls with the same word can be ended together.
    let subject: String
    /// When it times out; nil if never.
    let deadline: ContinuousClock.Instant?
    /// Called once, possibly on the monitor's thread, so it must be short.
    let end: @Sendable (CallEnd) -> Void
    /// The whole message, until it is posted.
    var request: PropertyListValue?
    /// The process that it was posted to, or is about to be, and its address.
    var callee: (writer: any MailboxWriter, address: String)?
    /// Whether it ends as `died` when the callee's mailbox ends.
    var isWatched = false
    var phase = Phase.waiting

    enum Phase { case waiting, posting, posted }
  }

  /// A call of another process that is not answered.
  private struct Received {
    weak var call: IncomingCall?
    let bytes: Int
  }

  /// A process at the other end of calls.
  struct Other {
    let writer: any MailboxWriter
    /// The observation of its end, if that matters.
    var end: ObservationToken?
  }

  /// Further calls of other processes are refused while this many are unanswered.
  private static let maximumReceived = 10_000
  /// How many other processes are remembered at a time; beyond that, only those with open calls.
  private static let maximumOthers = 1_000

  /// How many bytes unanswered calls of other processes may have.
  let acceptedBytes: Int
  private(set) var calls: [UInt64: Call] = [:]
  private var lastID: UInt64 = 0
  /// Calls that ended without an answer while being posted; their callees must still be notified.
  private var endedWhilePosted: Set<UInt64> = []
  private var received: [CallKey: Received] = [:]
  private var receivedBytes = 0
  /// By their addresses. What is removed is to be released outside the lock, because that ends
  /// watches.
  var others: [String: Other] = [:]

  init(acceptedBytes: Int) { self.acceptedBytes = acceptedBytes }

  // MARK: Calls of this process

  /// Enters a call.
  ///
  /// - Parameter make: gets its identity.
  /// - Returns: its id in this process.
  mutating func insert(replyTo: String, _ make: (CallKey) -> Call) -> UInt64 {
    lastID += 1
    calls[lastID] = make(CallKey(id: lastID, replyTo: replyTo))
    return lastID
  }

  /// When the next call times out.
  var deadline: ContinuousClock.Instant? { calls.values.compactMap(\.deadline).min() }

  mutating func takeAnswered(_ id: UInt64) -> Call? { calls.removeValue(forKey: id) }

  /// Removes a call that ends without an answer.
  mutating func take(_ id: UInt64) -> Call? {
    guard let call = calls.removeValue(forKey: id) else { return nil }
    // Excludes: a notice of the end that overtakes the call itself.
    if call.phase == .posting { endedWhilePosted.insert(id) }
    return call
  }

  /// Removes calls that end without an answer.
  mutating func take(where matches: (Call) -> Bool) -> [Call] {
    calls.filter { matches($0.value) }.map(\.key).ordered(by: <).compactMap { take($0) }
  }

  /// Records where a call is about to be posted, unless it has ended: if the callee ends from now
  /// on, the call ends as well.
  ///
  /// - Returns: nil if it has ended.
  mutating func beginPosting(
    _ id: UInt64, to callee: any MailboxWriter, at address: String, isWatched: Bool
  ) -> Call? {
    guard var call = calls[id] else { return nil }
    (call.callee, call.isWatched, call.phase) = ((callee, address), isWatched, .posting)
    calls[id] = call
    return call
  }

  /// - Returns: whether it has ended without an answer in the meantime.
  mutating func endPosting(_ id: UInt64, isPosted: Bool) -> Bool {
    calls[id]?.phase = isPosted ? .posted : .waiting
    if isPosted { calls[id]?.request = nil }
    return endedWhilePosted.remove(id) != nil
  }

  // MARK: Calls of other processes

  /// Enters a call.
  ///
  /// - Returns: nil, or what is in the way.
  mutating func enter(_ call: IncomingCall) -> String? {
    // The approximate memory that it takes.
    let footprint = call.value.footprint
    let bytes = PropertyListLimits.bytesPerNode * footprint.nodes + footprint.contentBytes
    if received.count >= Self.maximumReceived { return "\(Self.maximumReceived) requests" }
    if receivedBytes + bytes > acceptedBytes { return "requests of \(acceptedBytes >> 20) MiB" }
    remove(call.key)
    received[call.key] = Received(call: call, bytes: bytes)
    receivedBytes += bytes
    return nil
  }

  mutating func remove(_ key: CallKey) {
    receivedBytes -= received.removeValue(forKey: key)?.bytes ?? 0
  }

  /// - Returns: the call, to be released outside the lock: this may be its last reference.
  func received(_ key: CallKey) -> IncomingCall? { received[key]?.call }

  /// The same for all calls from a process, or from all processes.
  func received(from address: String? = nil) -> [IncomingCall] {
    received.filter { address == nil || $0.key.replyTo == address }.compactMap(\.value.call)
  }

  // MARK: Other processes

  /// Enters a process, unless it is known: its writer stays, because that keeps the order.
  ///
  /// - Returns: the writer to use, and what is no longer needed.
  mutating func enter(
    _ writer: any MailboxWriter, at address: String, watchedBy end: ObservationToken?
  ) -> (writer: any MailboxWriter, dropped: [Other?]) {
    var dropped: [Other?] = []
    if others.count >= Self.maximumOthers {
      let callees = calls.values.compactMap(\.callee?.address)
      let needed = Set(callees + received.keys.map(\.replyTo) + [address])
      for address in others.keys where !needed.contains(address) {
        dropped.append(others.removeValue(forKey: address))
      }
    }
    let known = others[address]
    let new = Other(writer: known?.writer ?? writer, end: end ?? known?.end)
    others[address] = new
    return (new.writer, dropped + [known])
  }
}
