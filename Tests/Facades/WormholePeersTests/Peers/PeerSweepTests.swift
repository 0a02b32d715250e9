import FoundationEssentials
import Synchronization
import Testing
import Wormhole
import WormholeInspection
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import WormholePeers

@Suite("Peers that have ended", .blocking)
struct PeerSweepTests {
  private func age(_ scene: FileScene, _ names: String) throws {
    let child = try ChildProcess(
      "sh", ["-c", "cd '\(scene.container.url.path)/own' && touch -d '25 hours ago' \(names)"])
    #expect(try child.wait(until: soon) == .exited(0))
  }

  private func names(_ scene: FileScene) throws -> [String] {
    try ["values", "presence", "queues", "consumers"].flatMap { part in
      let path = "\(scene.container.url.path)/own/\(part)"
      return try ifPresent(FileDescriptor.open(path, [.readOnly, .directory]).entries())?
        .map { part + "/" + $0.name.text } ?? []
    }
  }

  // PEERS=200 for as many.
  private static let count = Program.environment("PEERS").flatMap { Int($0) } ?? 40

  @Test("leave nothing after a sweep a day later: presences, queues, roles, notes")
  func nothingLeft() throws {
    let scene = try FileScene()
    try scene.sender.activate()
    let receiver = try scene.sender.receiveMessages()
    for number in 0..<Self.count {
      let guest = try PeerSession("guest/\(number)", in: scene.container)
      try guest.activate()
      try scene.sender.enqueue(.integer(Int64(number)), to: guest.name)
      try guest.enqueue(.integer(Int64(number)), to: "phone")
      let messages = try guest.receiveMessages()
      try #require(try messages.next(until: .now)).acknowledge()
      messages.close()
      try #require(try receiver.next(until: .now)).acknowledge()
      if number.isMultiple(of: 20) { try sendFiles(scene, to: guest) }
      guest.close()
    }
    // Somebody waits for this one, and this one was active lately.
    try scene.sender.enqueue(1, to: "later")
    try age(scene, "presence/*")
    try scene.receiver.activate()
    scene.receiver.close()
    receiver.close()
    scene.sender.close()
    let kept = ["presence/peer%2Fwatch", "queues/peer%2Flater%2Fmessages"]
    // What was removed lately is being put on the disk: then somebody else has the lease just now.
    try eventually("only what is of use is left: \(scene.directory.listing)") {
      let swept = try scene.container.sweepWithFiles()
      #expect(swept.failures.isEmpty)
      // It has left just now.
      return try names(scene).filter { $0 != "presence/peer%2Fphone" }.sorted() == kept
    }
    #expect(try scene.sender.peers().map(\.name).sorted() == ["later", "phone", "watch"])
    #expect(try scene.receiver.reachability(of: "guest/7") == .neverSeen)
  }

  /// One that is received, and one that is cancelled.
  private func sendFiles(_ scene: FileScene, to guest: PeerSession) throws {
    let url = try scene.write([1, 2, 3], "file")
    let transfers = try (0..<2).map { _ in
      try scene.sender.transfer(fileAt: url, to: guest.name)
    }
    for transfer in transfers { try transfer.store() }
    #expect(try transfers[1].cancel())
    let files = try guest.receiveFiles()
    try #require(try files.next(until: .now)).acknowledge()
    files.close()
    for transfer in transfers { try transfer.removeReceipt() }
  }

  #if DEBUG
    @Test("and whose names are swept before any step of their coming back lose nothing")
    func comingBack() throws {
      let scene = try FileScene()
      let session = try PeerSession("guest", in: scene.container)
      func use() throws {
        try session.activate()
        try scene.sender.enqueue(1, to: "guest")
        let messages = try session.receiveMessages()
        let message = try messages.next(until: .now)
        #expect(message?.value == 1)
        try message?.acknowledge()
        messages.close()
        #expect(try scene.sender.reachability(of: "guest").isReachable)
        session.close()
      }
      @Sendable func sweep() throws {
        for (primitive, name) in [
          (NameKind.Primitive.presence, PeerNames.presence("guest")),
          (.queue, PeerNames.messages("guest")), (.consumer, PeerNames.messages("guest")),
        ] {
          _ = try scene.container.removeEmptyName(name, primitive, isOwn: true)
        }
      }
      let counting = Faults.Plan { _, _ in .proceed }
      try use()
      try age(scene, "presence/*")
      try Faults.$plan.withValue(counting) { try use() }
      #expect(counting.calls > 50)
      let gone = Atomic(0)
      for place in stride(from: TriedSteps.first, to: counting.calls, by: TriedSteps.stride) {
        try age(scene, "presence/*")
        let before = try names(scene).count
        let plan = Faults.Plan.acting(before: place) {
          try sweep()
          if try names(scene).count < before { gone.add(1, ordering: .relaxed) }
        }
        do { try Faults.$plan.withValue(plan) { try use() } } catch {
          Issue.record("swept before call \(place): \(error)")
        }
      }
      #expect(gone.load(ordering: .relaxed) > 5, "the sweep has removed names in between")
    }
  #endif
}

@Suite("What is kept of a file that was processed", .blocking)
struct FileExpiryTests {
  /// As if what a queue keeps of a file had been there for a day: its name shows when it was sent.
  private func expire(_ scene: FileScene) throws {
    let queue = PlainQueue(
      container: scene.container, name: PeerNames.files("watch"), kind: .ownQueue
    ) { UInt64(Date().timeIntervalSince1970 + 2 * 86_400) * 1_000_000_000 }
    #expect(try queue.expire().count == 1)
  }

  private func transfer(_ scene: FileScene, _ name: String, _ term: QueueReceipt.Term) throws
    -> PeerFileTransfer
  {
    let transfer = try scene.sender.transfer(
      fileAt: scene.write([1], name), to: "watch", options: .init(receiptTerm: term))
    try transfer.store()
    return transfer
  }

  private func listed(_ scene: FileScene) throws -> [String] {
    try scene.sender.fileTransfers().map { $0.source.lastPathComponent }
  }

  @Test("goes with a term: not while the file waits, but a day after it was processed")
  func expiry() throws {
    let scene = try FileScene()
    let kept = try transfer(scene, "kept", .untilForgotten)
    let old = try transfer(scene, "old", .dayAfterProcessing)
    let failed = try transfer(scene, "failed", .dayAfterProcessing)
    let files = try scene.receiver.receiveFiles()
    for name in ["kept", "old", "failed"] {
      let file = try #require(try files.next(until: .now))
      #expect(file.name == name)
      if name == "failed" { try file.fail("no") } else { try file.acknowledge() }
    }
    let waiting = try transfer(scene, "waiting", .dayAfterProcessing)
    // All of them are copied, and their intentions processed.
    #expect(try scene.container.sweepWithFiles().removed == [])
    #expect(try listed(scene) == ["kept", "old", "failed", "waiting"])
    try expire(scene)
    let swept = try scene.container.sweepWithFiles()
    #expect(swept.failures.isEmpty && swept.removed.count == 1 && swept.removed[0].contains(old.id))
    #expect(try listed(scene) == ["kept", "failed", "waiting"])
    #expect(try failed.status() == .failed(reason: "no") && waiting.status() == .stored)
    #expect(try kept.status() == .processed)
  }

  @Test("goes as well when its sender sends another file")
  func bySending() throws {
    let scene = try FileScene()
    _ = try transfer(scene, "old", .dayAfterProcessing)
    _ = try scene.receiveAll()
    try expire(scene)
    // One of its own: it looks for that once an hour.
    let later = try PeerSession("phone", in: scene.container)
    try later.transfer(fileAt: scene.write([1], "new"), to: "watch").store()
    try eventually("the old one is gone") { try listed(scene) == ["new"] }
  }
}
