import AppGroup
import Dispatch
import PeerConnectivity
import Synchronization

/// Takes one entry after the other out of a queue, and hands it over on the session's queue.
///
/// The next is taken when the one before was handed over, so that no more than one is in memory. One
/// that cannot be handed over now (it is of a watch that is not the active one, or there is no
/// delegate) is left taken and unacknowledged: the next reception gets it again, in its place.
final class Reception<Receiver: EntryReceiver>: Sendable {
  private struct State {
    var receiver: Receiver
    var task: Task<Void, Never>?
    var isHandingOver = false
    /// How many were left.
    var left = 0
    var hasEnded = false
  }

  private let state: Mutex<State>
  private let queue: DispatchQueue
  private let open: @Sendable () async throws -> Receiver
  private let deliver: @Sendable (Receiver.Entry) -> Bool
  private let failure: @Sendable (any Error) -> Void

  /// - Parameters:
  ///   - open: becomes the receiver.
  ///   - queue: the session's.
  ///   - deliver: hands an entry over, on that queue, and ends it; false when it is to be left.
  ///   - failure: called when receiving ends otherwise than by `end()`.
  init(
    _ open: @escaping @Sendable () async throws -> Receiver, on queue: DispatchQueue,
    deliver: @escaping @Sendable (Receiver.Entry) -> Bool,
    failure: @escaping @Sendable (any Error) -> Void
  ) async throws {
    self.open = open
    self.queue = queue
    self.deliver = deliver
    self.failure = failure
    state = Mutex(State(receiver: try await open()))
  }

  func start() {
    state.withLock { state in
      guard !state.hasEnded else { return }
      let receiver = state.receiver
      state.task = Task { await self.run(receiver) }
    }
  }

  /// Hands over everything that is there, and stops.
  func drain() async {
    let receiver = await stop()
    do {
      while let entry = try await receiver.next(until: .now) { await hand(entry) }
    } catch {
      failure(error)
    }
  }

  /// Begins again with what was left.
  func restart() {
    guard state.withLock({ $0.left > 0 && !$0.hasEnded }) else { return }
    Task {
      await stop().end()
      do {
        let receiver = try await open()
        let hasEnded = state.withLock {
          $0.receiver = receiver
          $0.left = 0
          return $0.hasEnded
        }
        if hasEnded { receiver.end() } else { start() }
      } catch {
        failure(error)
      }
    }
  }

  /// Ends it; what was not handed over goes to the next.
  func end() {
    let (receiver, task) = state.withLock { state in
      state.hasEnded = true
      return (state.receiver, state.task)
    }
    task?.cancel()
    receiver.end()
  }

  /// Whether something is there that was not handed over.
  func isPending() throws -> Bool {
    let (receiver, left, isHandingOver) = state.withLock {
      ($0.receiver, $0.left, $0.isHandingOver)
    }
    // What was left keeps the queue from ever being idle, and is for another watch.
    return try left > 0 ? isHandingOver : !receiver.isIdle()
  }

  private func stop() async -> Receiver {
    let (receiver, task) = state.withLock { ($0.receiver, $0.task) }
    task?.cancel()
    await task?.value
    return receiver
  }

  private func run(_ receiver: Receiver) async {
    do {
      while !Task.isCancelled {
        // Waking once an hour for nothing costs nothing.
        guard let entry = try await receiver.next(until: .now + .seconds(3_600)) else { continue }
        await hand(entry)
      }
    } catch {
      guard !Task.isCancelled, !state.withLock({ $0.hasEnded }) else { return }
      failure(error)
    }
  }

  private func hand(_ entry: Receiver.Entry) async {
    state.withLock { $0.isHandingOver = true }
    let isDone = await withCheckedContinuation { continuation in
      queue.async { continuation.resume(returning: self.deliver(entry)) }
    }
    state.withLock {
      $0.isHandingOver = false
      if !isDone { $0.left += 1 }
    }
  }
}
