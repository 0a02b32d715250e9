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

extension WCSessionUserInfoTransfer: Cancellable {}
extension WCSessionFileTransfer: Cancellable {}
