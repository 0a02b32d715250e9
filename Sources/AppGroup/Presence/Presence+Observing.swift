public import Dispatch
import Synchronization
import SystemCalls

extension Presence {
  /// Calls a handler whenever somebody enters, leaves or dies.
  ///
  /// What is delivered is who is here at that moment, so no delivery is older than one before. A
  /// look that fails, for want of descriptors perhaps, is made again until it succeeds.
  ///
  /// - Parameters:
  ///   - startsWithCurrent: whether those who are here now are delivered first, also if it is nobody.
  ///   - queue: where the handler is called, one call at a time.
  ///   - handler: gets who is here, the oldest first.
  /// - Returns: the observation; it ends when it is cancelled or forgotten. Nobody who enters or
  ///   leaves after this returns is missed.
  /// - Throws: `AppGroupError` when the container cannot be used any more. A lack of watches is no
  ///   error: the observation then polls and says so in `detection`.
  public func observe(
    startsWithCurrent: Bool = false, on queue: DispatchQueue,
    _ handler: @escaping @Sendable ([PresenceMember]) -> Void
  ) throws -> Observation {
    let delivery = PresenceDelivery(self, on: queue, handler)
    let watch = try place.directory.watch { delivery.signal() }
    delivery.open(known: startsWithCurrent ? nil : try members())
    return Observation(watch: watch, delivery: delivery)
  }

  /// Who is here, each time that changes, for `for await`; the same promises as `observe`.
  ///
  /// Watching begins when this returns and ends with the sequence.
  ///
  /// - Throws: as `observe`.
  public func changes(startsWithCurrent: Bool = true) throws -> PresenceChanges {
    let latch = WakeLatch()
    let looks = SecondLooks { latch.raise() }
    let watch = try place.directory.watch { looks.begin() }
    let known = startsWithCurrent ? nil : try members()
    // Who ended between the watch and this look may have been told of already.
    looks.begin()
    return PresenceChanges(presence: self, watch: watch, latch: latch, looks: looks, known: known)
  }
}

/// Calls the handler with what a look finds, after an event and at the looks that follow it.
final class PresenceDelivery: Cancellable {
  private let delivery: Delivery<[PresenceMember]?>
  private let looks: SecondLooks

  /// A look that failed is made again after this.
  static let retry: Duration = .milliseconds(200)

  private final class Target: Sendable {
    private let delivery = Mutex(WeakDelivery())

    func set(_ delivery: Delivery<[PresenceMember]?>) {
      self.delivery.withLock { $0.delivery = delivery }
    }

    func signal() { delivery.withLock { $0.delivery }?.signal() }
  }

  private struct WeakDelivery { weak var delivery: Delivery<[PresenceMember]?>? }

  init(
    _ presence: Presence, on queue: DispatchQueue,
    _ handler: @escaping @Sendable ([PresenceMember]) -> Void
  ) {
    let target = Target()
    let looks = SecondLooks { target.signal() }
    let delivery = Delivery<[PresenceMember]?>(initial: nil, on: queue) { last in
      do {
        let members = try looks.members(of: presence, last: last)
        let call: @Sendable () -> Void = { handler(members) }
        return (members, members == last ? nil : call)
      } catch {
        Blocking.timers.asyncAfter(deadline: .now() + Self.retry.dispatchInterval) {
          target.signal()
        }
        return (last, nil)
      }
    }
    target.set(delivery)
    self.delivery = delivery
    self.looks = looks
  }

  func signal() { looks.begin() }

  /// - Parameter known: nil to deliver what is there now.
  func open(known: [PresenceMember]?) {
    delivery.open(known: known, signalled: known == nil)
    // Who ended between the watch and the look may have been told of already.
    looks.begin()
  }

  func cancel() {
    looks.end()
    delivery.cancel()
  }
}

/// Who is present under a name, as it changes.
public struct PresenceChanges: AsyncSequence, Sendable {
  let presence: Presence
  let watch: Watch
  let latch: WakeLatch
  let looks: SecondLooks
  let known: [PresenceMember]?

  /// How changes are noticed.
  public var detection: Observation.Detection {
    switch watch.detection {
    case .events: .events
    case .polling(let reason): .polling(reason: reason)
    }
  }

  public func makeAsyncIterator() -> Iterator { Iterator(sequence: self, known: known) }

  /// Waits for the next change; one task at a time.
  public struct Iterator: AsyncIteratorProtocol {
    private let sequence: PresenceChanges
    private var known: [PresenceMember]?

    init(sequence: PresenceChanges, known: [PresenceMember]?) {
      self.sequence = sequence
      self.known = known
    }

    /// Who is here after the next change; nil when the task was cancelled.
    public mutating func next() async -> [PresenceMember]? {
      var wait: ContinuousClock.Instant?
      while !Task.isCancelled {
        await sequence.latch.suspend(until: wait)
        wait = nil
        if Task.isCancelled { break }
        let (presence, looks, last) = (sequence.presence, sequence.looks, known)
        do {
          let members = try await Blocking.run { try looks.members(of: presence, last: last) }
          guard members != known else { continue }
          known = members
          return members
        } catch {
          // For want of descriptors, perhaps: it may pass.
          wait = .now + PresenceDelivery.retry
        }
      }
      return nil
    }
  }
}
