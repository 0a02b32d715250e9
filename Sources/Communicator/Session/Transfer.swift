internal import WatchConnectivity

/// Something under way, whose completion hears of it when it is taken back: the session does not tell
/// its delegate of that.
struct Transfer<Underlying: CancellableTransfer>: Cancellable {
  let underlying: Underlying
  let completions: Completions<Underlying>

  func cancel() {
    underlying.cancel()
    // Not if the counterpart has it already: then the session tells the end.
    guard underlying.isCancelled else { return }
    underlying.cleanUp()
    completions.end(underlying, .failure(CancellationError()))
  }
}

/// What both kinds of transfer have.
protocol CancellableTransfer: Hashable, Cancellable {
  /// Whether it was taken back before the counterpart had it.
  var isCancelled: Bool { get }
  /// Removes what was made for it here.
  func cleanUp()
}

extension WCSessionUserInfoTransfer: CancellableTransfer {
  func cleanUp() {}
}

extension WCSessionFileTransfer: CancellableTransfer {
  func cleanUp() { BlobFile.remove(file.fileURL) }
}
