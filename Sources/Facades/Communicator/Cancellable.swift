public import WatchConnectivity

/// An operation under way that can be cancelled from any thread.
///
/// ```swift
/// let sending = Communicator.shared.send(GuaranteedMessage(identifier: "sold"))
/// sending?.cancel()
/// ```
public protocol Cancellable: Sendable {
  /// Cancels the operation, unless the counterpart has it already.
  func cancel()
}

/// A transfer under way. Its completion is called when it is cancelled, because the session does
/// not report that to its delegate.
struct Transfer<Underlying: CancellableTransfer>: Cancellable {
  let underlying: Underlying
  let completions: Completions<Underlying>

  func cancel() {
    underlying.cancel()
    // If the counterpart has it already, the session reports the end.
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
  static let blob = TemporaryContent(kind: "blob", name: "blob")
}
