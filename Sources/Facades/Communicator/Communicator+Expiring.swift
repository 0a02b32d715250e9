internal import Foundation
internal import WatchConnectivity

/// An extension that the original does not have: a message can become useless with time, or when a
/// newer one replaces it. See `WCSession.transferUserInfo(_:expiresAfter:key:)`.
extension Communicator {
  /// Sends the counterpart a message now, with a time limit for its delivery.
  ///
  /// - Parameters:
  ///   - immediateMessage: The message.
  ///   - lifetime: The time for which it may be delivered; afterwards the error handler gets
  ///     `WCError.transferTimedOut`.
  ///   - errorHandler: As for `send(_:errorHandler:)`.
  @preconcurrency
  public func send(
    _ immediateMessage: ImmediateMessage, expiresAfter lifetime: Duration,
    errorHandler: ImmediateMessage.ErrorHandler? = nil
  ) {
    pass(immediateMessage.wire, .immediatelyReachable, errorHandler) { message in
      session.sendMessage(
        message, expiresAfter: lifetime, replyHandler: nil, errorHandler: errorHandler)
    }
  }

  /// Queues a message as `send(_:completion:)` does, but only as long as it has not expired, and only
  /// the newest of its key.
  ///
  /// - Parameters:
  ///   - guaranteedMessage: The message.
  ///   - lifetime: The time for which it may be delivered; nil for no limit. Afterwards the
  ///     completion gets `WCError.transferTimedOut`.
  ///   - key: A newer message with the same key replaces a waiting one; nil for none. The
  ///     completion of the older one gets `WCError.deliveryFailed`.
  ///   - completion: As for `send(_:completion:)`.
  /// - Returns: A handle to cancel the message; nil if it was not queued.
  @preconcurrency @discardableResult
  public func send(
    _ guaranteedMessage: GuaranteedMessage, expiresAfter lifetime: Duration?, key: String? = nil,
    completion: GuaranteedMessage.Completion? = nil
  ) -> (any Cancellable)? {
    pass(guaranteedMessage.wire, .backgroundOnly, failure(of: completion)) { message in
      sessionDelegate.userInfoTransfers.begin(completion) {
        session.transferUserInfo(message, expiresAfter: lifetime, key: key)
      }
    }
  }

  /// Queues data as `transfer(_:completion:)` does, but only as long as it has not expired.
  ///
  /// - Parameters:
  ///   - blob: The data.
  ///   - lifetime: The time for which it may be delivered; afterwards the completion gets
  ///     `WCError.transferTimedOut`.
  ///   - completion: As for `transfer(_:completion:)`.
  /// - Returns: A handle to cancel the transfer; nil if it was not queued.
  @preconcurrency @discardableResult
  public func transfer(
    _ blob: Blob, expiresAfter lifetime: Duration?, completion: Blob.Completion? = nil
  ) -> (any Cancellable)? {
    pass(blob.wireMetadata, .backgroundOnly, failure(of: completion)) { metadata in
      let file = try TemporaryContent.blob.write(blob.content)
      return sessionDelegate.fileTransfers.begin(completion) {
        session.transferFile(file, metadata: metadata, expiresAfter: lifetime)
      }
    }
  }
}
