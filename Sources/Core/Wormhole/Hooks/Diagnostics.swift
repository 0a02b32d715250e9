import Dispatch
import Synchronization
import WormholeSystem

/// The hooks for a program's log and its metrics. The library itself prints nothing.
///
/// A handler is called on a queue of this type, one call at a time and in the order of the events:
/// never under a lock of the library, and never on a thread that the library waits for. So it may
/// block, or use the library. If it falls behind, at most 10,000 calls wait for it; later ones are
/// dropped, and an event of the kind `dropped` says how many. When the process exits, waiting calls
/// are delivered within a second.
///
/// Without a handler no event is created: a place that could report one costs one relaxed load.
///
/// See <doc:LogsAndMetrics> for bridges to swift-log and swift-metrics.
///
/// ```swift
/// Diagnostics.onEvent = { event in
///   guard event.level >= .notice else { return }
///   print(event.level, event.message, event.fields)
/// }
/// ```
public enum Diagnostics {
  /// How serious an event is: the levels of swift-log, by the same names.
  ///
  /// ```swift
  /// Diagnostics.onEvent = { event in if event.level > .info { print(event) } }
  /// ```
  public enum Level: String, Sendable, Hashable, CaseIterable, Comparable {
    /// Every step.
    case trace
    /// Details for a developer.
    case debug
    /// An event of ordinary use.
    case info
    /// An ordinary event that is worth a look.
    case notice
    /// A condition that is not a failure but should not last.
    case warning
    /// A failure.
    case error
    /// A failure that keeps the program from continuing.
    case critical

    /// Orders the levels: the more serious level is the greater one.
    public static func < (left: Level, right: Level) -> Bool { left.rank < right.rank }

    private var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }
  }

  /// The kind of an event, for programs that act on it.
  ///
  /// ```swift
  /// Diagnostics.onEvent = { event in if event.kind == .takeover { print(event.message) } }
  /// ```
  #if hasAttribute(nonexhaustive)
    @nonexhaustive
  #endif
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// An error that an interface cannot return. Level `error`; `error` has it.
    case failure
    /// Something was taken over from another process that was stopped or took too long. Level `notice`;
    /// fields `what`, `path`, `from` and `state`.
    case takeover
    /// A command is not taken over yet, because its user has stopped it at a terminal. Level `notice`; fields
    /// `what`, `path`, `from` and `seconds`.
    case patience
    /// A change begins again, because its lease was taken over. Level `notice`; fields `what` and `path`.
    case retry
    /// A wait for other processes has ended. Level `debug`; fields `what`, `path`, `seconds` and
    /// `outcome`: "done", or the code of the error.
    case wait
    /// Unusable content was put aside. Level `warning`; fields `path` and `from`.
    case quarantine
    /// An entry of a queue was delivered for the first time. Measured only.
    case delivery
    /// An entry of a queue was delivered again. Level `info`; fields `queue`, `entry` and `attempt`.
    case redelivery
    /// A peer became reachable or unreachable. Level `info`; fields `peer`, `state` and `reason`.
    case reachability
    /// The handlers fell behind. Level `warning`; field `count`.
    case dropped
  }

  /// Something that a program may want in its log.
  ///
  /// ```swift
  /// Diagnostics.onEvent = { event in
  ///   print(event.level, event.kind, event.message, event.container ?? "", event.fields)
  /// }
  /// ```
  public struct Event: Sendable, CustomStringConvertible {
    /// The severity of the event.
    public let level: Level
    /// The kind of the event.
    public let kind: Kind
    /// The event, as a sentence for people.
    public let message: String
    /// The details by name, including `container` if one is concerned; see `Kind`.
    public let fields: [String: String]
    /// The error of a `failure`.
    public let error: (any Error)?

    /// The path of the container, if one is concerned.
    public var container: String? { fields["container"] }

    /// "warning: MESSAGE".
    public var description: String { "\(level.rawValue): \(message)" }
  }

  /// Something that a program may want to count, or to measure.
  ///
  /// ```swift
  /// Diagnostics.onMeasurement = { sample in
  ///   print(sample.name, sample.duration ?? .zero, sample.dimensions)
  /// }
  /// ```
  public struct Measurement: Sendable, Hashable {
    /// The name of the metric: "wormhole." and the kind of the event.
    public let name: String
    /// The duration of a `wait`; nil for an event that is only counted, once each.
    public let duration: Duration?
    /// The few values by which it may be grouped: the event's fields that are words, such as
    /// `what`, `state` and `outcome`; never a path.
    public let dimensions: [String: String]
  }

  private struct State {
    var onEvent: (@Sendable (Event) -> Void)?
    var onMeasurement: (@Sendable (Measurement) -> Void)?
    var waiting = 0
    /// Whether anything was ever given to the queue.
    var wasUsed = false
    var dropped = 0
    var isExitAwaited = false
  }

  /// How many calls may wait for the handlers.
  static let maximumWaiting = 10_000
  private static let exitPatience: Duration = .seconds(1)

  private static let state = Mutex(State())
  /// Whether there is a handler.
  private static let wanted = Atomic(false)
  private static let queue = Blocking.queue()

  /// Receives every event from now on; nil means no handler.
  ///
  /// Its predecessor may still be called with earlier events; see `flush(until:)`.
  public static var onEvent: (@Sendable (Event) -> Void)? {
    get { state.withLock { $0.onEvent } }
    set { change { exchange(&$0.onEvent, with: newValue) } }
  }

  /// Receives every measurement from now on; nil means no handler.
  public static var onMeasurement: (@Sendable (Measurement) -> Void)? {
    get { state.withLock { $0.onMeasurement } }
    set { change { exchange(&$0.onMeasurement, with: newValue) } }
  }

  /// - Parameter replace: returns the old handler.
  private static func change<Handler: Sendable>(_ replace: (inout State) -> Handler) {
    let (old, mustAwaitExit) = state.withLock { state in
      let old = replace(&state)
      let isWanted = state.onEvent != nil || state.onMeasurement != nil
      wanted.store(isWanted, ordering: .relaxed)
      defer { state.isExitAwaited = state.isExitAwaited || isWanted }
      return (old, isWanted && !state.isExitAwaited)
    }
    // Released outside the lock, because its captures may call back here.
    withExtendedLifetime(old) {}
    if mustAwaitExit {
      Program.atExit { Diagnostics.flush(until: .now + Diagnostics.exitPatience) }
    }
  }

  /// Waits until the handlers have received everything that happened before.
  ///
  /// - Parameter deadline: the end of the wait for a handler that is slow, or that calls this.
  /// - Returns: whether they have.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  @discardableResult
  public static func flush(until deadline: ContinuousClock.Instant) -> Bool {
    // Most programs end without an event, and need no thread to find that out.
    guard state.withLock(\.wasUsed) else { return true }
    let isDone = DispatchSemaphore(value: 0)
    queue.async { isDone.signal() }
    let patience = ContinuousClock.now.duration(to: deadline)
    return isDone.wait(timeout: .now() + patience.dispatchInterval) == .success
  }

  /// Waits until the handlers have received everything that happened before; see the form without
  /// `async`.
  @discardableResult
  public static func flush(until deadline: ContinuousClock.Instant) async -> Bool {
    // The body throws nothing, so this never fails.
    (try? await Blocking.run { flush(until: deadline) }) ?? false
  }
}

// MARK: For the library

extension Diagnostics {
  /// Reports an error that cannot be returned to a caller.
  package static func report(_ error: any Error) {
    note(.failure, at: .error, "\(error)", error: error)
  }

  /// Runs a closure whose error changes nothing for the caller: it is only reported.
  ///
  /// - Parameter report: The receiver of the error.
  /// - Returns: Its result, or `otherwise` after an error.
  package static func reporting<Result>(
    otherwise: Result, to report: (any Error) -> Void = report, _ body: () throws -> Result
  ) -> Result {
    do {
      return try body()
    } catch {
      report(error)
      return otherwise
    }
  }

  package static func reporting(_ body: () throws -> Void) { reporting(otherwise: (), body) }

  /// Reports an event. Costs one load if there is no handler.
  ///
  /// May be called anywhere, even under a lock: it only enqueues.
  ///
  /// - Parameters:
  ///   - level: nil for an event that is measured only.
  ///   - container: the path of the container, if one is concerned.
  ///   - duration: how long it took, for a wait.
  ///   - dimensions: the fields that are words, by which a measurement is grouped.
  ///   - fields: the other fields.
  package static func note(
    _ kind: Kind, at level: Level?, _ message: @autoclosure () -> String,
    in container: @autoclosure () -> String? = nil, lasting duration: Duration? = nil,
    dimensions: @autoclosure () -> [String: String] = [:],
    fields: @autoclosure () -> [String: String] = [:], error: (any Error)? = nil
  ) {
    guard isWanted else { return }
    let dimensions = dimensions()
    let event = level.map { level in
      var all = fields().merging(dimensions) { own, _ in own }
      all["container"] = container()
      if let duration { all["seconds"] = "\(duration / .seconds(1))" }
      return Event(level: level, kind: kind, message: message(), fields: all, error: error)
    }
    let measurement = Measurement(
      name: "wormhole." + kind.rawValue, duration: duration, dimensions: dimensions)
    let isEnqueued = state.withLock { state in
      guard event != nil || state.onMeasurement != nil else { return false }
      guard state.waiting < maximumWaiting else {
        state.dropped += 1
        return false
      }
      state.waiting += 1
      state.wasUsed = true
      return true
    }
    if isEnqueued { queue.async { deliver(event, measurement) } }
  }

  package static var isWanted: Bool { wanted.load(ordering: .relaxed) }

  private static func deliver(_ event: Event?, _ measurement: Measurement) {
    let (onEvent, onMeasurement, dropped) = state.withLock { state in
      state.waiting -= 1
      return (state.onEvent, state.onMeasurement, exchange(&state.dropped, with: 0))
    }
    if dropped > 0 {
      let message = "\(dropped) events were dropped, because a handler fell behind"
      onEvent?(
        Event(
          level: .warning, kind: .dropped, message: message, fields: ["count": "\(dropped)"],
          error: nil))
      onMeasurement?(Measurement(name: "wormhole.dropped", duration: nil, dimensions: [:]))
    }
    if let event { onEvent?(event) }
    onMeasurement?(measurement)
  }
}

/// The receiver of errors that a source-compatible method cannot return.
package final class ErrorReporter: Sendable {
  private let stored = Mutex<(@Sendable (any Error) -> Void)?>(nil)

  package init() {}

  /// By default they are events; see `Diagnostics`.
  package var handler: (@Sendable (any Error) -> Void)? {
    get { stored.withLock { $0 } }
    set {
      // The old handler is released outside the lock, because its captures may call back here.
      withExtendedLifetime(stored.withLock { exchange(&$0, with: newValue) }) {}
    }
  }

  package func report(_ error: any Error) { (handler ?? Diagnostics.report)(error) }
}
