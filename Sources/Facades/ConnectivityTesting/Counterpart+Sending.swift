public import Foundation
import Wormhole
public import WormholePeers
public import WormholePropertyLists

// Calls that send to the session under test. A counterpart must be present only to be asked.
extension Counterpart {
  /// Sends a message, and waits for its reply: dictionaries for `didReceiveMessage`, `.data(…)` for
  /// `didReceiveMessageData`.
  ///
  /// - Parameters:
  ///   - message: A dictionary, or data.
  ///   - deadline: When to give up; by default 10 seconds from now.
  /// - Throws: `WormholeError.Code.unreachable`, `.notHandled` if the delegate has no method for it,
  ///   `.notAnswered` if it released the reply handler, `.timedOut`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  @discardableResult
  public func sendMessage(
    _ message: PropertyListValue, until deadline: ContinuousClock.Instant? = nil
  ) throws -> PropertyListValue {
    try peer().request(message, to: other, until: deadline)
  }

  /// Sends a message, and waits for its reply; see the form without `async`.
  @discardableResult
  public func sendMessage(
    _ message: PropertyListValue, until deadline: ContinuousClock.Instant? = nil
  ) async throws -> PropertyListValue {
    try await peer().request(message, to: other, until: deadline)
  }

  /// Sends a message without a reply handler; returns when the delegate has it.
  ///
  /// - Throws: as `sendMessage`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func tell(
    _ message: PropertyListValue, until deadline: ContinuousClock.Instant? = nil
  ) throws {
    try peer().send(message, to: other, until: deadline)
  }

  /// Sends a message without a reply handler; see the form without `async`.
  public func tell(
    _ message: PropertyListValue, until deadline: ContinuousClock.Instant? = nil
  ) async throws {
    try await peer().send(message, to: other, until: deadline)
  }

  /// Stores a dictionary for the session under test, which gets it when it runs.
  ///
  /// - Returns: the transfer, which shows how it ends.
  /// - Throws: `WormholeError`, an error of the container.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  @discardableResult
  public func transferUserInfo(_ userInfo: PropertyListValue) throws -> PeerMessageTransfer {
    try peer().enqueue(userInfo, to: other, options: .init(keepsReceipt: true))
  }

  /// Stores a dictionary for the session under test; see the form without `async`.
  @discardableResult
  public func transferUserInfo(_ userInfo: PropertyListValue) async throws -> PeerMessageTransfer {
    try await peer().enqueue(userInfo, to: other, options: .init(keepsReceipt: true))
  }

  /// Sets the context for the session under test.
  ///
  /// - Throws: `WormholeError`, an error of the container.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func updateContext(_ context: PropertyListValue) throws {
    try peer().setContext(context, for: other)
  }

  /// Sets the context for the session under test; see the form without `async`.
  public func updateContext(_ context: PropertyListValue) async throws {
    try await peer().setContext(context, for: other)
  }

  /// Sends a file to the session under test, and returns at once. The counterpart must stay present
  /// until the file is copied.
  ///
  /// - Returns: the transfer, which shows its progress and how it ends.
  /// - Throws: `WormholeError.Code.fileAccess`, or an error of the container.
  @discardableResult
  public func transferFile(
    _ file: URL, metadata: PropertyListValue? = nil
  ) throws -> PeerFileTransfer {
    try peer().transfer(fileAt: file, to: other, metadata: metadata)
  }
}
