import ConnectivityTesting
import Foundation
import Testing
import WatchConnectivity
import Wormhole
import WormholeSystem
import WormholeTestSupport

@Suite("The other side as a process", .blocking)
struct SideProcessTests {
  private func shell(_ script: String, _ environment: [String: String] = [:]) throws -> SideProcess
  {
    try SideProcess("/bin/sh", ["-c", script], environment: environment)
  }

  @Test("receives lines, and its lines are waited for")
  func lines() async throws {
    let process = try shell("echo ready; while read line; do echo \"got $line\"; done; exit 3")
    #expect(try await process.line() == "ready")
    try process.tell("one")
    try process.tell("two")
    #expect(try await process.line(containing: "two") == "got two")
    #expect(process.output == ["ready", "got one", "got two"])
    process.kill()
    #expect(try await process.waitForEnd() == .killed(signal: 9))
    let other = try shell("echo last; exit 3")
    #expect(try await other.waitForEnd() == .exited(status: 3))
    #expect(other.output == ["last"])
  }

  @Test("is reported with its output so far when it does not do what is waited for")
  func failures() throws {
    let silent = try shell("echo begun; exec sleep 100")
    let late = #expect(throws: WormholeError.self) {
      try silent.line(containing: "done", until: .now + .milliseconds(300))
    }
    #expect(late?.code == .timedOut && late?.description.contains("begun") == true)
    #expect(throws: WormholeError.self) { try silent.waitForEnd(until: .now) }
    let ended = try shell("echo oops >&2")
    let early = #expect(throws: WormholeError.self) { try ended.line(containing: "done") }
    #expect(early?.code == .ended && early?.description.contains("oops") == true)
    let missing = #expect(throws: WormholeError.self) { try SideProcess("/nowhere/program") }
    #expect(missing?.code == .process)
    _ = try ended.waitForEnd()
    #expect(throws: WormholeError.self) { try ended.stop() }
    #expect(throws: WormholeError.self) { try ended.resume() }
  }

  @Test("is stopped, continued and killed")
  func life() async throws {
    let process = try shell("while read line; do echo \"got $line\"; done")
    try process.tell("a")
    #expect(try await process.line() == "got a")
    try await process.stop()
    try process.tell("b")
    await #expect(throws: WormholeError.self) {
      try await process.line(until: .now + .milliseconds(100))
    }
    try process.resume()
    #expect(try await process.line() == "got b")
    let id = process.processID
    process.kill()
    process.kill()
    #expect(ProcessStatus.of(id) == nil)
  }

  @Test("is killed when it is released")
  func released() throws {
    let id = try shell("exec sleep 1000").processID
    try eventually("it is gone") { ProcessStatus.of(id)?.isDead ?? true }
  }

  @Test("gets its place from the scene, and nothing of its user's")
  func environment() throws {
    let scene = try TestScene()
    let process = try scene.start(
      "/bin/sh", ["-c", "env | grep -E 'WORMHOLE|WATCHCONN' | sort"], as: .watch,
      watchName: "left", environment: ["WORMHOLE_EXTRA": "1"])
    _ = try process.waitForEnd()
    #expect(
      process.output == [
        "WATCHCONNECTIVITY_ROLE=watch", "WATCHCONNECTIVITY_WATCH=left",
        "WORMHOLE_CONTAINER=\(scene.directory.path)", "WORMHOLE_EXTRA=1",
      ])
    try scene.end()
  }

  @Test("talks to a session of the test, is stopped and killed, and the session sees it")
  func session() async throws {
    let scene = try TestScene()
    let phone = try scene.session(.phone)
    let delegate = RecordingDelegate()
    phone.delegate = delegate
    phone.activate()
    try await phone.waitUntil(.activated)
    let watch = try scene.start(
      SideProcess.built("WormholeParticipant"), [scene.directory.path], as: .watch)
    try watch.tell("session-start watch watch full 20")
    #expect(try await watch.line() == "activated")
    try await phone.waitUntil(\.isReachable)
    #expect(await phone.ask() == .reply("\(watch.processID)"))
    try await watch.stop()
    try eventually("it is seen to be stopped") { !phone.isReachable }
    try watch.resume()
    try await phone.waitUntil(\.isReachable)
    watch.kill()
    try eventually("it is seen to be dead") { !phone.isReachable }
    try await scene.end()
  }
}
