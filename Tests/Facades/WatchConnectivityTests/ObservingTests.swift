import Testing
import WormholePeers
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

/// Code that observes the session by key path, in two processes; see the target `WatchClients`.
@Suite("An observed session", .blocking, .bothEngines)
struct ObservingTests {
  private func observed(_ role: String, in scene: SessionScene) throws -> Participant {
    let participant = try Participant(scene.directory.path)
    #expect(try participant.session("observed \(role) watch") == "activated")
    return participant
  }

  @Test("reports the steps to another watch, and its loss to another process, before its delegate")
  func activation() throws {
    let scene = try SessionScene()
    try scene.pairTwo()
    let phone = try observed("phone", in: scene)
    func story() throws -> [Substring] {
      try phone.session("events").split(separator: "; ").filter {
        $0.hasPrefix("state") || $0.hasSuffix("active")
      }
    }
    #expect(try story() == ["state 2"])
    #expect(try scene.pairing.activate("watch2"))
    #expect(try phone.await("deactivated") == "deactivated")
    #expect(try story() == ["state 2", "state 1", "inactive", "state 0"])
    #expect(try phone.session("activate") == "done")
    #expect(try phone.await("activated") == "activated")
    #expect(try story().last == "state 2")

    try phone.send(.stop)
    try phone.waitUntilStopped()
    let other = try scene.phone()
    try phone.send(.continue)
    #expect(try phone.await("activated") == "activated 7004")
    #expect(try story().last == "state 0")
    withExtendedLifetime(other) {}
  }

  @Test("reports its counterpart's coming and going, before its delegate")
  func reachability() throws {
    let scene = try SessionScene()
    let phone = try observed("phone", in: scene)
    #expect(try phone.await("paired") == "paired true")
    func story() throws -> [Substring] {
      try phone.session("events").split(separator: "; ").filter { $0.hasPrefix("reachable") }
    }
    let watch = try scene.watch()
    #expect(try phone.await("reachability") == "reachability true")
    #expect(try story() == ["reachable false true"])
    try watch.end()
    #expect(try phone.await("reachability") == "reachability false")
    #expect(try story() == ["reachable false true", "reachable true false"])
    #expect(try !phone.session("events").contains("wrong"))
  }

  @Test("reports a changed pairing to both sides, with the option prior twice")
  func pairing() throws {
    let scene = try SessionScene()
    try scene.pairing.pair(.init(name: "watch"))
    let (phone, watch) = (try observed("phone", in: scene), try observed("watch", in: scene))
    try scene.pairing.pair(.init(name: "watch", isAppInstalled: false))
    #expect(try phone.await("installed") == "installed false true")
    #expect(try watch.await("paired") == "paired true")
    try Pairing(of: "watch", in: scene.container)
      .pair(.init(name: "phone", isAppInstalled: false))
    #expect(try watch.await("companion f") == "companion false true")
    #expect(try watch.await("companion f") == "companion false false")
    #expect(try scene.pairing.unpair("watch"))
    #expect(try watch.await("paired") == "paired false")
    #expect(try phone.await("paired false") == "paired false")
  }

  @Test("reports that content is pending, and that none is")
  func content() throws {
    let scene = try SessionScene()
    let watch = try scene.watch()
    #expect(try watch.session("info 1 3") == "done")
    let phone = try observed("phone", in: scene)
    #expect(try phone.await("pending") == "pending false true")
    #expect(try phone.await("info n=3") == "info n=3")
    try eventually("nothing is pending") {
      try phone.session("events").split(separator: "; ").last { $0.hasPrefix("pending") }
        == "pending true false"
    }
    #expect(try !phone.session("state").contains("pending"))
    #expect(try !phone.session("events").contains("wrong"))
  }

  @Test("reports nothing more when the observations have ended")
  func ended() throws {
    let scene = try SessionScene()
    let phone = try observed("phone", in: scene)
    #expect(try phone.session("unobserve") == "done")
    let watch = try scene.watch()
    #expect(try phone.await("reachability") == "reachability true")
    #expect(try watch.session("info 1 1") == "done")
    #expect(try phone.await("info") == "info n=1")
    #expect(try !phone.session("events").contains("reachable"))
    #expect(try !phone.session("events").contains("pending"))
  }

  @Test("has transfers whose progress is observed, and never falls")
  func progress() throws {
    let scene = try SessionScene()
    let (phone, watch) = (try observed("phone", in: scene), try scene.watch())
    let path = try scene.file("film.bin", longText(3_000_000))
    #expect(try phone.session("upload \(path)") == "done")
    #expect(try phone.await("whole") == "whole")
    #expect(try phone.await("sent") == "sent film.bin -")
    #expect(try !phone.session("events").contains("back to"))
    withExtendedLifetime(watch) {}
  }

  @Test(
    "says on standard error that a property, or another progress, reports no changes",
    .onlyDirectories("it needs no container"))
  func others() throws {
    let directory = try TemporaryDirectory()
    let program = try LineProcess(
      "sh", ["-c", "'\(try BuiltProgram.path("participant"))' '\(directory.path)' 2>&1"],
      environment: Program.environment(with: []))
    try program.tell("session-observe-others")
    let deadline = ContinuousClock.now + .seconds(20)
    let lines = try (1...3).map { _ in try program.line(until: deadline) }
    #expect(
      lines[0]
        == "wormhole: cannot observe this Dictionary<String, Any> of a WCSession: "
        + "changes of this property are not reported")
    #expect(lines[1].hasPrefix("wormhole: cannot observe this Bool of a Progress: on Linux"))
    #expect(lines[2] == "done")
  }

  @Test("is observed by a model of the main actor, in Swift 6 mode")
  func six() throws {
    let scene = try SessionScene()
    let watch = try scene.watch()
    #expect(try watch.session("info 1 1") == "done")
    let phone = try Participant(scene.directory.path)
    let path = try scene.file("a.txt", "text")
    let heard = try phone.session("observed-six phone \(path) pending false")
      .split(separator: "; ")
    #expect(heard.contains("finished") && heard.contains("pending true"), "\(heard)")
    #expect(heard.contains("reachable false true"), "\(heard)")
    withExtendedLifetime(watch) {}
  }
}

/// A delegate that passes on what it gets to another one, as optional methods; see `SensorTap`.
@Suite("A delegate before the delegate", .blocking, .bothEngines)
struct PassingDelegateTests {
  @Test("keeps its own messages and passes on all else, and the replies back")
  func passesOn() throws {
    let scene = try SessionScene()
    let (phone, watch) = (try scene.phone(), try scene.watch())
    #expect(try phone.session("tap") == "done")
    #expect(try watch.session("ask sample=1") == "reply status=ok")
    #expect(try phone.await("sample") == "sample 1")
    #expect(try watch.session("ask a=1") == "reply a=1 by=\(phone.processID)")
    #expect(try watch.session("data abc") == "reply cba")
    #expect(try phone.await("passed on") == "passed on")
    #expect(try watch.session("tell b=1") == "done")
    #expect(try watch.session("info 1 1") == "done")
    #expect(try watch.session("context c=1") == "done")
    #expect(try phone.await("message") == "message b=1")
    #expect(try phone.await("info") == "info n=1")
    #expect(try phone.await("context") == "context c=1")
    #expect(try watch.await("finished") == "finished n=1 -")
    #expect(try phone.session("info 2 1") == "done")
    #expect(try phone.await("finished") == "finished n=2 -")
    #expect(try phone.session("untap") == "done")
    #expect(try watch.session("ask sample=2") == "reply by=\(phone.processID) sample=2")
  }

  @Test("learns that the other has no method for it, and the sender that it was taken")
  func nobody() throws {
    let scene = try SessionScene()
    let (phone, watch) = (try scene.phone("bare"), try scene.watch())
    #expect(try watch.session("tell a=1") == "done")
    #expect(try watch.await("failed") == "failed 7014")
    #expect(try phone.session("tap") == "done")
    #expect(try watch.session("tell a=2") == "done")
    #expect(try phone.await("nobody") == "nobody takes it")
    #expect(try watch.session("info 1 1") == "done")
    #expect(try watch.await("finished") == "finished n=1 -")
    // As on Apple's systems: nobody replies, because the handler was not passed to anybody.
    #expect(try watch.session("ask a=3") == "failed 7012")
    #expect(try !watch.story().contains("failed"))
  }
}
