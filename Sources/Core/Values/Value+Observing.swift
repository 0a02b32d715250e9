import Containers
public import Dispatch
public import Monitoring
import Publications
import SystemCalls

extension Value {
  /// Calls a handler whenever the value has changed.
  ///
  /// After any burst of changes at least the last value is delivered. Each delivered value was
  /// really published, and none comes after a newer one. Publications of this process are
  /// delivered, too. An unreadable value is delivered as a snapshot whose methods throw, and the
  /// expiry of a value as an absent one.
  ///
  /// - Parameters:
  ///   - startsWithCurrent: Whether the current value, even an absent one, is delivered first.
  ///     Otherwise the current value counts as known.
  ///   - queue: The queue on which the handler is called, one call at a time.
  ///   - handler: Receives the value at the time of the call.
  /// - Returns: The observation, which lasts until it is cancelled or released. No publication
  ///   after this method returns is missed.
  /// - Throws: `AppGroupError` if the container cannot be used any more. A lack of watches is not
  ///   an error: the observation then polls, and `detection` says so.
  public func observe(
    startsWithCurrent: Bool = false, on queue: DispatchQueue,
    _ handler: @escaping @Sendable (ValueSnapshot) -> Void
  ) throws -> ObservationToken {
    let timer = ExpiryTimer(on: Blocking.timers)
    let delivery = ChangeDelivery<Seen>(initial: .nothing, on: queue) { last in
      let snapshot = snapshotOrFailure()
      timer.set(snapshot.expiry)
      let now = Seen.version(snapshot)
      let call: @Sendable () -> Void = { handler(snapshot) }
      return (now, now == last ? nil : call)
    }
    timer.use { [weak delivery] in delivery?.signal() }
    let watch = try directory.watch { delivery.signal() }
    if startsWithCurrent {
      delivery.open(signalled: true)
    } else {
      let known = snapshotOrFailure()
      timer.set(known.expiry)
      delivery.open(known: Seen.version(known))
    }
    return ObservationToken(watch: watch, delivery: delivery)
  }

  /// Returns the values from now on, for `for await`, with the promises of `observe`.
  ///
  /// Each value is read when it is requested, so a slow iteration gets the value of that moment and
  /// not that of the event.
  ///
  /// Watching begins when this method returns, so no later publication is missed, and ends with the
  /// iteration or its task.
  ///
  /// - Throws: As `observe`.
  public func snapshots(startsWithCurrent: Bool = false) throws -> ValueSnapshots {
    let latch = WakeLatch()
    let watch = try directory.watch { latch.raise() }
    let timer = ExpiryTimer(on: Blocking.timers)
    timer.use { latch.raise() }
    var known = Seen.nothing
    if startsWithCurrent {
      latch.raise()
    } else {
      let snapshot = snapshotOrFailure()
      timer.set(snapshot.expiry)
      known = .version(snapshot)
    }
    return ValueSnapshots(value: self, watch: watch, latch: latch, timer: timer, known: known)
  }

  fileprivate func snapshotOrFailure() -> ValueSnapshot {
    do {
      return try snapshot()
    } catch let error as AppGroupError {
      return ValueSnapshot(failure: error, version: nil, path: path)
    } catch {
      let wrapped = AppGroupError(.inputOutput, "read the value", path: path, reason: "\(error)")
      return ValueSnapshot(failure: wrapped, version: nil, path: path)
    }
  }
}

/// The last state that an observer has seen.
enum Seen: Sendable, Hashable {
  case nothing
  case absent
  case present(Version)
  /// A failure; the same failure is reported once.
  case failure(String)

  static func version(_ snapshot: ValueSnapshot) -> Seen {
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
public struct ValueSnapshots: AsyncSequence, Sendable {
  let value: Value
  let watch: Watch
  let latch: WakeLatch
  let timer: ExpiryTimer
  let known: Seen

  /// The way in which changes are noticed.
  public var detection: ChangeDetection { watch.detection }

  public func makeAsyncIterator() -> Iterator { Iterator(sequence: self, known: known) }

  /// The iterator; for one task at a time.
  public struct Iterator: AsyncIteratorProtocol {
    private let sequence: ValueSnapshots
    private var known: Seen

    init(sequence: ValueSnapshots, known: Seen) {
      self.sequence = sequence
      self.known = known
    }

    /// Returns the next value, or nil if the task was cancelled.
    public mutating func next() async -> ValueSnapshot? {
      let (sequence, known) = (sequence, known)
      do {
        let snapshot = try await runSuspending(after: sequence.latch) {
          NextSnapshot(of: sequence, known)
        }
        self.known = .version(snapshot)
        return snapshot
      } catch {
        // Its steps throw nothing, so the task was cancelled.
        return nil
      }
    }
  }

  /// One wait for another value than the known one.
  private final class NextSnapshot: Waiting {
    private let sequence: ValueSnapshots
    private let known: Seen

    init(of sequence: ValueSnapshots, _ known: Seen) {
      self.sequence = sequence
      self.known = known
    }

    func step() -> WaitingStep<ValueSnapshot> {
      let snapshot = sequence.value.snapshotOrFailure()
      sequence.timer.set(snapshot.expiry)
      return .version(snapshot) == known ? .wait(for: sequence.latch, until: nil) : .done(snapshot)
    }
  }
}
