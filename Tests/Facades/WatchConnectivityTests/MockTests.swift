import Foundation
import Synchronization
import Testing
import WatchConnectivity
import WormholeTestSupport
import WormholeWatchClients

/// None of these compiled: the classes were final, and their members could not be overridden.
@Suite("Code that is tested with subclasses of WatchConnectivity's classes", .blocking)
struct MockTests {
  @Test("calls a mock that answers at once")
  func counting() {
    let session = CountingSession()
    let sender = StepsSender(session: session)
    sender.send(3)
    #expect(session.activateCalled && session.sentMessages.count == 2)
    #expect(sender.log == ["reply 3", "data 0", "file steps 7"])
  }

  @Test("reads the state that a mock has")
  func states() {
    final class Delegate: NSObject, WCSessionDelegate, Sendable {
      let heard = Heard<Int>()
      func session(
        _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
        error: (any Error)?
      ) { heard.add(activationState.rawValue) }
    }
    let delegate = Delegate()
    let session = StateSession(reachable: false)
    session.delegate = delegate
    let sender = StepsSender(session: session)
    #expect(delegate.heard.all == [2])
    sender.send(4)
    #expect(sender.log == ["queued true 4", "file x 7"])
    #expect(session.applicationContext["steps"] as? Int == 4)
    #expect(session.transfer.isCancelledByTest && !session.transfer.isTransferring)
    #expect(StateSession.isSupported())
  }

  @Test("gets received files, and the framework's answers for what a mock leaves out")
  func parts() {
    let session = ReachableSession()
    let sender = StepsSender(session: session)
    #expect(session.isReachable && session.activationState == .notActivated)
    sender.send(5)
    sender.receive(FakeFile(url: URL(filePath: "/tmp/a.png"), metadata: ["n": 5]))
    #expect(sender.log == ["not ready", "got a.png 5"])
    #expect(WCSessionFile().metadata == nil && !WCSessionFileTransfer().isTransferring)
    #expect(WCSessionUserInfoTransfer().userInfo.isEmpty)
  }

  /// A handler's isolation is a part of its type, which an overridden method does not have.
  @Test("gets the reply of a mock on the main actor where its handler was written there")
  @MainActor
  func isolated() async {
    let session = CountingSession()
    let (replies, end) = AsyncStream<Int>.makeStream()
    session.handOver(7) { reply in
      MainActor.assertIsolated()
      end.yield(reply)
    }
    for await reply in replies {
      #expect(reply == 7)
      break
    }
  }
}

extension WCSession {
  @MainActor
  fileprivate func handOver(_ steps: Int, _ done: @escaping @MainActor (Int) -> Void) {
    sendMessage(["steps": steps], replyHandler: { reply in done(reply["got"] as? Int ?? 0) })
  }
}
