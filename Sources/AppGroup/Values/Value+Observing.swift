public import Dispatch
import SystemCalls

extension Value {
  /// Calls a handler whenever the value has changed.
  ///
  /// After any burst of changes at least the last value is delivered; each one delivered was really
  /// published, and none comes after a newer one. What this process publishes is delivered, too. A
  /// value that cannot be read is delivered as a snapshot that throws when it is looked into.
  ///
  /// - Parameters:
  ///   - startsWithCurrent: whether the value that is there now is delivered first (an absent
  ///     one, too). Otherwise what is there now counts as known.
  ///   - queue: where the handler is called, one call at a time.
  ///   - handler: gets the value as it is then.
  /// - Returns: the observation; it ends when it is cancelled or forgotten. Nothing that is
  ///   published after this returns is missed.
  /// - Throws: `AppGroupError` when the container cannot be used any more. A lack of watches is no
  ///   error: the observation then polls and says so in `detection`.
  public func observe(
    startsWithCurrent: Bool = false, on queue: DispatchQueue,
    _ handler: @escaping @Sendable (Snapshot) -> Void
  ) throws -> Observation {
    let delivery = Delivery<Seen>(initial: .nothing, on: queue) { last in
      let snapshot = snapshotOrFailure()
      let now = Seen.version(snapshot)
      let call: @Sendable () -> Void = { handler(snapshot) }
      return (now, now == last ? nil : call)
    }
    let watch = try directory.watch { delivery.signal() }
    if startsWithCurrent {
      delivery.open(signalled: true)
    } else {
      delivery.open(known: Seen.version(snapshotOrFailure()))
    }
    return Observation(watch: watch, delivery: delivery)
  }

  /// The values from now on, for `for await`; the same promises as `observe`.
  ///
  /// Each is read when it is asked for, so that a slow iteration gets what is there then, and not
  /// what was there when the kernel told of a change.
  ///
  /// Watching begins when this returns, so nothing published later is missed, and ends with the
  /// iteration or its task.
  ///
  /// - Throws: as `observe`.
  public func snapshots(startsWithCurrent: Bool = false) throws -> Snapshots {
    let latch = WakeLatch()
    let watch = try directory.watch { latch.raise() }
    let known = startsWithCurrent ? Seen.nothing : .version(snapshotOrFailure())
    if startsWithCurrent { latch.raise() }
    return Snapshots(value: self, watch: watch, latch: latch, known: known)
  }

  fileprivate func snapshotOrFailure() -> Snapshot {
    do {
      return try snapshot()
    } catch let error as AppGroupError {
      return Snapshot(failure: error, version: nil, path: path)
    } catch {
      let wrapped = AppGroupError(.inputOutput, "read the value", path: path, reason: "\(error)")
      return Snapshot(failure: wrapped, version: nil, path: path)
    }
  }
}

/// What an observer has seen last.
enum Seen: Sendable, Hashable {
  case nothing
  case absent
  case present(Version)
  /// The same failure is told once.
  case failure(String)

  static func version(_ snapshot: Snapshot) -> Seen {
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
public struct Snapshots: AsyncSequence, Sendable {
  let value: Value
  let watch: Watch
  let latch: WakeLatch
  let known: Seen

  /// How changes are noticed.
  public var detection: Observation.Detection {
    switch watch.detection {
    case .events: .events
    case .polling(let reason): .polling(reason: reason)
    }
  }

  public func makeAsyncIterator() -> Iterator { Iterator(sequence: self, known: known) }

  /// Waits for the next value; one task at a time.
  public struct Iterator: AsyncIteratorProtocol {
    private let sequence: Snapshots
    private var known: Seen

    init(sequence: Snapshots, known: Seen) {
      self.sequence = sequence
      self.known = known
    }

    /// The next value; nil when the task was cancelled.
    public mutating func next() async -> Snapshot? {
      while !Task.isCancelled {
        await sequence.latch.suspend(until: nil)
        if Task.isCancelled { break }
        let value = sequence.value
        let snapshot: Snapshot
        do {
          snapshot = try await Blocking.run { value.snapshotOrFailure() }
        } catch {
          preconditionFailure("a closure that throws nothing threw \(error)")
        }
        let now = Seen.version(snapshot)
        guard now != known else { continue }
        known = now
        return snapshot
      }
      return nil
    }
  }
}
