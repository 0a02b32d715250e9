internal import Synchronization
public import WatchConnectivity

/// An operation under way that can be cancelled from any thread.
///
/// ```swift
/// let sending = Communicator.shared.send(GuaranteedMessage(identifier: "sold"))
/// sending?.cancel()
/// ```
public protocol Cancellable: Sendable {
  /// Cancels the operation, unless the counterpart already has it. Its completion is called, with
  /// `CancellationError`, before this returns.
  func cancel()
}

/// A transfer under way. Its completion is called when it is cancelled, because the session does
/// not report that to its delegate.
struct Transfer<Underlying: CancellableTransfer>: Cancellable {
  let underlying: Underlying
  let completions: Completions<Underlying>

  func cancel() {
    underlying.cancel()
    // If the counterpart already has it, the session reports the end.
    guard underlying.isCancelled else { return }
    if let file = (underlying as? WCSessionFileTransfer)?.file {
      TemporaryContent.remove(file.fileURL)
    }
    completions.end(underlying, .failure(CancellationError()))
  }
}

/// The common interface of both kinds of transfer.
protocol CancellableTransfer: Hashable, Cancellable {
  /// Whether it was cancelled before the counterpart had it.
  var isCancelled: Bool { get }
}

extension WCSessionUserInfoTransfer: Cancellable, CancellableTransfer {}
extension WCSessionFileTransfer: Cancellable, CancellableTransfer {}

extension TemporaryContent {
  /// The files of blobs on their way.
  static let blob = TemporaryContent(kind: "blob")
}

/// The completions of transfers under way. Thread-safe.
final class Completions<Underlying: CancellableTransfer>: Sendable {
  typealias Outcome = Result<Void, any Error>
  typealias Completion = @Sendable (Outcome) -> Void

  private let table = Mutex(CompletionTable<Underlying, Outcome, Completion>())

  /// Begins a transfer whose outcome is reported to the completion once.
  func begin(_ completion: Completion?, _ begin: () -> Underlying) -> any Cancellable {
    table.withLock { $0.willBegin() }
    let transfer = begin()
    let outcome = table.withLock { $0.didBegin(transfer, completion) }
    if let outcome { completion?(outcome) }
    return Transfer(underlying: transfer, completions: self)
  }

  /// Calls the completion, if there is one in this process.
  func end(_ transfer: Underlying, _ outcome: Outcome) {
    table.withLock { $0.didEnd(transfer, outcome) }?(outcome)
  }
}

/// The completions of transfers under way.
///
/// A transfer may end before its sender knows its identity. Such outcomes are kept until no
/// transfer is being started any longer. A completion is dropped when it is handed out.
struct CompletionTable<Transfer: Hashable, Outcome, Completion> {
  private var completions: [Transfer: Completion] = [:]
  private var beginning = 0
  private var early: [Transfer: Outcome] = [:]

  var isEmpty: Bool { completions.isEmpty && early.isEmpty && beginning == 0 }

  mutating func willBegin() { beginning += 1 }

  /// - Returns: The outcome, if the transfer has ended; the caller then calls the completion with
  ///   it.
  mutating func didBegin(_ transfer: Transfer, _ completion: Completion?) -> Outcome? {
    beginning -= 1
    let outcome = early.removeValue(forKey: transfer)
    if outcome == nil { completions[transfer] = completion }
    if beginning == 0 { early.removeAll() }
    return outcome
  }

  /// - Returns: The completion, which the caller calls.
  mutating func didEnd(_ transfer: Transfer, _ outcome: Outcome) -> Completion? {
    if let completion = completions.removeValue(forKey: transfer) { return completion }
    if beginning > 0 { early[transfer] = outcome }
    return nil
  }
}
