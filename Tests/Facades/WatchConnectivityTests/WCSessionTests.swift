import Foundation
import Synchronization
import Testing
import WatchConnectivity
import Wormhole
import WormholePeers
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@Suite("WCSession", .blocking, .bothEngines)
struct WCSessionTests {
  private final class Delegate: NSObject, WCSessionDelegate, Sendable {
    let result = Mutex<(WCSessionActivationState, (any Error)?)?>(nil)

    func session(
      _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
      error: (any Error)?
    ) { result.withLock { $0 = (activationState, error) } }
  }

  @Test(
    "is unsupported without a configuration; its delegate learns what to set",
    .onlyDirectories("it needs no container"))
  func unsupported() throws {
    #expect(!WCSession.isSupported())
    let delegate = Delegate()
    WCSession.default.delegate = delegate
    WCSession.default.activate()
    try eventually("the delegate is reported") { delegate.result.withLock { $0 != nil } }
    let error = delegate.result.withLock { $0?.1 } as? WCError
    #expect(error?.code == .sessionNotSupported)
    #expect(error?.failureReason?.contains("WATCHCONNECTIVITY_ROLE") == true)
    #expect(WCSession.default.activationState == .notActivated)
    #expect(!WCSession.default.isReachable && !WCSession.default.isPaired)
    #expect(throws: WCError.self) { try WCSession.default.updateApplicationContext([:]) }
    let transfer = WCSession.default.transferUserInfo(["a": 1])
    #expect(!transfer.isTransferring && transfer.userInfo["a"] as? Int == 1)
    #expect("\(transfer)" == "WCSessionUserInfoTransfer([\"a\": 1], ended)")
    let file = WCSession.default.transferFile(
      URL(filePath: "/nowhere/poster.jpg"), metadata: ["film": "Vertigo"])
    #expect("\(file)" == "WCSessionFileTransfer(poster.jpg, [\"film\": Vertigo], 0 %, ended)")
  }

  @Test("activates on both sides, by configuration, and reports it again on a second activation")
  func activates() throws {
    let scene = try SessionScene()
    let (phone, watch) = (try scene.phone(), try scene.watch())
    #expect(try phone.session("activate") == "done")
    #expect(try phone.await("activated") == "activated")
    #expect(
      try phone.session("state") == "activated paired installed complication companion reachable 50"
    )
    #expect(try watch.session("state") == phone.session("state"))
  }

  /// A second configuration used to end the process.
  @Test("keeps its place when it is configured again, and reports that")
  func configuredTwice() throws {
    let scene = try SessionScene()
    let phone = try scene.phone()
    #expect(try phone.ask("events begin") == "done")
    #expect(try phone.ask("session-start watch other full") == "activated")
    #expect(try phone.ask("events failure").hasPrefix("1 error"))
    #expect(try phone.session("state").hasPrefix("activated paired"))
  }

  /// On Linux both sides ask the phone's property, because `os(watchOS)` is false. On a watch it was false, so
  /// the watch sent nothing, without a word.
  @Test(
    "lets an app's usual question before a transfer pass on both sides, and says no without an app")
  func canSendToPeer() throws {
    let scene = try SessionScene()
    let (phone, watch) = (try scene.phone(), try scene.watch())
    for side in [phone, watch] { #expect(try side.session("can-send") == "true") }
    try scene.pairing.pair(.init(name: "watch", isAppInstalled: false))
    try Pairing(of: "watch", in: scene.container).pair(.init(name: "phone", isAppInstalled: false))
    for side in [phone, watch] {
      try eventually("the app is gone") { try side.session("can-send") == "false" }
    }
  }

  @Test("takes its container and role from the environment, and refuses an unclear one")
  func environment() throws {
    let scene = try SessionScene()
    let place = try "WORMHOLE_CONTAINER=\(scene.directory.location)"
    func answer(_ variables: String...) throws -> String {
      try Participant(scene.directory.path, environment: variables).session("environment")
    }
    #expect(try answer("WATCHCONNECTIVITY_ROLE=phone", place, "WORMHOLE_GROUP=") == "activated")
    #expect(
      try answer("WATCHCONNECTIVITY_ROLE=clock", place, "WORMHOLE_GROUP=") == "activated 7002")
    #expect(
      try answer("WATCHCONNECTIVITY_ROLE=watch", place, "WORMHOLE_GROUP=a") == "activated 7002")
    #expect(
      try answer("WATCHCONNECTIVITY_ROLE=watch", "WORMHOLE_CONTAINER=", "WORMHOLE_GROUP=")
        == "activated 7002")
    #expect(
      try answer(
        "WATCHCONNECTIVITY_ROLE=watch", "WORMHOLE_CONTAINER=/nowhere", "WORMHOLE_GROUP=")
        == "activated 7002")
  }

  // Only a delegate used to get the error, and most programs never get so far as to have one.
  @Test(
    "reports on standard error, once, a fault in its environment",
    .onlyDirectories("it needs no container"))
  func printed() throws {
    let scene = try SessionScene()
    func printed(_ variables: String...) throws -> String {
      let program = try LineProcess(
        "sh", ["-c", "'\(try BuiltProgram.path("participant"))' session-serve 2>&1; echo over"],
        environment: Program.environment(with: variables))
      var lines: [String] = []
      while lines.last != "over" { lines.append(try program.line(until: soon)) }
      return lines.dropLast().joined(separator: "\n")
    }
    let place = try "WORMHOLE_CONTAINER=\(scene.directory.location)"
    let tablet = try printed("WATCHCONNECTIVITY_ROLE=tablet", place, "WORMHOLE_GROUP=")
    #expect(tablet.hasPrefix("wormhole: ") && tablet.contains("tablet"), "\(tablet)")
    #expect(!tablet.contains("\n"), "\(tablet)")
    let nowhere = try printed(
      "WATCHCONNECTIVITY_ROLE=phone", "WORMHOLE_CONTAINER=", "WORMHOLE_GROUP=")
    #expect(nowhere.contains("Set WORMHOLE_GROUP") && !nowhere.contains("\n"), "\(nowhere)")
    #expect(try printed(place, "WORMHOLE_GROUP=").contains("WATCHCONNECTIVITY_ROLE"))
  }

  @Test(
    "reports on standard error, once, that its role was forgotten, in a program without a handler",
    .onlyDirectories("it needs no container"))
  func forgotten() throws {
    let program = try LineProcess(BuiltProgram.path("participant"), ["session-alone"])
    let line = try program.line(until: soon)
    #expect(line.hasPrefix("WatchConnectivity: ") && line.contains("WATCHCONNECTIVITY_ROLE"))
    for _ in 0..<2 { #expect(try program.line(until: soon) == "no session") }
  }

  @Test("makes all calls on one queue that is not the main one, never two at once")
  func queue() throws {
    let scene = try SessionScene()
    let (phone, watch) = (try scene.phone(), try scene.watch())
    #expect(try watch.session("info 1 10") == "done")
    for number in 1...10 { #expect(try phone.session("begin n=\(number)") == "done") }
    for number in 11...20 { try watch.tell("session-begin n=\(number)") }
    for _ in 11...20 { #expect(try watch.answer() == "done") }
    for number in 11...20 { #expect(try watch.await("reply by").hasSuffix("n=\(number)")) }
    for number in 1...10 { #expect(try phone.await("reply by").hasSuffix("n=\(number)")) }
    #expect(try watch.await("finished n=10") == "finished n=10 -")
    #expect(try !phone.story().contains("wrong"))
    #expect(try !watch.story().contains("wrong"))
  }

  @Test("exchanges messages with any peer, for example a shell's, that uses its format")
  func shell() throws {
    let scene = try SessionScene()
    let phone = try scene.phone()
    let desk = try PeerSession("desk", in: scene.container)
    #expect(try desk.request(["a": 1], to: "phone")["a"] == 1)
    #expect(try desk.request(.data(Data("ab".utf8)), to: "phone") == .data(Data("ba".utf8)))
    try desk.send(["b": 2], to: "phone")
    #expect(try phone.await("message") == "message b=2")
    #expect {
      try desk.request("text", to: "phone")
    } throws: {
      ($0 as? WormholeError)?.code == .notHandled
    }
    let text = try desk.enqueue("text", to: "phone", options: .init(keepsReceipt: true))
    try desk.enqueue(["c": 3], to: "phone")
    #expect(try phone.await("info") == "info c=3")
    #expect(
      try text.finalStatus(until: soon)
        == .failed(reason: "a session takes dictionaries only"))
  }

  @Test("is held by one process at a time; the other gets the holder")
  func taken() throws {
    let scene = try SessionScene()
    let phone = try scene.phone()
    try phone.send(.stop)
    try phone.waitUntilStopped()
    // A stopped process is replaced.
    let other = try scene.phone()
    try phone.send(.continue)
    #expect(try phone.await("activated 7004") == "activated 7004")
    let watch = try scene.watch()
    #expect(try watch.session("ask a=1") == "reply a=1 by=\(other.processID)")
    // A running one is not: the third is refused, and may try again.
    let third = try Participant(scene.directory.path)
    #expect(try third.ask("session-start phone watch full") == "activated 7004")
    try other.end()
    #expect(try third.session("activate") == "done")
    #expect(try third.await("activated") == "activated")
  }

  // The side was shown as reachable for ten seconds meanwhile.
  @Test("waits as long for a process that has only a part of its side, which it names")
  func partlyTaken() async throws {
    let scene = try SessionScene()
    let receiver = try await PeerSession("phone", in: scene.container).receiveFiles()
    let session = try WCSession.making(
      .phone, in: scene.container, watchName: "watch", replyTimeout: .seconds(60))
    let delegate = Delegate()
    session.delegate = delegate
    let start = ContinuousClock.now
    session.activate()
    try await eventuallyAsync("it is refused") { delegate.result.withLock { $0 } != nil }
    #expect(ContinuousClock.now - start < .seconds(8))
    let error = delegate.result.withLock { $0?.1 as? WCError }
    #expect(error?.code == .sessionNotActivated)
    let reason = error?.userInfo[NSLocalizedFailureReasonErrorKey] as? String
    #expect(reason?.contains("\(Program.processID)") == true, "\(reason ?? "none")")
    receiver.close()
    await session.endForGood()
  }

  @Test(
    "carries the tutorial's cinema: three kinds of delivery, replies, data, files with metadata")
  func cinema() throws {
    let scene = try SessionScene()
    let (phone, watch) = (
      try Participant(scene.directory.path), try Participant(scene.directory.path)
    )
    #expect(try watch.session("cinema watch \(scene.directory.path)") == "done")
    #expect(try watch.session("buy failable 1") == "done")
    try eventually("the phone is away") { try watch.session("bought") == "[] [\"away\"]" }
    #expect(try watch.session("buy guaranteed 1") == "done")
    #expect(try watch.session("buy highPriority 1 2") == "done")
    #expect(try phone.session("cinema phone \(scene.directory.path)") == "done")
    try eventually("the codes are there") {
      try ["1", "2"].allSatisfy { id in
        _ = try (phone.session("bought"), watch.session("bought"))
        return Files.exists(scene.directory.path + "/\(id).png")
      }
    }
    #expect(try watch.session("buy failable 1 2 3") == "done")
    try eventually("it is verified") {
      try watch.session("bought").contains("verified true")
    }
    try eventually("the third code is there") {
      Files.exists(scene.directory.path + "/3.png")
    }
    #expect(try Files.read(scene.directory.path + "/3.png") == "code of 3")
    #expect(try phone.session("bought") == "[1, 2, 3] []")
  }
}
