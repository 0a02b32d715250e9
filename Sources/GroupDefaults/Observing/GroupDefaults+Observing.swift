public import AppGroup
public import Dispatch

extension GroupDefaults {
  /// Calls a handler for each key of the suite that has changed, whoever changed it.
  ///
  /// Any key will do, those with "." and "@" included. A burst of changes may be told as one; the
  /// last state is always told, and none that is older than what was told before. Told is what is
  /// stored in the suite: not what is registered, added or on the command line. A suite that
  /// cannot be read is reported to `onError`; when it can be read again, what is different is told.
  ///
  /// - Parameters:
  ///   - key: the only key to tell of; nil for all.
  ///   - startsWithCurrent: whether the values that are there now are told first, as new.
  ///   - queue: where the handler is called, one call at a time, one for each key.
  ///   - handler: gets the key with its old and its new value.
  /// - Returns: the observation; it ends when it is cancelled or forgotten. Nothing that is stored
  ///   after this returns is missed.
  /// - Throws: `GroupDefaultsError.damaged` or `AppGroupError` when the suite cannot be read now.
  public func observe(
    key: String? = nil, startsWithCurrent: Bool = false, on queue: DispatchQueue,
    _ handler: @escaping @Sendable (DefaultsChange) -> Void
  ) throws -> DefaultsObservation {
    let suite = try suite()
    let tracker = try ChangeTracker(suite, key: key, startsWithCurrent: startsWithCurrent)
    let end = DefaultsObservation.End()
    // The first call comes at once and tells what has changed since the tracker looked.
    let observation = try suite.value.observe(startsWithCurrent: true, on: queue) { [reporter] _ in
      do {
        for change in try tracker.look() where end.isAwaited { handler(change) }
      } catch {
        reporter.report(error)
      }
    }
    return DefaultsObservation(observation, end)
  }

  /// The changes of the suite from now on, for `for await`; the same promises as `observe`.
  ///
  /// Watching begins when this returns, and ends with the iteration or its task.
  ///
  /// - Parameters:
  ///   - key: the only key to tell of; nil for all.
  ///   - startsWithCurrent: whether the values that are there now are told first, as new.
  /// - Throws: as `observe`.
  public func changes(
    forKey key: String? = nil, startsWithCurrent: Bool = false
  ) throws -> DefaultsChanges {
    let suite = try suite()
    return DefaultsChanges(
      tracker: try ChangeTracker(suite, key: key, startsWithCurrent: startsWithCurrent),
      hints: try suite.value.snapshots(startsWithCurrent: true), reporter: reporter)
  }
}

/// The changes of a suite as they come.
public struct DefaultsChanges: AsyncSequence, Sendable {
  let tracker: ChangeTracker
  let hints: Snapshots
  let reporter: ErrorReporter

  /// How changes are noticed.
  public var detection: Observation.Detection { hints.detection }

  /// Begins to iterate; one task, once.
  public func makeAsyncIterator() -> Iterator {
    Iterator(tracker: tracker, hints: hints.makeAsyncIterator(), reporter: reporter)
  }

  /// Waits for the next change.
  public struct Iterator: AsyncIteratorProtocol {
    private let tracker: ChangeTracker
    private var hints: Snapshots.Iterator
    private let reporter: ErrorReporter
    private var pending: ArraySlice<DefaultsChange> = []

    init(tracker: ChangeTracker, hints: Snapshots.Iterator, reporter: ErrorReporter) {
      self.tracker = tracker
      self.hints = hints
      self.reporter = reporter
    }

    /// The next change; nil when the task was cancelled.
    public mutating func next() async -> DefaultsChange? {
      while !Task.isCancelled {
        if let change = pending.popFirst() { return change }
        guard await hints.next() != nil else { return nil }
        do {
          pending = try await tracker.lookForTask()[...]
        } catch {
          reporter.report(error)
        }
      }
      return nil
    }
  }
}
