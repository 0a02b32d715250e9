public import Dispatch
public import Wormhole
public import WormholePropertyLists
import WormholeSystem

extension GroupDefaults {
  /// Calls a handler for each key of the suite that any process changes.
  ///
  /// Every key can be observed, even with "." and "@" in it. A burst of changes may be reported as
  /// one. The last state is always reported, and never one older than an earlier report. Only
  /// changes of the suite itself are reported, not of registered values, added suites, or the
  /// command line. A suite that cannot be read is reported to `onError`; when it can be read again,
  /// the differences are reported.
  ///
  /// - Parameters:
  ///   - key: The only key to observe; nil for all.
  ///   - startsWithCurrent: Whether the current values are reported first, as new.
  ///   - queue: The queue on which the handler is called: one call at a time, one for each key.
  ///   - handler: Receives the key with its old and its new value.
  /// - Returns: The observation, which lasts until it is cancelled or released. No change after
  ///   this method returns is missed.
  /// - Throws: `WormholeError` if the suite cannot be read now.
  public func observe(
    key: String? = nil, startsWithCurrent: Bool = false, on queue: DispatchQueue,
    _ handler: @escaping @Sendable (DefaultsChange) -> Void
  ) throws -> ObservationToken {
    // The changes of one look are several calls.
    let mark = CancelMark()
    let observation = try observeTogether(
      key: key, startsWithCurrent: startsWithCurrent, on: queue
    ) { changes in
      for change in changes where !mark.isCancelled { handler(change) }
    }
    return ObservationToken(watch: observation, delivery: mark)
  }

  /// Calls a handler once with all changes of each look, even with none; see `observe`.
  package func observeTogether(
    key: String? = nil, startsWithCurrent: Bool = false, on queue: DispatchQueue,
    _ handler: @escaping @Sendable ([DefaultsChange]) -> Void
  ) throws -> ObservationToken {
    let suite = try suite()
    let tracker = try ChangeTracker(suite, key: key, startsWithCurrent: startsWithCurrent)
    // The first call comes at once and reports the changes since the tracker's first look.
    return try suite.value.offer(startsWithCurrent: true, on: queue) { [reporter] _ in
      do {
        handler(try tracker.look())
        return true
      } catch {
        reporter.report(error)
        return (error as? WormholeError)?.mayPass != true
      }
    }
  }

  /// Returns the changes of the suite from now on, for `for await`, with the promises of `observe`.
  ///
  /// Watching begins when this method returns, and ends with the iteration or its task.
  ///
  /// - Parameters:
  ///   - key: The only key to observe; nil for all.
  ///   - startsWithCurrent: Whether the current values are reported first, as new.
  /// - Throws: As `observe`.
  public func changes(
    forKey key: String? = nil, startsWithCurrent: Bool = false
  ) throws -> DefaultsChanges {
    let suite = try suite()
    return DefaultsChanges(
      tracker: try ChangeTracker(suite, key: key, startsWithCurrent: startsWithCurrent),
      hints: try suite.value.snapshots(startsWithCurrent: true), reporter: reporter)
  }
}

/// The changes of a suite as they happen.
///
/// ```swift
/// for await change in try GroupDefaults(in: container).changes(forKey: "volume") {
///   print(change.newValue?.intValue ?? 0)
/// }
/// ```
public struct DefaultsChanges: AsyncSequence, Sendable {
  let tracker: ChangeTracker
  let hints: ValueSnapshots<PropertyListValue>
  let reporter: ErrorReporter

  /// How changes are noticed.
  public var detection: ChangeDetection { hints.detection }

  /// No error ends it.
  public typealias Failure = Never

  /// Creates the iterator; once, for one task.
  public func makeAsyncIterator() -> Iterator {
    Iterator(tracker: tracker, hints: hints.makeAsyncIterator(), reporter: reporter)
  }

  /// Waits for the next change.
  public struct Iterator: AsyncIteratorProtocol {
    let tracker: ChangeTracker
    var hints: ValueSnapshots<PropertyListValue>.Iterator
    let reporter: ErrorReporter
    var pending: ArraySlice<DefaultsChange> = []
    /// Whether the last look failed for a reason that may pass without an event.
    var mustRepeat = false

    /// Returns the next change, or nil if the task was cancelled.
    ///
    /// - Parameter actor: The actor of the caller.
    public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async
      -> DefaultsChange?
    {
      while !Task.isCancelled {
        if let change = pending.popFirst() { return change }
        if mustRepeat {
          await withCheckedContinuation { continuation in
            Timers.after(ChangeMonitor.pollInterval) { continuation.resume() }
          }
        } else if await hints.next(isolation: actor) == nil {
          return nil
        }
        do {
          pending = try await tracker.lookForTask()[...]
          mustRepeat = false
        } catch {
          reporter.report(error)
          mustRepeat = (error as? WormholeError)?.mayPass ?? false
        }
      }
      return nil
    }
  }
}

/// A changed key of a suite.
///
/// ```swift
/// for await change in try GroupDefaults(in: container).changes() where !change.isOwn {
///   print(change.key, change.oldValue ?? "", change.newValue ?? "", change.publisher?.program ?? "")
/// }
/// ```
public struct DefaultsChange: Sendable, Hashable {
  /// The key; dots and "@" are ordinary characters.
  public let key: String
  /// The last reported value of the key; nil if it had none.
  public let oldValue: PropertyListValue?
  /// The stored value; nil if it was removed.
  public let newValue: PropertyListValue?
  /// Whether the observed object itself wrote the value: false for other processes, and for other
  /// objects of this process.
  public let isOwn: Bool
  /// The process that made the change, and when it last changed the suite. Nil if that is unknown:
  /// a program that does not use this package wrote the file, or several processes changed the
  /// suite between two looks, which are reported as one.
  public let publisher: Publisher?
}
