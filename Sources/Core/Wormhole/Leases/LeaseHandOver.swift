import Synchronization
import WormholeSystem

/// The hand-over of a contended lease, from the process that releases it to the longest waiter.
///
/// The file `held/clean` contains a counter. A release adds one to it and wakes one waiter. This is only
/// a hint: a waiter never waits longer for it than a moment, and then tries by itself, so it does not
/// matter if the waiter that was woken is dead, or if a holder of another kind wakes none.
final class LeaseHandOver: Sendable {
  private struct State: Sendable {
    var counter: FileCounter?
    /// When the counter was last seen.
    var seen: UInt32?
    /// Releases that still wake a waiter.
    var remaining = 0
  }

  /// How many releases in a row wake no waiter before this process considers the lease uncontended.
  private static let releases = 64
  /// The wait for a turn, among processes that hand the lease over. A turn of eight takes a fifth of it.
  fileprivate static let pause: Duration = .milliseconds(2)

  private let state = Mutex(State())

  /// A look at the counter, before an attempt to get the lease.
  struct Look: Sendable {
    fileprivate let counter: FileCounter
    fileprivate let value: UInt32
    fileprivate let isHandedOver: Bool
  }

  /// Looks at the counter before an attempt. A release after that ends the pause after the attempt.
  ///
  /// - Parameter isWaiting: Whether an attempt has failed before.
  func look(at held: HeldDirectory, isWaiting: Bool) -> Look? {
    let (known, seen, remaining) = state.withLock { ($0.counter, $0.seen, $0.remaining) }
    guard isWaiting || remaining > 0 else { return nil }
    do throws(Errno) {
      let found = if let known { known } else { try open(held) }
      guard let counter = found, let value = try counter.value() else { return nil }
      state.withLock { state in
        state.counter = counter
        state.seen = value
        state.remaining = Self.releases
      }
      return Look(counter: counter, value: value, isHandedOver: seen != nil && seen != value)
    } catch {
      // The waiter tries at intervals.
      return nil
    }
  }

  private func open(_ held: HeldDirectory) throws(Errno) -> FileCounter? {
    let file = try FileDescriptor.open(
      LeaseSite.cleanMark, at: held.descriptor.rawValue, [.readWrite, .noFollow, .nonBlocking])
    let status = try file.status()
    // With a second name it may be any file, which is not ours to change.
    guard status.kind == .regular, status.links == 1 else { return nil }
    if status.size == 0 { try file.writeAll(FileCounter.initialContent) }
    return try FileCounter(file)
  }

  /// Wakes the next waiter, if there was one recently; for a process that just released the lease.
  func pass() {
    let counter = state.withLock { state -> FileCounter? in
      guard state.remaining > 0 else { return nil }
      state.remaining -= 1
      return state.counter
    }
    guard counter?.addOne() == true else { return }
    state.withLock { $0.remaining = Self.releases }
  }

  /// Closes the counter, because the lease may be another one by now.
  func close() { state.withLock { $0 = State() } }
}

extension LeaseHandOver.Look {
  /// Returns the pause until the next attempt.
  ///
  /// - Parameter interval: The pause among processes that hand over nothing.
  func pause<Outcome>(_ interval: Duration) -> WaitingStep<Outcome> {
    .handOver(counter, seen: value, isHandedOver ? LeaseHandOver.pause : interval)
  }
}
