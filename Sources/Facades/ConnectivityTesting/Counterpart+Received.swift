public import Foundation
import Wormhole
import WormholePeers
public import WormholePropertyLists
import WormholeSystem

extension Counterpart {
  /// A delivery that a counterpart got from the session under test.
  ///
  /// ```swift
  /// let watch = scene.counterpart(.watch)
  /// try await watch.arrive()
  /// let received = try await watch.next()
  /// print(received.kind, received.value, received.expectsReply)
  /// ```
  public struct Received: Sendable, Hashable {
    /// The ways in which a session sends.
    ///
    /// ```swift
    /// let watch = scene.counterpart(.watch)
    /// print(watch.received.filter { $0.kind == .userInfo }.count)
    /// ```
    public enum Kind: String, Sendable, Hashable {
      /// `sendMessage`
      case message
      /// `sendMessageData`
      case messageData
      /// `transferUserInfo`, including for the complication
      case userInfo
      /// `transferFile`
      case file
      /// `updateApplicationContext`
      case context
    }

    /// How it was sent.
    public let kind: Kind
    /// The dictionary; the data; or a file's metadata, an empty dictionary if there is none.
    public let value: PropertyListValue
    /// Whether the sender of a message waits for a reply.
    public let expectsReply: Bool
    /// A file's name at its sender.
    public let fileName: String?
    /// A file's content.
    public let fileContent: Data?

    init(
      _ kind: Kind, _ value: PropertyListValue, expectsReply: Bool = false,
      file: (name: String, content: Data)? = nil
    ) {
      self.kind = kind
      self.value = value
      self.expectsReply = expectsReply
      fileName = file?.name
      fileContent = file?.content
    }

    init(_ request: PeerRequest) {
      var isData = false
      if case .data = request.value { isData = true }
      self.init(
        isData ? .messageData : .message, request.value, expectsReply: request.expectsReply)
    }
  }

  /// All deliveries to the counterpart, in order.
  public var received: [Received] { arrivals.all }

  /// Takes the next delivery, and waits for it if there is none; `received` keeps it.
  ///
  /// - Parameter deadline: when to give up; by default 10 seconds from now.
  /// - Throws: `WormholeError.Code.timedOut`, with the earlier deliveries.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func next(until deadline: ContinuousClock.Instant? = nil) throws -> Received {
    try nextArrival(until: deadline).run()
  }

  /// Takes the next delivery; see the form without `async`.
  public func next(until deadline: ContinuousClock.Instant? = nil) async throws -> Received {
    try await runSuspending { self.nextArrival(until: deadline) }
  }

  private func nextArrival(
    until deadline: ContinuousClock.Instant?
  ) -> sending any Waiting<Received> {
    let (deadline, latch) = (deadline ?? .now + TestScene.patience, WakeLatch())
    return StepwiseWait { [name, arrivals] in
      if let next = arrivals.take(orRaise: latch) { return .done(next) }
      guard ContinuousClock.now < deadline else {
        let before = arrivals.all.map { "\($0.kind) \($0.value)" }
        throw WormholeError(
          .timedOut, "wait for what \"\(name)\" gets",
          reason: before.isEmpty
            ? "the deadline passed, and it got nothing"
            : "the deadline passed; it got before: " + before.joined(separator: ", "))
      }
      return .wait(for: latch, until: deadline)
    }
  }
}
