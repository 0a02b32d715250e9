import FoundationEssentials
import Testing
import Wormhole
import WormholeSystem
import WormholeTestSupport

@testable import WormholePeers

@Suite(
  "A file between peers, whatever happens to its processes,", .blocking, .bothEngines)
struct FileCrashTests {
  /// The steps of a command are shared among parallel tests.
  private static let shares = [0, 1]
  static let stride = TriedSteps.stride

  /// Returns the number of steps of becoming the consumer of a queue, which have their own tests.
  private func entering() throws -> Int {
    let scene = try FileScene()
    let answer = try scene.participant().ask("calls queue-consume peer/phone/outgoing")
    return try #require(Int(answer)) - 4
  }

  @Test(
    "arrives exactly once when its sender is killed before any step of sending it",
    arguments: shares)
  func senderKilled(share: Int) throws {
    let first = try entering()
    var step = first + TriedSteps.first + share * Self.stride
    let content = FileScene.content(30_000)
    while true {
      let scene = try FileScene()
      let url = try scene.write(content, "f")
      let transfer = try scene.sender.intendTransfer(fileAt: url, to: "watch")
      let wasKilled = try scene.participant().dies(of: "die \(step) file-copy phone")
      // It may have been stored, and handled before its sender runs again.
      let before = try scene.receiveAll()
      try scene.sender.sendOutgoingFiles()
      let after = try scene.receiveAll()
      func comment() -> Comment { "before call \(step): \(scene.directory.listing)" }
      #expect((before + after).map(\.content) == [content], comment())
      #expect(try transfer.status() == .processed, comment())
      #expect(try scene.read(url) == content, comment())
      #expect(try scene.leftovers().isEmpty, comment())
      guard wasKilled else { break }
      step += Self.shares.count * Self.stride
    }
    // On etcd most steps are requests, not calls.
    #expect(step > first + (TestEngine.current == .directory ? 30 : 10))
  }

  @Test(
    "arrives exactly once when its sender is stopped, replaced, and continued",
    arguments: shares)
  func senderStopped(share: Int) throws {
    var step = try entering() + 4 + TriedSteps.first + share * 2 * Self.stride
    let content = FileScene.content(30_000)
    while true {
      let scene = try FileScene()
      let url = try scene.write(content, "f")
      let transfer = try scene.sender.intendTransfer(fileAt: url, to: "watch")
      let late = try scene.participant()
      try late.tell("stop \(step) file-copy phone")
      guard try !late.hasAnswer() else { break }
      try scene.sender.sendOutgoingFiles()
      let before = try scene.receiveAll()
      try late.send(.continue)
      let answer = try late.answer()
      // Whatever it has done since, and whichever process had to complete it.
      try scene.sender.sendOutgoingFiles()
      let after = try scene.receiveAll()
      func comment() -> Comment { "before call \(step), \(answer): \(scene.directory.listing)" }
      #expect((before + after).map(\.content) == [content], comment())
      #expect(try transfer.status() == .processed, comment())
      #expect(try scene.read(url) == content, comment())
      #expect(try scene.leftovers().isEmpty, comment())
      step += Self.shares.count * 2 * Self.stride
    }
  }

  @Test(
    "is moved or delivered again, never both, when its receiver is killed before any step",
    arguments: shares)
  func receiverKilled(share: Int) throws {
    let first = try entering()
    var step = first + TriedSteps.first + share * Self.stride
    let content = FileScene.content(30_000)
    while true {
      let scene = try FileScene()
      let transfer = try scene.sender.intendTransfer(fileAt: scene.write(content, "f"), to: "watch")
      try scene.sender.sendOutgoingFiles()
      try makeDirectory(scene.path("moved"))
      let wasKilled = try scene.participant().dies(
        of: "die \(step) file-work watch \(scene.path("moved"))")
      let moved = try scene.read(scene.path("moved/f"))
      let again = try scene.receiveAll()
      func comment() -> Comment { "before call \(step): \(scene.directory.listing)" }
      #expect((moved.map { [$0] } ?? []) + again.map(\.content) == [content], comment())
      #expect(try transfer.status() == .processed, comment())
      #expect(try scene.leftovers().isEmpty, comment())
      guard wasKilled else { break }
      step += Self.shares.count * Self.stride
    }
    #expect(step > first + 15)
  }

  @Test("is delivered again, and marked, when its receiver is killed while it handles it")
  func killedInHandler() throws {
    let scene = try FileScene()
    try scene.sender.transfer(fileAt: scene.write([1, 2], "f"), to: "watch").store()
    let victim = try scene.participant()
    #expect(try victim.ask("file-receive watch") == "done")
    #expect(try victim.ask("file-next watch") == "phone f 2")
    try victim.end()
    let all = try scene.receiveAll()
    #expect(all.count == 1 && all.first?.content == [1, 2] && all.first?.isRedelivery == true)
    #expect(try scene.leftovers().isEmpty)
  }

  @Test("is kept with its content after a failure, and arrives when it is sent again")
  func kept() throws {
    let scene = try FileScene()
    let transfer = try scene.sender.transfer(fileAt: scene.write([1, 2], "f"), to: "watch")
    try transfer.store()
    let files = try scene.receiver.receiveFiles(attempts: 2)
    for attempt in 1...2 {
      let file = try #require(try files.next(until: .now))
      #expect(try file.attempt == attempt && scene.read(file.url) == [1, 2])
      try file.retry(after: .zero, because: "again")
    }
    #expect(try files.next(until: .now) == nil)
    files.close()
    let status = try transfer.status()
    #expect(status == .failed(reason: "again"))
    // The sender's records are its own.
    try transfer.removeReceipt()
    let failure = try #require(try scene.receiver.failures().first)
    #expect(failure.content == .file(name: "f", size: 2) && failure.sender == "phone")
    #expect(try scene.receiver.retry(failure: failure.id) != nil)
    #expect(try scene.receiver.failures().isEmpty)
    #expect(try scene.receiveAll().map(\.content) == [[1, 2]])
    #expect(try scene.leftovers().isEmpty, "\(scene.directory.listing)")
  }

  @Test(
    "belongs to the successor of a stopped receiver, which then neither moves nor deletes it")
  func receiverStopped() throws {
    let scene = try FileScene()
    let transfer = try scene.sender.transfer(fileAt: scene.write([1, 2], "f"), to: "watch")
    try transfer.store()
    let late = try scene.participant()
    #expect(try late.ask("file-receive watch") == "done")
    #expect(try late.ask("file-next watch") == "phone f 2")
    try late.send(.stop)
    try late.waitUntilStopped()
    let files = try scene.receiver.receiveFiles()
    let file = try #require(try files.next(until: .now))
    #expect(file.isRedelivery)
    try late.send(.continue)
    #expect(try late.ask("file-move watch \(scene.path("stolen"))").hasPrefix("error replaced"))
    #expect(try late.ask("file-acknowledge watch").hasPrefix("error replaced"))
    #expect(try late.ask("file-fail watch").hasPrefix("error replaced"))
    #expect(try !scene.exists("stolen") && scene.read(file.url) == [1, 2])
    try file.move(to: scene.url("mine"))
    try file.acknowledge()
    #expect(try scene.exists("mine") && transfer.status() == .processed)
    #expect(try scene.leftovers().isEmpty, "\(scene.directory.listing)")
  }
}
