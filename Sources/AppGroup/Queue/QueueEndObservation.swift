import Dispatch
import Synchronization

/// Tells how entries end, until it is cancelled or forgotten. Thread-safe.
public final class QueueEndObservation: Sendable {
  /// Entries that have ended and how, in the order in which they were sent.
  public typealias Ends = [(id: QueueEntryID, status: QueueEntryStatus)]
  /// What is told of it.
  public typealias Handler = @Sendable (Result<Ends, AppGroupError>) -> Void

  private struct State {
    var waiting: [BatchName: (entries: Set<Int>, token: QueueEndWatch.Token?)] = [:]
    /// What is to be looked at, and whether it must be read for that.
    var dirty: [BatchName: Bool] = [:]
    var isLooking = false
    var isCancelled = false
  }

  private let sender: Queue.Sender
  private let target: DispatchQueue
  private let handler: Handler
  private let state = Mutex(State())
  /// Where files are looked at.
  private let work = Blocking.queue()

  init(_ sender: Queue.Sender, _ target: DispatchQueue, _ handler: @escaping Handler) {
    self.sender = sender
    self.target = target
    self.handler = handler
  }

  deinit { cancel() }

  private var path: String { sender.queue.path }

  /// Adds entries; those that have ended already are told as well.
  public func add(_ ids: [QueueEntryID]) {
    let batches = state.withLock { state -> Set<BatchName> in
      guard !state.isCancelled else { return [] }
      for id in ids { state.waiting[id.batch, default: ([], nil)].entries.insert(id.index) }
      return Set(ids.map(\.batch))
    }
    for batch in batches { note(batch, mustRead: true) }
  }

  /// Ends it: the handler is not called any more, but for a call that has begun.
  public func cancel() {
    let waiting = state.withLock { state in
      state.isCancelled = true
      defer { state.waiting = [:] }
      return state.waiting
    }
    for (batch, (_, token)) in waiting {
      if let token { sender.ends.remove(token, batch) }
    }
  }

  private func note(_ batch: BatchName, mustRead: Bool) {
    let mustLook = state.withLock { state in
      state.dirty[batch] = mustRead || state.dirty[batch] == true
      // Excludes: two looks at once, of which the second would tell an end twice.
      defer { state.isLooking = true }
      return !state.isLooking
    }
    if mustLook { work.async { self.look() } }
  }

  private func look() {
    while true {
      let dirty = state.withLock { state in
        defer { state.dirty = [:] }
        if state.dirty.isEmpty { state.isLooking = false }
        return state.dirty
      }
      guard !dirty.isEmpty else { return }
      var ends: Ends = []
      for (batch, mustRead) in dirty.sorted(by: { $0.key < $1.key }) {
        do {
          ends += try self.ends(of: batch, mustRead)
        } catch let error as AppGroupError {
          retry(batch, error)
        } catch {
          retry(batch, .init(.inputOutput, "wait for entries", path: path, reason: "\(error)"))
        }
      }
      if !ends.isEmpty { tell(.success(ends)) }
    }
  }

  private func ends(of batch: BatchName, _ mustRead: Bool) throws -> Ends {
    try watch(batch)
    guard let entries = state.withLock({ $0.waiting[batch]?.entries }) else { return [] }
    let statuses = try sender.statuses(of: batch, entries, readsContent: mustRead)
    let ended = statuses.filter(\.value.isEnd)
    let token = state.withLock { state -> QueueEndWatch.Token? in
      state.waiting[batch]?.entries.subtract(ended.keys)
      guard state.waiting[batch]?.entries.isEmpty == true else { return nil }
      return state.waiting.removeValue(forKey: batch)?.token
    }
    if let token { sender.ends.remove(token, batch) }
    return ended.sorted { $0.key < $1.key }.map {
      (QueueEntryID(batch: batch, index: $0.key), $0.value)
    }
  }

  // Before the first look at a batch: what comes after it is told.
  private func watch(_ batch: BatchName) throws {
    let isWatched = state.withLock { $0.waiting[batch].map { $0.token != nil } ?? true }
    guard !isWatched else { return }
    let token = try reporting("wait for entries of \"\(sender.queue.name)\"", path: path) {
      try sender.ends.add(batch) { [weak self] in self?.note(batch, mustRead: $0) }
    }
    let isWanted = state.withLock { state in
      state.waiting[batch]?.token = token
      return state.waiting[batch] != nil
    }
    if !isWanted { sender.ends.remove(token, batch) }
  }

  private func retry(_ batch: BatchName, _ error: AppGroupError) {
    tell(.failure(error))
    Blocking.timers.asyncAfter(deadline: .now() + .seconds(1)) { [weak self] in
      self?.note(batch, mustRead: true)
    }
  }

  private func tell(_ result: Result<Ends, AppGroupError>) {
    target.async { [self] in
      if !state.withLock(\.isCancelled) { handler(result) }
    }
  }
}
