public import Dispatch
import Synchronization
public import WormholeSystem

extension Presence {
  /// Calls a handler whenever a process enters, leaves or dies.
  ///
  /// Each call delivers the present processes at that moment, so no delivery is older than the one
  /// before. A failed look, perhaps for lack of descriptors, is repeated until it succeeds.
  ///
  /// - Parameters:
  ///   - startsWithCurrent: Whether the present processes are delivered first, even if there are
  ///     none.
  ///   - queue: The queue on which the handler is called, one call at a time.
  ///   - handler: Receives the present processes, the oldest first.
  /// - Returns: The observation, which lasts until it is cancelled or released. No process that
  ///   enters or leaves after this method returns is missed.
  /// - Throws: `WormholeError` if the container can no longer be used. A lack of watches is not an
  ///   error: the observation then polls, and `detection` says so.
  public func observe(
    startsWithCurrent: Bool = false, on queue: DispatchQueue,
    _ handler: @escaping @Sendable ([PresenceMember]) -> Void
  ) throws -> ObservationToken {
    try observe(startsWithCurrent: startsWithCurrent, calling: queue, handler)
  }

  /// Calls a handler as `observe` does, on any kind of queue.
  package func observe(
    startsWithCurrent: Bool, calling queue: any HandlerQueue,
    _ handler: @escaping @Sendable ([PresenceMember]) -> Void
  ) throws -> ObservationToken {
    // It begins after what it signals, which answers earlier signals once it is open.
    let begun = BegunWatch()
    let delivery = ChangeDelivery<[PresenceMember]?>(initial: nil, on: queue) { last in
      guard let watch = begun.watch else { return (last, nil) }
      do {
        let listing = try watch.look(last: last)
        guard listing.live != last else {
          watch.retire(listing.dead)
          return (last, nil)
        }
        return (
          listing.live,
          {
            handler(listing.live)
            watch.retire(listing.dead)
          }
        )
      } catch {
        // The watch signals again.
        return (last, nil)
      }
    }
    let watch = try watch { [weak delivery] in delivery?.signal() }
    begun.watch = watch
    let known = startsWithCurrent ? nil : try current(watch)
    delivery.open(known: known, signalled: known == nil)
    return ObservationToken(watch: watch, delivery: delivery)
  }

  private func watch(_ signal: @escaping @Sendable () -> Void) throws -> any MembershipWatch {
    try reporting("observe who is present", path: path) { try ThreadShortage.ruleOut() }
    return try store.watch(signal)
  }

  /// Returns the present members, for an observer that hears only of later changes.
  private func current(_ watch: any MembershipWatch) throws -> [PresenceMember] {
    try reporting("look who is present", path: path) { try watch.look(last: nil).live }
  }

  /// Returns the present processes at each change, for `for await`, with the promises of `observe`.
  ///
  /// Watching begins when this method returns and ends with the sequence.
  ///
  /// - Throws: As `observe`.
  public func changes(startsWithCurrent: Bool = true) throws -> PresenceChanges {
    let latch = WakeLatch()
    let watch = try watch { latch.raise() }
    let known = startsWithCurrent ? nil : try current(watch)
    if known == nil { latch.raise() }
    return PresenceChanges(
      observation: ObservationToken(delivery: watch), latch: latch, watch: watch, known: known)
  }
}

/// The watch of an observation, nil before it has begun.
private final class BegunWatch: Sendable {
  private let held = Mutex<(any MembershipWatch)?>(nil)

  var watch: (any MembershipWatch)? {
    get { held.withLock(\.self) }
    set { held.withLock { $0 = newValue } }
  }
}

/// The processes that are present under a name, as they change.
///
/// ```swift
/// for await members in try container.presence("tills").changes() {
///   print(members.count, "tills are open")
/// }
/// ```
public struct PresenceChanges: AsyncSequence, Sendable {
  let observation: ObservationToken
  let latch: WakeLatch
  let watch: any MembershipWatch
  let known: [PresenceMember]?

  /// How changes are noticed.
  public var detection: ChangeDetection { watch.detection }

  public func makeAsyncIterator() -> Iterator { Iterator(sequence: self, known: known) }

  /// No error ends it.
  public typealias Failure = Never

  /// The iterator; for one task at a time.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate let sequence: PresenceChanges
    fileprivate var known: [PresenceMember]?

    /// Returns the present processes after the next change, or nil if the task was cancelled.
    ///
    /// - Parameter actor: The actor of the caller.
    public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async
      -> [PresenceMember]?
    {
      let (sequence, last) = (sequence, known)
      do {
        known = try await runSuspending(after: sequence.latch) { sequence.next(after: last) }
        return known
      } catch {
        // Its steps throw nothing, so the task was cancelled.
        return nil
      }
    }
  }

  /// Returns one wait for members that differ from the known ones.
  private func next(after known: [PresenceMember]?) -> sending any Waiting<[PresenceMember]> {
    StepwiseWait { [watch, latch] in
      do {
        let listing = try watch.look(last: known)
        if !listing.dead.isEmpty { Blocking.queue().async { watch.retire(listing.dead) } }
        return listing.live == known ? .wait(for: latch, until: nil) : .done(listing.live)
      } catch {
        // Perhaps a lack of descriptors, which may pass: then the watch signals again.
        return .wait(for: latch, until: nil)
      }
    }
  }
}
