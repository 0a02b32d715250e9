import Foundation
import WatchConnectivity

/// A model of the main actor in Swift 5 mode, whose handlers the compiler accepts without a
/// diagnostic.
@MainActor
public final class SwiftFiveModel {
  private var heard: [String] = []
  private let delegate = SwiftFiveModelDelegate()

  public init() {}

  /// Begins the session, which is configured already.
  public func start() {
    WCSession.default.delegate = delegate
    WCSession.default.activate()
  }

  /// Sends a number of questions, and then data that is refused.
  public func ask(_ count: Int) {
    for number in 1...count {
      WCSession.default.sendMessage(["n": number]) { reply in
        self.hear("\(reply["n"] ?? "none")")
      } errorHandler: { error in
        self.hear("\(error)")
      }
    }
    WCSession.default.sendMessageData(Data([1])) { _ in self.hear("byte") }
    WCSession.default.sendMessage(["bad": Data(count: 70_000)], replyHandler: nil) { _ in
      self.hear("refused")
    }
    WCSession.default.sendMessageData(
      Data(count: 70_000), replyHandler: nil, errorHandler: hearRefusal)
  }

  private func hearRefusal(_ error: any Error) { hear("refused data") }

  // Without a hop this traps, because the compiler relies on the isolation without a diagnostic.
  private func hear(_ text: String) {
    MainActor.assertIsolated()
    heard.append(text)
  }

  /// The received answers, in order.
  public var all: [String] { heard }

  /// The number of the delegate's messages.
  public var received: Int { delegate.count }
}

private final class SwiftFiveModelDelegate: NSObject, WCSessionDelegate {
  private let lock = NSLock()
  private var messages = 0

  func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: (any Error)?
  ) {}

  func session(_ session: WCSession, didReceiveMessage message: [String: Any]) {
    lock.withLock { messages += 1 }
  }

  var count: Int { lock.withLock { messages } }
}
