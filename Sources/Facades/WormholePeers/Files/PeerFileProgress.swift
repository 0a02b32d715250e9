import Dispatch
import Synchronization
public import Wormhole
import WormholeSystem

/// How much of a file is copied.
///
/// ```swift
/// let phone = try PeerSession("phone", in: container)
/// let transfer = try phone.transfer(fileAt: file, to: "watch")
/// let token = transfer.observeProgress { progress in print(Int(progress.fraction * 100), "%") }
/// ```
public struct PeerFileProgress: Sendable, Hashable {
  /// Bytes copied.
  public let completedBytes: Int64
  /// Bytes of the whole file.
  public let totalBytes: Int64
  /// Between 0 and 1; 1 for an empty file.
  public var fraction: Double {
    totalBytes > 0 ? Double(completedBytes) / Double(totalBytes) : 1
  }
}

/// This process's part in a transfer, and its progress.
extension PeerFileTransfer {
  /// What this process knows of the transfer.
  struct State: Sendable {
    fileprivate typealias Observer = (
      end: CancelMark, handler: @Sendable (PeerFileProgress) -> Void
    )

    /// How many bytes this process has copied; nil if it has copied nothing of it.
    var completed: Int64?
    /// Whether this process has ended it, successfully or not.
    var isFinished = false
    var isStored = false
    var isGivenUp = false
    /// The entry that was stored for its peer, if this process knows it.
    var stored: QueueEntryID?
    /// Why this process no longer tries, until sending begins again; nil while it tries.
    var halt: (any Error)?
    fileprivate var observers: [Observer] = []
    fileprivate var reported: ContinuousClock.Instant?
  }

  private static let interval: Duration = .milliseconds(200)

  /// The bytes that this process has copied; all bytes once a process has stored the file.
  public var progress: PeerFileProgress {
    if let completed = state.withLock(\.completed) { return progress(completed) }
    // If the container cannot be read, the progress is unknown; `status()` throws the reason.
    let isStored = (try? files.intentions().status(of: entry)) == .processed
    return progress(isStored ? intention.size : 0)
  }

  private func progress(_ completed: Int64) -> PeerFileProgress {
    PeerFileProgress(
      completedBytes: min(completed, intention.size), totalBytes: intention.size)
  }

  /// Calls a handler during the copying, at most a few times a second, and at its end, on the
  /// transfer's own queue. If another process copies, the handler is called only at the end.
  ///
  /// - Returns: the observation; it ends when it is cancelled or released.
  public func observeProgress(
    _ handler: @escaping @Sendable (PeerFileProgress) -> Void
  ) -> ObservationToken {
    let observer = (end: CancelMark(), handler: handler)
    let isUnderWay = state.withLock { state in
      if !state.isFinished { state.observers.append(observer) }
      return !state.isFinished
    }
    if isUnderWay { Task { await finishElsewhere() } } else { report([observer], progress) }
    return ObservationToken(delivery: observer.end)
  }

  // Whichever process copies it; if this process did, it has already called the handler.
  private func finishElsewhere() async {
    do {
      _ = try await files.intentions().finalStatus(of: entry)
      let last = try await Blocking.run { self.progress }
      state.withLock { $0.completed = $0.completed ?? last.completedBytes }
      finish(nil, isStored: last.fraction == 1)
    } catch {
      // The container is gone, so no end can be reported.
      return
    }
  }

  // MARK: Reports of the process that copies

  /// This many bytes are copied.
  func advance(to completed: Int64) {
    let now = ContinuousClock.now
    let observers = state.withLock { state -> [State.Observer] in
      state.completed = completed
      if let reported = state.reported, now - reported < Self.interval { return [] }
      state.reported = now
      return state.observers
    }
    report(observers, progress(completed))
  }

  /// It is stored, as this entry if that is known; with nil and `isStored` false, it has failed.
  func finish(_ stored: QueueEntryID?, isStored: Bool = true) {
    let (observers, completed) = state.withLock { state in
      state.stored = stored ?? state.stored
      state.isFinished = true
      state.isStored = isStored
      if isStored { state.completed = intention.size }
      defer { state.observers = [] }
      return (state.observers, state.completed ?? 0)
    }
    report(observers, progress(completed))
  }

  /// Calls observers after all earlier reports.
  private func report(_ observers: [State.Observer], _ progress: PeerFileProgress) {
    guard !observers.isEmpty else { return }
    reports.async {
      for (end, handler) in observers where !end.isCancelled { handler(progress) }
    }
  }
}
