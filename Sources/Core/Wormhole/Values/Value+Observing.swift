public import Dispatch
import Synchronization
import WormholePropertyLists
public import WormholeSystem

extension Value {
  /// Calls a handler whenever the value has changed.
  ///
  /// After any burst of changes at least the last value is delivered. Each delivered value was
  /// really published, and none comes after a newer one. Publications of this process are
  /// delivered, too. An unreadable value is delivered as a snapshot whose methods throw, and the
  /// expiry of a value as an absent one. While the container is missing, the value is unreadable;
  /// once it is back, the value is delivered again.
  ///
  /// - Parameters:
  ///   - startsWithCurrent: Whether the current value, even an absent one, is delivered first.
  ///     Otherwise the current value counts as known.
  ///   - queue: The queue on which the handler is called, one call at a time.
  ///   - handler: Receives the value at the time of the call.
  /// - Returns: The observation, which lasts until it is cancelled or released. No publication
  ///   after this method returns is missed.
  /// - Throws: `WormholeError` if the container can no longer be used. A lack of watches is not an
  ///   error: the observation then polls, and `detection` says so.
  public func observe(
    startsWithCurrent: Bool = false, on queue: DispatchQueue,
    _ handler: @escaping @Sendable (ValueSnapshot<Content>) -> Void
  ) throws -> ObservationToken {
    try offer(startsWithCurrent: startsWithCurrent, on: queue) { snapshot in
      handler(ValueSnapshot(snapshot))
      return true
    }
  }

  /// Calls a handler as `observe` does, and again after a moment if it returns false.
  package func offer(
    startsWithCurrent: Bool, on queue: any HandlerQueue,
    _ handler: @escaping @Sendable (PlainSnapshot) -> Bool
  ) throws -> ObservationToken {
    let timer = ExpiryTimer()
    let followed = FollowedValue(store)
    let delivery = ChangeDelivery<Seen>(initial: Seen(), on: queue) { last in
      let snapshot = followed.snapshot()
      timer.set(snapshot.expiry)
      let (now, news) = last.after(snapshot)
      guard let news = news ?? (followed.isRepeating() ? snapshot : nil) else { return (now, nil) }
      return (now, { if !handler(news) { followed.repeatLater() } })
    }
    timer.use { [weak delivery] in delivery?.signal() }
    try followed.begin { delivery.signal() }
    if startsWithCurrent {
      delivery.open(signalled: true)
    } else {
      let known = followed.snapshot()
      timer.set(known.expiry)
      delivery.open(known: Seen().after(known).seen)
    }
    return ObservationToken(watch: followed, delivery: delivery)
  }

  /// Returns the values from now on, for `for await`, with the promises of `observe`.
  ///
  /// Each value is read when it is requested, so a slow iteration gets the value of that moment and
  /// not of the event.
  ///
  /// Watching begins when this method returns, so no later publication is missed, and ends with the
  /// iteration or its task.
  ///
  /// - Throws: As `observe`.
  public func snapshots(startsWithCurrent: Bool = false) throws -> ValueSnapshots<Content> {
    var snapshots = try ValueSnapshots<Content>(of: store)
    if startsWithCurrent { snapshots.latch.raise() } else { snapshots.skipCurrent() }
    return snapshots
  }
}

/// A value that an observer follows.
final class FollowedValue: Watching {
  private struct State {
    var following: (any ValueFollowing)?
    var signal: @Sendable () -> Void = {}
    /// Whether the value that was delivered has to be delivered again.
    var isRepeating = false
  }

  let store: any ValueStore
  private let state = Mutex(State())
  private let retry = Retry()

  init(_ store: any ValueStore) { self.store = store }

  /// - Parameters:
  ///   - monitor: The monitor that the waiting thread leads; nil for the process's own.
  ///   - signal: Called when the value may have changed, possibly before this returns.
  /// - Throws: `.unsupported` if no thread can lead; otherwise the reason why it cannot be followed.
  func begin(
    leading monitor: ChangeMonitor? = nil, _ signal: @escaping @Sendable () -> Void
  ) throws {
    state.withLock { $0.signal = signal }
    let new = try reporting("observe the value", path: store.path) {
      try ThreadShortage.ruleOut()
      guard let new = try store.follow(leading: monitor, signal) else { throw Errno.unsupported }
      return new
    }
    state.withLock { $0.following = new }
  }

  var detection: ChangeDetection { state.withLock { $0.following?.detection } ?? .events }

  func cancel() {
    let following = state.withLock { state in
      state.signal = {}
      return state.following
    }
    following?.cancel()
  }

  private func signalLater() {
    retry.soon { [weak self] in self?.state.withLock(\.signal)() }
  }

  /// Makes the next look deliver the last value again.
  func repeatLater() {
    state.withLock { $0.isRepeating = true }
    signalLater()
  }

  func isRepeating() -> Bool { state.withLock { exchange(&$0.isRepeating, with: false) } }

  /// Returns the value, or why it cannot be read. No event reports that the reason has passed, so
  /// this signals after a moment.
  func snapshot() -> PlainSnapshot {
    let snapshot = read()
    if snapshot.mayPass { signalLater() }
    return snapshot
  }

  private func read() -> PlainSnapshot {
    do {
      return try reporting("read the value", path: store.path) {
        try state.withLock(\.following)?.snapshot(mayWait: true)
          ?? store.snapshot(limits: .standard)
      }
    } catch {
      let failure =
        error as? WormholeError
        ?? WormholeError(.inputOutput, "read the value", path: store.path, reason: "\(error)")
      return PlainSnapshot(failure: failure, version: nil, of: store)
    }
  }

  /// Returns the value with calls that never wait; nil if `snapshot` has to look.
  func promptSnapshot() -> PlainSnapshot? {
    // The look that follows reports why.
    try? state.withLock(\.following)?.snapshot(mayWait: false)
  }
}

/// The last state that an observer has seen.
struct Seen: Sendable {
  enum State: Hashable {
    case nothing
    case absent
    case present(Version)
    /// A failure; the same failure is reported once.
    case failure(String)
  }

  private(set) var state = State.nothing
  /// The last one that was not a failure.
  private var known = State.nothing

  /// Returns what has been seen after a snapshot, and the snapshot if it differs from the last one.
  /// It is marked if it was seen before, and only failures since.
  func after(_ snapshot: PlainSnapshot) -> (seen: Seen, news: PlainSnapshot?) {
    var (seen, news) = (self, snapshot)
    seen.state = Self.state(of: snapshot)
    if case .failure = seen.state {
    } else {
      news.isKnown = seen.state == known
      seen.known = seen.state
    }
    return (seen, seen.state == state ? nil : news)
  }

  private static func state(of snapshot: PlainSnapshot) -> State {
    if let version = snapshot.version { return .present(version) }
    do {
      _ = try snapshot.bytes()
      return .absent
    } catch {
      return .failure("\(error)")
    }
  }
}

/// The values of an identifier as they change.
///
/// ```swift
/// for await snapshot in try container.value("seats").snapshots(startsWithCurrent: true) {
///   print(try snapshot.content ?? "never written")
/// }
/// ```
public struct ValueSnapshots<Content: Codable & Sendable>: AsyncSequence, Sendable {
  let followed: FollowedValue
  let latch = WakeLatch()
  let timer = ExpiryTimer()
  private(set) var known = Seen()
  /// The monitor that the waiting thread leads; nil if the process's own thread raises the latch.
  let leads: ChangeMonitor?

  init(of store: any ValueStore, leading monitor: ChangeMonitor? = nil) throws {
    followed = FollowedValue(store)
    leads = monitor
    try followed.begin(leading: monitor) { [latch] in latch.raise() }
    timer.use { [latch] in latch.raise() }
  }

  /// The current value counts as known.
  mutating func skipCurrent() {
    let snapshot = followed.snapshot()
    timer.set(snapshot.expiry)
    known = known.after(snapshot).seen
  }

  /// How changes are noticed.
  public var detection: ChangeDetection { followed.detection }

  public func makeAsyncIterator() -> Iterator { Iterator(sequence: self, known: known) }

  /// No error ends it.
  public typealias Failure = Never

  /// Returns the same values, led by the waiting thread or by the process's own; nil if that is not
  /// possible. There may have been a change meanwhile.
  private func changed(isLed: Bool) -> ValueSnapshots? {
    let monitor = isLed ? ChangeMonitor.led() : nil
    guard !isLed || monitor != nil else { return nil }
    // Whatever the reason, the caller waits as before.
    let new = try? ValueSnapshots(of: followed.store, leading: monitor)
    new?.latch.raise()
    return new
  }

  /// Blocks until there may have been a change, or the deadline has passed.
  private func block(until deadline: ContinuousClock.Instant) {
    if let leads { leads.lead(for: latch, until: deadline) } else { latch.block(until: deadline) }
  }

  /// The iterator; for one task at a time.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate var sequence: ValueSnapshots
    fileprivate var known: Seen
    /// Whether a thread has waited; from its second wait on it leads.
    fileprivate var hasBlocked = false

    /// For tests: whether the waiting thread takes the events itself.
    var leads: Bool { sequence.leads != nil }

    /// Returns the next value, or nil if the task was cancelled.
    ///
    /// - Parameter actor: The actor of the caller.
    public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async
      -> ValueSnapshot<Content>?
    {
      await next(by: nil)
    }

    /// Returns the next value, and blocks the calling thread until there is one.
    ///
    /// - Parameter deadline: How long to wait; a past deadline means "only if there is one now".
    /// - Returns: Nil once the deadline has passed.
    /// - Complexity: Open, fstat, read, close; no lock.
    @available(*, noasync, message: "it blocks; await the other form, in an async function")
    public mutating func next(until deadline: ContinuousClock.Instant) -> ValueSnapshot<Content>? {
      if hasBlocked, sequence.leads == nil, let led = sequence.changed(isLed: true) {
        sequence = led
      }
      hasBlocked = true
      let wait = NextSnapshot(of: sequence, known, until: deadline)
      while true {
        sequence.block(until: deadline)
        if case .done(let outcome) = wait.step() { return know(outcome) }
      }
    }

    /// Returns the next value; see the form without `async`. It is also nil if the task was cancelled.
    public nonisolated(nonsending) mutating func next(
      until deadline: ContinuousClock.Instant
    ) async -> ValueSnapshot<Content>? {
      await next(by: deadline)
    }

    nonisolated(nonsending) private mutating func next(
      by deadline: ContinuousClock.Instant?
    ) async -> ValueSnapshot<Content>? {
      if sequence.leads != nil {
        // A task cannot lead. If there is no other way, the look that follows says why.
        sequence.latch.raise()
        sequence = sequence.changed(isLed: false) ?? sequence
      }
      let (sequence, known) = (sequence, known)
      do {
        return know(
          try await runSuspending(after: sequence.latch, until: deadline) {
            NextSnapshot(of: sequence, known, until: deadline)
          })
      } catch {
        // Its steps throw nothing, so the task was cancelled.
        return nil
      }
    }

    private mutating func know(_ snapshot: PlainSnapshot?) -> ValueSnapshot<Content>? {
      if let snapshot { known = known.after(snapshot).seen }
      return snapshot.map { ValueSnapshot($0) }
    }
  }

  /// One wait for a value that differs from the known one.
  private final class NextSnapshot: Waiting {
    private let sequence: ValueSnapshots
    private let known: Seen
    private let deadline: ContinuousClock.Instant?

    init(of sequence: ValueSnapshots, _ known: Seen, until deadline: ContinuousClock.Instant?) {
      self.sequence = sequence
      self.known = known
      self.deadline = deadline
    }

    func step() -> WaitingStep<PlainSnapshot?> { step(sequence.followed.snapshot()) }

    func promptStep() -> WaitingStep<PlainSnapshot?>? {
      sequence.followed.promptSnapshot().map(step)
    }

    private func step(_ snapshot: PlainSnapshot) -> WaitingStep<PlainSnapshot?> {
      sequence.timer.set(snapshot.expiry)
      if let news = known.after(snapshot).news { return .done(news) }
      if let deadline, ContinuousClock.now >= deadline { return .done(nil) }
      return .wait(for: sequence.latch, until: deadline)
    }
  }
}
