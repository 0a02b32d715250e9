internal import Foundation
internal import WatchConnectivity

// There are no `async` forms beside these: in a task Swift would choose them for code written for
// the original, which would then no longer compile.
extension Communicator {
  /// Sends the counterpart a message now.
  ///
  /// - Parameters:
  ///   - immediateMessage: The message; at most 65,536 bytes of property list.
  ///   - errorHandler: Called at most once. If the counterpart is not `.immediatelyReachable`, it
  ///     is called with `Communicator.Error` before this method returns, on the calling thread;
  ///     otherwise later, with a `WCError`, on the session's queue.
  @preconcurrency
  public func send(
    _ immediateMessage: ImmediateMessage, errorHandler: ImmediateMessage.ErrorHandler? = nil
  ) {
    pass(immediateMessage.wire, .immediatelyReachable, errorHandler) { message in
      session.sendMessage(message, replyHandler: nil, errorHandler: errorHandler)
    }
  }

  /// Sends the counterpart a message now, and passes its reply to the message's `reply`.
  ///
  /// Exactly one of `reply` and `errorHandler` is called, once. A reply that is not a message is
  /// the error `WCError.messageReplyFailed`.
  ///
  /// - Parameters:
  ///   - interactiveImmediateMessage: The message; at most 65,536 bytes of property list.
  ///   - errorHandler: As for `ImmediateMessage`.
  @preconcurrency
  public func send(
    _ interactiveImmediateMessage: InteractiveImmediateMessage,
    errorHandler: ImmediateMessage.ErrorHandler? = nil
  ) {
    let reply = interactiveImmediateMessage.reply
    pass(interactiveImmediateMessage.wire, .immediatelyReachable, errorHandler) { message in
      session.sendMessage(
        message,
        replyHandler: { content in
          guard let message = ImmediateMessage(wire: content) else {
            errorHandler?(Self.malformedReply)
            return
          }
          reply(message)
        },
        errorHandler: errorHandler)
    }
  }

  /// Queues a message, which the counterpart gets even if both processes end first.
  ///
  /// Guaranteed messages arrive in the order of sending.
  ///
  /// - Parameters:
  ///   - guaranteedMessage: The message; at most 65,536 bytes of property list.
  ///   - completion: Called once, when the counterpart's process has received the message, or when
  ///     the message was cancelled or failed. The counterpart's observers are called after that,
  ///     and a value that they have not handled is lost with their process. The completion is
  ///     called on the session's queue; for a cancelled message in `cancel()`; and if the message
  ///     ends at once, or the counterpart is `.notReachable`, before this method returns. It ends
  ///     with this process: `FinishedTransfer.observe` reports outcomes from earlier ones.
  /// - Returns: A handle to cancel the message; nil if it was not queued, as reported to
  ///   `completion`.
  @preconcurrency @discardableResult
  public func send(
    _ guaranteedMessage: GuaranteedMessage, completion: GuaranteedMessage.Completion? = nil
  ) -> (any Cancellable)? {
    send(guaranteedMessage, expiresAfter: nil, completion: completion)
  }

  /// Queues data of any size, which the counterpart gets even if both processes end first.
  ///
  /// This method writes the content to a temporary file before it returns, and takes that long. The
  /// file is removed at the end of the transfer.
  ///
  /// - Parameters:
  ///   - blob: The data to transfer.
  ///   - completion: As for `GuaranteedMessage`; also called if the file cannot be written.
  /// - Returns: As for `GuaranteedMessage`.
  @preconcurrency @discardableResult
  public func transfer(
    _ blob: Blob, completion: Blob.Completion? = nil
  ) -> (any Cancellable)? {
    transfer(blob, expiresAfter: nil, completion: completion)
  }

  /// Queues a blob like `transfer(_:completion:)`; the original's README uses this name.
  @preconcurrency @discardableResult
  public func transfer(
    blob: Blob, completion: Blob.Completion? = nil
  ) -> (any Cancellable)? { transfer(blob, completion: completion) }

  /// Queues complication info for the watch, which is woken to handle it while the day's budget
  /// lasts.
  ///
  /// - Parameters:
  ///   - complicationInfo: The info; at most 65,536 bytes of property list.
  ///   - completion: As for `GuaranteedMessage`; a success contains the number of updates left
  ///     today.
  /// - Returns: As for `GuaranteedMessage`.
  @preconcurrency @discardableResult
  public func transfer(
    _ complicationInfo: ComplicationInfo, completion: ComplicationInfo.Completion? = nil
  ) -> (any Cancellable)? {
    let counting = completion.map { completion -> GuaranteedMessage.Completion in
      { [self] result in
        completion(result.map { currentWatchState.numberOfComplicationUpdatesAvailableToday })
      }
    }
    return pass(complicationInfo.wire, .backgroundOnly, failure(of: counting)) { info in
      sessionDelegate.userInfoTransfers.begin(counting) {
        session.transferCurrentComplicationUserInfo(info)
      }
    }
  }

  /// Replaces this side's context, which the counterpart sees: the latest context wins.
  ///
  /// - Parameter context: The context; at most 262,144 bytes of property list. A context with the
  ///   same content as the previous one is not delivered again.
  /// - Throws: `Communicator.Error` if the counterpart is `.notReachable`; `WCError` if the session
  ///   refuses the content or cannot store it.
  public func sync(_ context: Context) throws {
    try session.updateApplicationContext(dictionary(context.payload, .backgroundOnly))
  }

  // MARK: Sending only while useful, which the original does not offer

  /// Sends the counterpart a message like `send(_:errorHandler:)`, with a time limit for its
  /// delivery: after that the error handler gets `WCError.transferTimedOut`.
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

  /// Queues a message like `send(_:completion:)`, but only until it expires, and only the newest
  /// with its key.
  ///
  /// - Parameters:
  ///   - guaranteedMessage: The message.
  ///   - lifetime: The time for which it may be delivered; nil for no limit. After that the
  ///     completion gets `WCError.transferTimedOut`.
  ///   - key: A newer message with the same key replaces a waiting one; nil for none. The older
  ///     one's completion gets `WCError.deliveryFailed`.
  ///   - completion: As for `send(_:completion:)`.
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

  /// Queues data like `transfer(_:completion:)`, but only until it expires: after that the
  /// completion gets `WCError.transferTimedOut`.
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

  // MARK: Passing on

  private static var malformedReply: WCError {
    WCError(
      .messageReplyFailed,
      userInfo: [NSLocalizedFailureReasonErrorKey: "The counterpart's reply is not a message."])
  }

  /// Passes content on to the session, if the counterpart is reachable enough; an error goes to the
  /// handler.
  @discardableResult
  func pass<Result>(
    _ payload: SharedContent, _ minimum: Reachability, _ failed: ((any Swift.Error) -> Void)?,
    _ body: (Content) throws -> Result
  ) -> Result? {
    do {
      return try body(dictionary(payload, minimum))
    } catch {
      failed?(error)
      return nil
    }
  }

  /// Returns the part of a completion that gets errors.
  func failure<Success>(
    of completion: ((Result<Success, any Swift.Error>) -> Void)?
  ) -> (any Swift.Error) -> Void {
    { completion?(.failure($0)) }
  }

  /// - Throws: `Communicator.Error`, or `WCError` for content that no property list can hold.
  private func dictionary(_ payload: SharedContent, _ minimum: Reachability) throws -> Content {
    let actual = currentReachability
    guard actual.suffices(for: minimum) else {
      throw Error.sessionIsNotReachable(minimumReachability: minimum, actual: actual)
    }
    return try payload.checked()
  }
}
