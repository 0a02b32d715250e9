import Foundation
import Synchronization
import Testing
import WatchConnectivity
import Wormhole
import WormholePeers
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@Suite("A message of the next watch, during the change to it,", .blocking)
struct EarlyMessageTests {
  /// Activates only when the test does, and waits in the report that the session is inactive.
  private final class Delegate: NSObject, WCSessionDelegate, Sendable {
    let hasBecomeInactive = WakeLatch()
    let mayGoOn = WakeLatch()
    private let recorded = Mutex<[String]>([])

    var events: [String] { recorded.withLock { $0 } }

    private func record(_ event: String) { recorded.withLock { $0.append(event) } }

    func session(
      _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
      error: (any Error)?
    ) { record(activationState == .activated ? "activated" : "refused") }

    func sessionDidBecomeInactive(_ session: WCSession) {
      hasBecomeInactive.raise()
      mayGoOn.block(until: soon)
    }

    func sessionDidDeactivate(_ session: WCSession) { record("deactivated") }

    func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any]) {}

    func session(_ session: WCSession, didReceiveMessage message: [String: Any]) {
      record("message \(message["n"] ?? "")")
    }

    func session(
      _ session: WCSession, didReceiveMessage message: [String: Any],
      replyHandler: @escaping ([String: Any]) -> Void
    ) {
      record("question \(message["n"] ?? "")")
      replyHandler([:])
    }
  }

  @Test("fails for its sender and reaches no delegate, or the reverse")
  func change() async throws {
    let scene = try SessionScene()
    try scene.pairTwo()
    let delegate = Delegate()
    let phone = try WCSession.making(
      .phone, in: scene.container, watchName: "watch", replyTimeout: .seconds(60))
    phone.delegate = delegate
    phone.activate()
    try await eventuallyAsync("it is activated") { delegate.events == ["activated"] }
    let first = try PeerSession("watch", in: scene.container)
    let second = try PeerSession("watch2", in: scene.container)
    let ends = Mutex<[Int: Result<PropertyListValue, WormholeError>]>([:])

    try scene.pairing.activate("watch2")
    await delegate.hasBecomeInactive.suspend(until: soon)
    // Handing these over takes longer than the messages of the second watch take to arrive.
    for number in 0..<200 {
      try await first.enqueue(["n": PropertyListValue(number)], to: "phone")
    }
    for number in [1, 2] {
      second.request(
        ["n": PropertyListValue(number)], to: "phone", expectsReply: number == 2, until: soon
      ) { end in ends.withLock { $0[number] = end } }
    }
    delegate.mayGoOn.raise()
    try await eventuallyAsync("both have ended") { ends.withLock { $0.count } == 2 }
    for number in [1, 2] {
      guard case .failure(let error) = ends.withLock({ $0[number] }) else {
        Issue.record("message \(number) counts as delivered")
        continue
      }
      #expect(error.code == .unreachable)
    }
    try await eventuallyAsync("it is deactivated") { delegate.events.contains("deactivated") }
    phone.activate()
    try await eventuallyAsync("it is activated again") {
      delegate.events.filter { $0 == "activated" }.count == 2
    }
    try await second.send(["n": 3], to: "phone", until: soon)
    #expect(delegate.events == ["activated", "deactivated", "activated", "message 3"])
    await phone.endForGood()
  }
}
