import Foundation
import Testing
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import Wormhole

@Suite("The other consumers of a queue", .blocking)
struct OtherConsumersTests {
  /// ```
  /// worker   starts a command, is stopped alone
  /// other    watches it, looks at it
  /// ```
  // Its command was killed, and its entry went to another one.
  @Test("keep what they have while only they are stopped, and not the command that they run")
  func running() throws {
    let scene = try QueueScene()
    let worker = try scene.participant()
    try scene.queue.sender("a").enqueue(0)
    #expect(try worker.ask("queue-join q") == "done")
    let all = try scene.names("taken").filter(OtherConsumers.isWorker)
    let own = try #require(all.first)
    let member = try #require(try OtherConsumers.owner(of: own, in: scene.queue))
    let files = FileManager.default.enumerator(atPath: scene.directory.path)
    let name = PresenceDirectory.memberName(member.id)
    let file = try #require(files?.first { ($0 as? String)?.hasSuffix(name) == true } as? String)
    let registration = try FileDescriptor.open(scene.directory.path + "/" + file, .readOnly)
    let command = try ChildProcess("sleep", ["600"], inheriting: registration.rawValue)
    defer {
      do {
        try command.send(.kill)
        _ = try command.wait(until: soon)
      } catch {
        Issue.record("\(error)")
      }
    }
    var others = OtherConsumers(of: scene.queue)
    others.watched[member.id] = member
    try worker.send(.stop)
    try worker.waitUntilStopped()
    let findings = try others.look(at: [own])
    #expect(findings.abandoned.isEmpty && !findings.hasStopped && findings.living.count == 1)
    try worker.send(.continue)
  }
}
