internal import Foundation
internal import WatchConnectivity

// There are no forms with `async` beside these: in a task Swift would choose them for code written for
// the original, which then would not compile.
extension Communicator {
  /// Gives the counterpart a message now.
  ///
  /// - Parameters:
  ///   - immediateMessage: what to send; it counts as at most 65,536 bytes of property list.
  ///   - errorHandler: called at most once: before this returns, on the calling thread, with
  ///     `Communicator.Error` if the counterpart is not `.immediatelyReachable`, else later on the
  ///     session's queue with a `WCError`.
  @preconcurrency
  public func send(
    _ immediateMessage: ImmediateMessage, errorHandler: ImmediateMessage.ErrorHandler? = nil
  ) {
    do {
      let message = try dictionary(immediateMessage.wire, .immediatelyReachable)
      session.sendMessage(message, replyHandler: nil, errorHandler: errorHandler)
    } catch {
      errorHandler?(error)
    }
  }

  /// Gives the counterpart a message now, and its reply to the message's `reply`.
  ///
  /// Exactly one of `reply` and `errorHandler` is called, once. A reply that is no message is an error:
  /// `WCError.messageReplyFailed`.
  ///
  /// - Parameters:
  ///   - interactiveImmediateMessage: what to send; at most 65,536 bytes of property list.
  ///   - errorHandler: as with `ImmediateMessage`.
  @preconcurrency
  public func send(
    _ interactiveImmediateMessage: InteractiveImmediateMessage,
    errorHandler: ImmediateMessage.ErrorHandler? = nil
  ) {
    do {
      let message = try dictionary(interactiveImmediateMessage.wire, .immediatelyReachable)
      let reply = interactiveImmediateMessage.reply
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
    } catch {
      errorHandler?(error)
    }
  }

  /// Queues a message for the counterpart, which gets it even if both processes end before.
  ///
  /// Guaranteed messages arrive in the order in which they were sent.
  ///
  /// - Parameters:
  ///   - guaranteedMessage: what to send; at most 65,536 bytes of property list.
  ///   - completion: called once: when the counterpart has handled the message, when it was cancelled,
  ///     or when it failed, on the session's queue. If the counterpart is `.notReachable`, it is
  ///     called before this returns. It does not outlive this process: `FinishedTransfer.observe`
  ///     tells the end of what a process before this one sent.
  /// - Returns: by what to cancel it; nil if the message was not queued, as `completion` was told.
  @preconcurrency @discardableResult
  public func send(
    _ guaranteedMessage: GuaranteedMessage, completion: GuaranteedMessage.Completion? = nil
  ) -> (any Cancellable)? {
    do {
      let message = try dictionary(guaranteedMessage.wire, .backgroundOnly)
      return sessionDelegate.userInfoTransfers.begin(completion) {
        session.transferUserInfo(message)
      }
    } catch {
      completion?(.failure(error))
      return nil
    }
  }

  /// Queues data of any size for the counterpart, which gets it even if both processes end before.
  ///
  /// The content is written to a temporary file of its own before this returns, which costs what
  /// writing so many bytes costs; the file is removed at the transfer's end.
  ///
  /// - Parameters:
  ///   - blob: what to transfer.
  ///   - completion: as with `GuaranteedMessage`; also for a file that cannot be written.
  /// - Returns: by what to cancel it; nil if it was not queued, as `completion` was told.
  @preconcurrency @discardableResult
  public func transfer(
    _ blob: Blob, completion: Blob.Completion? = nil
  ) -> (any Cancellable)? {
    do {
      let metadata = try dictionary(blob.wireMetadata, .backgroundOnly)
      let file = try BlobFile.write(blob.content)
      return sessionDelegate.fileTransfers.begin(completion) {
        session.transferFile(file, metadata: metadata)
      }
    } catch {
      completion?(.failure(error))
      return nil
    }
  }

  /// The same as `transfer(_:completion:)` of a blob, as the original's README spells it.
  @preconcurrency @discardableResult
  public func transfer(
    blob: Blob, completion: Blob.Completion? = nil
  ) -> (any Cancellable)? { transfer(blob, completion: completion) }

  /// Queues complication info for the watch, which is woken to handle it while the day's budget lasts.
  ///
  /// - Parameters:
  ///   - complicationInfo: what to transfer; at most 65,536 bytes of property list.
  ///   - completion: as with `GuaranteedMessage`; a success says how many updates are left today.
  /// - Returns: by what to cancel it; nil if it was not queued, as `completion` was told.
  @preconcurrency @discardableResult
  public func transfer(
    _ complicationInfo: ComplicationInfo, completion: ComplicationInfo.Completion? = nil
  ) -> (any Cancellable)? {
    do {
      let info = try dictionary(complicationInfo.wire, .backgroundOnly)
      return sessionDelegate.userInfoTransfers.begin(completion.map(countingUpdates)) {
        session.transferCurrentComplicationUserInfo(info)
      }
    } catch {
      completion?(.failure(error))
      return nil
    }
  }

  private func countingUpdates(
    _ completion: @escaping ComplicationInfo.Completion
  ) -> Completions<WCSessionUserInfoTransfer>.Completion {
    { [self] result in
      completion(result.map { currentWatchState.numberOfComplicationUpdatesAvailableToday })
    }
  }

  /// Replaces what the counterpart is to know of this side: the latest wins.
  ///
  /// - Parameter context: what to sync; at most 262,144 bytes of property list. One with the same
  ///   content as the one before is not delivered again.
  /// - Throws: `Communicator.Error` if the counterpart is `.notReachable`; `WCError` if the session
  ///   refuses the content or cannot store it.
  public func sync(_ context: Context) throws {
    try session.updateApplicationContext(dictionary(context.payload, .backgroundOnly))
  }

  private static var malformedReply: WCError {
    WCError(
      .messageReplyFailed,
      userInfo: [NSLocalizedFailureReasonErrorKey: "The counterpart's reply is no message."])
  }

  /// - Throws: `Communicator.Error`, or `WCError` for what no property list can hold.
  private func dictionary(_ payload: Payload, _ minimum: Reachability) throws -> Content {
    let actual = currentReachability
    guard actual.suffices(for: minimum) else {
      throw Error.sessionIsNotReachable(minimumReachability: minimum, actual: actual)
    }
    return try payload.checked()
  }
}
