public import WatchConnectivity

/// Something under way that can be cancelled, from any thread.
public protocol Cancellable: Sendable {
  /// Cancels it, unless the counterpart has it already.
  func cancel()
}

extension WCSessionUserInfoTransfer: Cancellable {}
extension WCSessionFileTransfer: Cancellable {}
