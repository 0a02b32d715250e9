import FoundationEssentials
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import WormholePeers

@Suite("A guaranteed message to a peer with a registered program", .blocking)
struct MessageWakingTests {
  let scene: LaunchScene
  let phone: PeerSession

  init() throws {
    scene = try LaunchScene()
    phone = try PeerSession("phone", in: scene.container)
  }

  @Test("starts it once, however many are sent, and it gets them all")
  func waking() async throws {
    try scene.register("receiving", for: .queuedWork)
    var sent: [PeerMessageTransfer] = []
    for number in 0..<5 {
      let transfer = try await phone.enqueue(PropertyListValue(number), to: "p")
      #expect(transfer.launchFailure == nil, "\(transfer.launchFailure.map { "\($0)" } ?? "")")
      sent.append(transfer)
    }
    for transfer in sent {
      #expect(try await transfer.finalStatus(until: soon) == .processed)
    }
    #expect(try scene.started() == 1)
  }

  @Test("starts it only for urgent ones if so registered, and not while it receives")
  func occasions() throws {
    try scene.register("receiving", for: .urgentWork, budget: 5)
    try phone.enqueue(0, to: "p")
    let receiver = try PeerSession("p", in: scene.container).receiveMessages()
    try phone.enqueue(1, to: "p", options: .init(isUrgent: true))
    for number in 0..<2 {
      let message = try #require(try receiver.next(until: .now))
      #expect(message.value == PropertyListValue(number))
      try message.acknowledge()
    }
    receiver.close()
    #expect(try PeerLaunch.Registry(in: scene.container).remainingLaunches(of: "p") == 5)
    let urgent = try phone.enqueue(2, to: "p", options: .init(isUrgent: true))
    #expect(try urgent.finalStatus(until: soon) == .processed)
    #expect(try PeerLaunch.Registry(in: scene.container).remainingLaunches(of: "p") == 4)
  }

  @Test("and a file start it only while it does not receive: a file once started it all the same")
  func waitingFile() throws {
    try scene.register("receiving", for: .queuedWork, budget: 5)
    let receiver = try PeerSession("p", in: scene.container).receiveFiles()
    let path = scene.directory.path + "/film"
    try FileDescriptor.open(path, [.writeOnly, .create]).writeAll([1, 2, 3])
    let sent = try phone.transfer(fileAt: URL(filePath: path), to: "p")
    try sent.waitUntilStored(until: soon)
    #expect(try PeerLaunch.Registry(in: scene.container).remainingLaunches(of: "p") == 5)
    let file = try #require(try receiver.next(until: .now))
    try file.acknowledge()
  }

  @Test("is sent all the same if the peer cannot be started, and reports why")
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

  // The form without `async`, for a test that is asynchronous.
  private func enqueueBlocking() throws -> PeerMessageTransfer { try phone.enqueue(0, to: "p") }
}
