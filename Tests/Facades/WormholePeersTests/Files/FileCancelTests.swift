import FoundationEssentials
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import WormholePeers

@Suite("A cancelled file", .blocking, .bothEngines)
struct FileCancelTests {
  /// On etcd, where there are few, each step is tried: a single one once lost a file.
  private static var isEach: Bool { TestEngine.current == .etcd }

  @Test(
    "stays in its place, and nowhere else, before it is copied and while it waits for its peer",
    arguments: [false, true])
  func waiting(isCopied: Bool) throws {
    let scene = try FileScene()
    let transfer = try scene.sender.intendTransfer(
      fileAt: scene.write([1, 2], "f"), to: "watch")
    if isCopied { try scene.sender.sendOutgoingFiles() }
    #expect(try transfer.cancel() && transfer.status() == .cancelled)
    #expect(try transfer.cancel(), "again")
    #expect(try transfer.ended() == .cancelled)
    try scene.sender.sendOutgoingFiles()
    #expect(try scene.receiveAll().isEmpty && scene.read(scene.url("f")) == [1, 2])
    #expect(try scene.leftovers().isEmpty, "\(scene.directory.listing)")
    try transfer.removeReceipt()
    #expect(try scene.sender.fileTransfers().isEmpty)
  }

  @Test("is not cancelled once its peer has it")
  func delivered() throws {
    let scene = try FileScene()
    let transfer = try scene.sender.transfer(fileAt: scene.write([1, 2], "f"), to: "watch")
    try transfer.store()
    let files = try scene.receiver.receiveFiles()
    let file = try #require(try files.next(until: .now))
    #expect(try !transfer.cancel() && transfer.status() == .taken)
    #expect(try scene.read(file.url) == [1, 2])
    try file.acknowledge()
    #expect(try !transfer.cancel() && transfer.status() == .processed)
  }

  @Test(
    "is cancelled or delivered, never both, before whichever copying step its sender was stopped",
    arguments: [0, 1])
  func inTheMiddle(share: Int) throws {
    let counting = try FileScene()
    let entering = try #require(
      Int(try counting.participant().ask("calls queue-consume peer/phone/outgoing")))
    let stride = Self.isEach ? 1 : TriedSteps.stride
    var step = entering + (Self.isEach ? 0 : TriedSteps.first) + share * stride
    let content = FileScene.content(30_000)
    while true {
      let scene = try FileScene()
      let url = try scene.write(content, "f")
      let transfer = try scene.sender.intendTransfer(fileAt: url, to: "watch")
      let late = try scene.participant()
      try late.tell("stop \(step) file-copy phone")
      guard try !late.hasAnswer() else { break }
      let isCancelled = try transfer.cancel()
      try late.send(.continue)
      let answer = try late.answer()
      try scene.sender.sendOutgoingFiles()
      let received = try scene.receiveAll()
      let comment: Comment =
        "before call \(step), cancelled: \(isCancelled), \(answer): \(scene.directory.listing)"
      #expect(received.map(\.content) == (isCancelled ? [] : [content]), comment)
      #expect(try scene.read(url) == content, comment)
      #expect(try transfer.status() == (isCancelled ? .cancelled : .processed), comment)
      #expect(try scene.leftovers().isEmpty, comment)
      step += 2 * stride
    }
  }

  @Test("by another process than the copying one is not sent")
  func elsewhere() throws {
    let scene = try FileScene()
    let transfer = try scene.sender.intendTransfer(
      fileAt: scene.write([1, 2], "f"), to: "watch")
    // As a sender does that cannot take it out of the queue any more.
    try scene.sender.outgoingFiles.note(transfer.id, isGivenUp: true)
    try PeerSession("phone", in: scene.container).sendOutgoingFiles()
    #expect(try transfer.status() == .cancelled && scene.read(scene.url("f")) == [1, 2])
    #expect(try scene.receiveAll().isEmpty && scene.leftovers().isEmpty)
    #expect(try scene.sender.outgoingFiles.notes.read() == nil, "and there is nothing to remember")
  }

  @Test("in the middle of copying a large file stops the copy")
  func large() throws {
    let scene = try FileScene()
    let file = try FileDescriptor.open(scene.path("f"), [.writeOnly, .create])
    for _ in 0..<16 { try file.writeAll([UInt8](repeating: 7, count: 1 << 20)) }
    let small = try scene.write([1], "small")
    for _ in 0..<3 {
      let transfer = try scene.sender.transfer(fileAt: scene.url("f"), to: "watch")
      let next = try scene.sender.transfer(fileAt: small, to: "watch")
      let isCancelled = try transfer.cancel()
      try next.store()
      #expect(try scene.receiveAll().map(\.name) == (isCancelled ? [] : ["f"]) + ["small"])
      #expect(try transfer.status() == (isCancelled ? .cancelled : .processed))
      #expect(try scene.leftovers().isEmpty, "\(scene.directory.listing)")
    }
  }
}

@Suite("A file for which there is no room", .blocking, .enabled(if: SmallFileSystem.isPossible))
struct FileFullDiskTests {
  @Test("fails with that reason, leaves nothing behind, and the next one arrives")
  func full() throws {
    let mounts = try MountNamespace()
    try mounts.run("mkdir disk && mount -t tmpfs -o mode=700,size=1m tmpfs disk")
    let container = try SharedContainer(path: mounts.inside + "/disk")
    let session = try PeerSession("phone", in: container)
    let scene = try FileScene()
    let large = try scene.write(FileScene.content(3 << 20), "large")
    let small = try scene.write(FileScene.content(3_000), "small")
    guard case .failed(let reason) = try session.transfer(fileAt: large, to: "watch").ended() else {
      Issue.record("it did not fail")
      return
    }
    #expect(reason.contains("no space left"), "\(reason)")
    #expect(try mounts.run("ls disk/own/queues/*files/attachments") == "")
    try session.transfer(fileAt: small, to: "watch").store()
    let files = try PeerSession("watch", in: container).receiveFiles()
    let file = try #require(try files.next(until: .now))
    #expect(try scene.read(file.url) == FileScene.content(3_000))
    try file.acknowledge()
  }
}

private enum SmallFileSystem {
  static let isPossible: Bool = {
    let obstacle = MountNamespace.obstacle(to: "mount -t tmpfs tmpfs .")
    if let obstacle { print("skipped: no mounts here: \(obstacle)") }
    return obstacle == nil
  }()
}
