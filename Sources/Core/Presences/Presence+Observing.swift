import Containers
public import Dispatch
public import Monitoring
import SystemCalls
public import Values

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
  /// - Throws: `AppGroupError` if the container cannot be used any more. A lack of watches is not
  ///   an error: the observation then polls, and `detection` says so.
  public func observe(
    startsWithCurrent: Bool = false, on queue: DispatchQueue,
    _ handler: @escaping @Sendable ([PresenceMember]) -> Void
  ) throws -> ObservationToken {
    let looks = FollowUpChecks()
    let delivery = ChangeDelivery<[PresenceMember]?>(initial: nil, on: queue) { last in
      do {
        let members = try looks.members(of: self, last: last)
        let call: @Sendable () -> Void = { handler(members) }
        return (members, members == last ? nil : call)
      } catch {
        Blocking.timers.asyncAfter(deadline: .now() + Self.retry.dispatchInterval) {
          looks.check()
        }
        return (last, nil)
      }
    }
    looks.use { [weak delivery] in delivery?.signal() }
    let watch = try place.directory.watch { looks.begin() }
    let known = startsWithCurrent ? nil : try members()
    delivery.open(known: known, signalled: known == nil)
    // The event of a process that ended between the watch and the look may have come already.
    looks.begin()
    return ObservationToken(ObservationToken(watch: watch, delivery: delivery), delivery: looks)
  }

  /// The pause after which a failed look is repeated.
  fileprivate static let retry: Duration = .milliseconds(200)

  /// Returns the present processes at each change, for `for await`, with the promises of `observe`.
  ///
  /// Watching begins when this method returns and ends with the sequence.
  ///
  /// - Throws: As `observe`.
  public func changes(startsWithCurrent: Bool = true) throws -> PresenceChanges {
    let latch = WakeLatch()
    let looks = FollowUpChecks { latch.raise() }
    let watch = try place.directory.watch { looks.begin() }
    let known = startsWithCurrent ? nil : try members()
    // The event of a process that ended between the watch and this look may have come already.
    looks.begin()
    return PresenceChanges(presence: self, watch: watch, latch: latch, looks: looks, known: known)
  }
}

/// The processes that are present under a name, as they change.
public struct PresenceChanges: AsyncSequence, Sendable {
  let presence: Presence
  let watch: Watch
  let latch: WakeLatch
  let looks: FollowUpChecks
  let known: [PresenceMember]?

  /// The way in which changes are noticed.
  public var detection: ChangeDetection { watch.detection }

  public func makeAsyncIterator() -> Iterator { Iterator(sequence: self, known: known) }

  /// The iterator; for one task at a time.
  public struct Iterator: AsyncIteratorProtocol {
    private let sequence: PresenceChanges
    private var known: [PresenceMember]?

    init(sequence: PresenceChanges, known: [PresenceMember]?) {
      self.sequence = sequence
      self.known = known
    }

    /// Returns the present processes after the next change, or nil if the task was cancelled.
    public mutating func next() async -> [PresenceMember]? {
      let (sequence, last) = (sequence, known)
      do {
        known = try await runSuspending(after: sequence.latch) { NextMembers(of: sequence, last) }
        return known
      } catch {
        // Its steps throw nothing, so the task was cancelled.
        return nil
      }
    }
  }

  /// One wait for other members than the known ones.
  private final class NextMembers: Waiting {
    private let sequence: PresenceChanges
    private let known: [PresenceMember]?

    init(of sequence: PresenceChanges, _ known: [PresenceMember]?) {
      self.sequence = sequence
      self.known = known
    }

    func step() -> WaitingStep<[PresenceMember]> {
      do {
        let members = try sequence.looks.members(of: sequence.presence, last: known)
        return members == known ? .wait(for: sequence.latch, until: nil) : .done(members)
      } catch {
        // Perhaps a lack of descriptors, which may pass.
        return .wait(for: sequence.latch, until: .now + Presence.retry)
      }
    }
  }
}
