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
    /// Whether its caller watches the clock itself.
    let isTimedByCaller: Bool
    /// Called once, possibly on the monitor's thread, so it must be short.
    let end: @Sendable (CallEnd) -> Void
    /// The whole message, until it is posted.
    fileprivate(set) var request: PropertyListValue?
    /// The process that it was posted to, or is about to be.
    fileprivate(set) var callee: MailboxSender?
    /// Whether it ends as `died` when the callee's mailbox ends.
    fileprivate(set) var isWatched = false
    fileprivate(set) var phase = Phase.waiting

    enum Phase { case waiting, posting, posted }

    /// - Parameter request: gets the call's identity.
    init(
      _ key: CallKey, about subject: String, until deadline: ContinuousClock.Instant?,
      isTimedByCaller: Bool, _ request: PropertyListValue,
      end: @escaping @Sendable (CallEnd) -> Void
    ) {
      (self.key, self.subject, self.request) = (key, subject, request)
      (self.deadline, self.isTimedByCaller, self.end) = (deadline, isTimedByCaller, end)
    }
  }

  /// A call of another process that is not answered.
  private struct Received {
    weak var call: IncomingCall?
    let bytes: Int
  }

  /// A process at the other end of calls.
  struct Other {
    let sender: MailboxSender
    /// The observation of its end, if that matters.
    fileprivate(set) var end: ObservationToken?
  }

  /// Further incoming calls are refused while this many are unanswered.
  private static let maximumReceived = 10_000
  /// How many other processes are remembered at a time; beyond that, only those with open calls.
  private static let maximumOthers = 1_000

  /// The same for the bytes of incoming calls.
  let acceptedBytes: Int
  private var lastID: UInt64 = 0
  private(set) var calls: [UInt64: Call] = [:]
  /// Calls that ended without an answer while being posted; their callees must still be notified.
  private var endedWhilePosted: Set<UInt64> = []
  private var received: [CallKey: Received] = [:]
  private var receivedBytes = 0
  private var others: [String: Other] = [:]

  init(acceptedBytes: Int) { self.acceptedBytes = acceptedBytes }

  // MARK: Calls of this process

  mutating func nextID() -> UInt64 {
    lastID += 1
    return lastID
  }

  mutating func insert(_ call: Call) { calls[call.key.id] = call }

  /// When the endpoint has to end the next call.
  var deadline: ContinuousClock.Instant? {
    calls.values.compactMap { $0.isTimedByCaller ? nil : $0.deadline }.min()
  }

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
  mutating func beginPosting(_ id: UInt64, to callee: MailboxSender, isWatched: Bool) -> Call? {
    calls[id]?.callee = callee
    calls[id]?.isWatched = isWatched
    calls[id]?.phase = .posting
    return calls[id]
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

  /// - Returns: the calls that matched, to be released outside the lock: these may be their last
  ///   references.
  func received(where matches: (CallKey) -> Bool) -> [IncomingCall] {
    received.filter { matches($0.key) }.compactMap(\.value.call)
  }

  /// See `received(where:)`.
  func received(_ key: CallKey) -> IncomingCall? { received[key]?.call }

  // MARK: Other processes

  func other(at address: String) -> Other? { others[address] }

  /// Enters a process, unless it is known: its sender stays, because that keeps the order.
  ///
  /// - Returns: the sender to use; and what is to be released outside the lock, because that ends
  ///   watches.
  mutating func enter(
    _ sender: MailboxSender, watchedBy end: ObservationToken?
  ) -> (sender: MailboxSender, dropped: [Other]) {
    var dropped: [Other] = []
    if others.count >= Self.maximumOthers {
      let callees = calls.values.compactMap(\.callee?.address)
      let needed = Set(callees + received.keys.map(\.replyTo) + [sender.address])
      for address in others.keys where !needed.contains(address) {
        if let other = others.removeValue(forKey: address) { dropped.append(other) }
      }
    }
    let known = others[sender.address]
    if let known { dropped.append(known) }
    let new = Other(sender: known?.sender ?? sender, end: end ?? known?.end)
    others[sender.address] = new
    return (new.sender, dropped)
  }

  /// - Returns: what is to be released outside the lock.
  mutating func forget(_ address: String) -> Other? { others.removeValue(forKey: address) }

  mutating func forgetOthers() -> [String: Other] {
    defer { others = [:] }
    return others
  }
}
