import AppGroup
import Dispatch
import Synchronization

/// How far a transfer is that this process copies, or asks about.
final class FileProcess: Sendable {
  /// A handler that is called with the progress, until it is cancelled.
  final class Observer: Cancelling {
    private let handler: @Sendable (PeerFileProgress) -> Void
    private let isCancelled = Atomic(false)

    init(_ handler: @escaping @Sendable (PeerFileProgress) -> Void) { self.handler = handler }

    func cancel() { isCancelled.store(true, ordering: .releasing) }

    fileprivate func tell(_ progress: PeerFileProgress) {
      if !isCancelled.load(ordering: .acquiring) { handler(progress) }
    }
  }

  private struct State {
    var completed: Int64?
    var isFinished = false
    var isStored = false
    var isGivenUp = false
    var entry: QueueEntryID?
    /// Why this process tries no more for now.
    var halt: (any Error)?
    var observers: [Observer] = []
    var told: ContinuousClock.Instant?
  }

  let totalBytes: Int64
  private let state = Mutex(State())
  /// Observers may be slow, and copying is not to wait for them.
  private let telling = DispatchQueue(label: "wormhole.progress")
  private static let interval: Duration = .milliseconds(200)

  init(totalBytes: Int64) { self.totalBytes = totalBytes }

  /// How much this process has copied; nil if it has copied nothing of it.
  var progress: PeerFileProgress? {
    state.withLock { state in state.completed.map { progress($0) } }
  }

  private func progress(_ completed: Int64) -> PeerFileProgress {
    PeerFileProgress(completedBytes: min(completed, totalBytes), totalBytes: totalBytes)
  }

  /// The entry that was stored for it, as far as it is known here.
  var entry: QueueEntryID? {
    get { state.withLock(\.entry) }
    set { state.withLock { $0.entry = newValue } }
  }

  /// Whether this process has brought it to its end, however.
  var isFinished: Bool { state.withLock(\.isFinished) }

  /// Whether this process has stored it.
  var isStored: Bool { state.withLock(\.isStored) }

  /// Whether it was given up in this process.
  var isGivenUp: Bool { state.withLock(\.isGivenUp) }

  func giveUp() { state.withLock { $0.isGivenUp = true } }

  // MARK: Halting

  /// Why this process tries no more, until sending begins again; nil while it tries.
  var halt: (any Error)? {
    get { state.withLock(\.halt) }
    set { state.withLock { $0.halt = newValue } }
  }

  // MARK: Telling

  /// So much is copied.
  func advance(to completed: Int64) {
    let now = ContinuousClock.now
    let observers = state.withLock { state -> [Observer] in
      state.completed = completed
      if let told = state.told, now - told < Self.interval { return [] }
      state.told = now
      return state.observers
    }
    tell(observers, progress(completed))
  }

  /// It is stored, as this entry if that is known; or, with nil and `isStored` false, it has failed.
  func finish(_ entry: QueueEntryID?, isStored: Bool = true) {
    let (observers, last) = state.withLock { state -> ([Observer], PeerFileProgress) in
      state.entry = entry ?? state.entry
      state.isFinished = true
      state.isStored = isStored
      if isStored { state.completed = totalBytes }
      defer { state.observers = [] }
      return (state.observers, progress(state.completed ?? 0))
    }
    tell(observers, last)
  }

  /// - Returns: false when there is nothing to observe any more: the caller tells the last state.
  func observe(_ observer: Observer) -> Bool {
    state.withLock { state in
      guard !state.isFinished else { return false }
      state.observers.append(observer)
      return true
    }
  }

  /// Calls an observer after all that was told before.
  func tell(_ observers: [Observer], _ progress: PeerFileProgress) {
    guard !observers.isEmpty else { return }
    telling.async { for observer in observers { observer.tell(progress) } }
  }
}
