internal import WatchConnectivity

/// A transfer under way. Its completion is called when it is cancelled, because the session does
/// not report that to its delegate.
struct Transfer<Underlying: CancellableTransfer>: Cancellable {
  let underlying: Underlying
  let completions: Completions<Underlying>

  func cancel() {
    underlying.cancel()
    // If the counterpart has it already, the session reports the end.
    guard underlying.isCancelled else { return }
    underlying.cleanUp()
    completions.end(underlying, .failure(CancellationError()))
  }
}

/// The common interface of both kinds of transfer.
protocol CancellableTransfer: Hashable, Cancellable {
  /// Whether it was cancelled before the counterpart had it.
  var isCancelled: Bool { get }
  /// Removes the temporary resources of the transfer on this side.
  func cleanUp()
}

extension WCSessionUserInfoTransfer: CancellableTransfer {
  func cleanUp() {}
}

extension WCSessionFileTransfer: CancellableTransfer {
  func cleanUp() { TemporaryContent.blob.remove(file.fileURL) }
}

extension TemporaryContent {
  /// The files of blobs on their way.
  static let blob = TemporaryContent(prefix: "communicator-blob", name: "blob")
}
