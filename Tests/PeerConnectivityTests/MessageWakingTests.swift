import AppGroup
import PropertyLists
import SystemCalls
import TestScopes
import TestSupport
import Testing

@testable import PeerConnectivity

@Suite("A guaranteed message to a peer that registered how it is started", .blocking)
struct MessageWakingTests {
  let scene: LaunchScene
  let phone: PeerSession

  init() throws {
    scene = try LaunchScene()
    phone = try PeerSession(scene.container, name: "phone")
  }

  @Test("starts it once, however many are sent, and it gets them all")
  func waking() async throws {
    try scene.register("receiving", for: .queuedWork)
    var sent: [PeerTransfer] = []
    for number in 0..<5 {
      let transfer = try await phone.enqueue(PropertyListValue(number), to: "p")
      #expect(transfer.launchFailure == nil, "\(transfer.launchFailure.map { "\($0)" } ?? "")")
      sent.append(transfer)
    }
    for transfer in sent {
      #expect(try await transfer.end(until: .now + .seconds(30)) == .processed)
    }
    #expect(try scene.started() == 1)
  }

  @Test("starts it for what is urgent only, if that is what it wants, and not while it receives")
  func occasions() throws {
    try scene.register("receiving", for: .urgentWork, budget: 5)
    try phone.enqueue(0, to: "p")
    let receiver = try PeerSession(scene.container, name: "p").receiveMessages()
    try phone.enqueue(1, to: "p", options: .init(isUrgent: true))
    for number in 0..<2 {
      let message = try #require(try receiver.next(until: .now))
      #expect(message.value == PropertyListValue(number))
      try message.acknowledge()
    }
    receiver.end()
    #expect(try PeerSession.remainingLaunches(of: "p", in: scene.container) == 5)
    let urgent = try phone.enqueue(2, to: "p", options: .init(isUrgent: true))
    #expect(try urgent.end(until: .now + .seconds(30)) == .processed)
    #expect(try PeerSession.remainingLaunches(of: "p", in: scene.container) == 4)
  }

  @Test("is sent all the same when the peer cannot be started, and tells why")
  func failing() async throws {
    try scene.register(program: "/nonexistent/program", for: .queuedWork)
    let first = try enqueueBlocking()
    let second = try await phone.enqueue(1, to: "p")
    for sent in [first, second] {
      #expect(sent.launchFailure?.code == .notLaunched)
      #expect(sent.launchFailure?.reason.contains("/nonexistent/program") == true)
      #expect(try sent.status() == .stored)
    }
  }

  // The form without `async`, for a test that is.
  private func enqueueBlocking() throws -> PeerTransfer { try phone.enqueue(0, to: "p") }
}
