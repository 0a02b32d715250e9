import AppGroup
import PropertyLists
import TestSupport
import Testing

@testable import PeerConnectivity

@Suite("A guaranteed message to a peer that registered how it is started")
struct MessageWakingTests {
  let scene: MessageScene

  init() throws { scene = try MessageScene() }

  private func register(_ program: String, for occasions: PeerLaunch.Occasions) throws {
    try PeerSession.setLaunch(
      PeerLaunch(
        program: program, arguments: [scene.directory.path, "launched", "watch", "receiving"],
        occasions: occasions),
      of: "watch", in: scene.container)
  }

  private func started() throws -> Int {
    try scene.container.value("launched").read()?.intValue ?? 0
  }

  @Test("starts it once, however many are sent, and it gets them all")
  func waking() async throws {
    try register(BuiltProgram.path("participant"), for: .queuedWork)
    for number in 0..<5 {
      let sent = try await scene.phone.enqueue(PropertyListValue(number), to: "watch")
      #expect(sent.launchFailure == nil, "\(sent.launchFailure.map { "\($0)" } ?? "")")
    }
    let log = scene.log("launched")
    try eventually("all are handled") { try scene.lines(log) == (0..<5).map { "phone \($0)" } }
    #expect(try started() == 1)
    try await scene.container.value("end").replace(with: 1)
  }

  @Test("starts it for what is urgent only, if that is what it wants, and not while it receives")
  func occasions() throws {
    try register(BuiltProgram.path("participant"), for: .urgentWork)
    try scene.phone.enqueue(0, to: "watch")
    let receiver = try scene.watch.receiveMessages()
    try scene.phone.enqueue(1, to: "watch", options: .init(isUrgent: true))
    #expect(try scene.drain(receiver) == ["phone 0", "phone 1"])
    receiver.end()
    #expect(try started() == 0)
    let urgent = try scene.phone.enqueue(2, to: "watch", options: .init(isUrgent: true))
    #expect(try urgent.end(until: .now + .seconds(30)) == .processed)
    #expect(try started() == 1)
    try scene.container.value("end").replace(with: 1)
  }

  @Test("is sent all the same when the peer cannot be started, and tells why")
  func failing() async throws {
    try register("/nonexistent/program", for: .queuedWork)
    let first = try scene.phone.enqueueBlocking(0)
    let second = try await scene.phone.enqueue(1, to: "watch")
    for sent in [first, second] {
      #expect(sent.launchFailure?.code == .notLaunched)
      #expect(sent.launchFailure?.reason.contains("/nonexistent/program") == true)
      #expect(try sent.status() == .stored)
    }
    #expect(try scene.drain() == ["phone 0", "phone 1"])
  }
}

extension PeerSession {
  // The form without `async`, in a test that is.
  fileprivate func enqueueBlocking(_ value: PropertyListValue) throws -> PeerTransfer {
    try enqueue(value, to: "watch")
  }
}
