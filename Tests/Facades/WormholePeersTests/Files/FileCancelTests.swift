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
    arguments: [false, true], [false, true])
  func waiting(isCopied: Bool, isMoved: Bool) throws {
    let scene = try FileScene()
    let transfer = try scene.sender.intendTransfer(
      fileAt: scene.write([1, 2], "f"), to: "watch", options: .init(isMoved: isMoved))
    if isCopied { try scene.sender.sendOutgoingFiles() }
    #expect(try scene.exists("f") == !(isCopied && isMoved))
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
    arguments: [0, 1], FileFaultTests.Way.allCases)
  func inTheMiddle(share: Int, way: FileFaultTests.Way) throws {
    let isMoved = way != .copied
    let counting = try FileScene()
    let entering = try #require(
      Int(try counting.participant().ask("calls queue-consume peer/phone/outgoing")))
    let stride = Self.isEach ? 1 : TriedSteps.stride
    var step = entering + (Self.isEach ? 0 : TriedSteps.first) + share * stride
    let content = FileScene.content(30_000)
    while true {
      let scene = try FileScene()
      let (url, place) = try source(way, scene)
      try FileDescriptor.open(url.path, [.writeOnly, .create]).writeAll(content)
      let transfer = try scene.sender.intendTransfer(
        fileAt: url, to: "watch", options: .init(isMoved: isMoved))
      let late = try scene.participant()
      try late.tell("stop \(step) file-copy phone")
      guard try !late.hasAnswer() else { break }
      // It is about to remove the source.
      let isLocked = try isLocked(url)
      let isCancelled = try transfer.cancel()
      #expect(!(isLocked && isCancelled))
      try late.send(.continue)
      let answer = try late.answer()
      try scene.sender.sendOutgoingFiles()
      let received = try scene.receiveAll()
      let comment: Comment =
        "before call \(step), cancelled: \(isCancelled), \(answer): \(scene.directory.listing)"
      #expect(received.map(\.content) == (isCancelled ? [] : [content]), comment)
      let source = try scene.read(url).map(\.count)
      if !isLocked || source == nil {
        #expect(source == (isCancelled || !isMoved ? content.count : nil), comment)
      }
      #expect(try transfer.status() == (isCancelled ? .cancelled : .processed), comment)
      #expect(try scene.leftovers().isEmpty, comment)
      step += 2 * stride
      withExtendedLifetime(place) {}
    }
  }

  private func source(
    _ way: FileFaultTests.Way, _ scene: FileScene
  ) throws -> (url: URL, place: TemporaryDirectory?) {
    let elsewhere = way == .movedByCopying ? TemporaryDirectory.elsewhere : nil
    let place = try elsewhere.map { try TemporaryDirectory(under: $0) }
    return (URL(filePath: place.map { $0.path + "/f" } ?? scene.path("f")), place)
  }

  private func isLocked(_ url: URL) throws -> Bool {
    try ifPresent(FileDescriptor.open(url.path, .readOnly))?.tryLock(.exclusive) == false
  }

  @Test(
    "does not remove what somebody else has put in place of its source",
    .enabled(if: TemporaryDirectory.elsewhere != nil))
  func replacedSource() throws {
    let counting = try FileScene()
    _ = try counting.sender.intendTransfer(fileAt: counting.write([1, 2], "f"), to: "watch")
    // It is stored after more than two thirds of the calls.
    let calls = try #require(Int(try counting.participant().ask("calls file-copy phone")))
    var (step, tried) = (calls * 2 / 3, 0)
    while true {
      let scene = try FileScene()
      let (url, place) = try source(.movedByCopying, scene)
      try FileDescriptor.open(url.path, [.writeOnly, .create]).writeAll([1, 2])
      _ = try scene.sender.intendTransfer(fileAt: url, to: "watch", options: .init(isMoved: true))
      let late = try scene.participant()
      try late.tell("stop \(step) file-copy phone")
      guard try !late.hasAnswer() else { break }
      let isStored = try scene.container.own.queue(PeerNames.files("watch")).hasEntries()
      let isReplaced = try isStored && !isLocked(url)
      if isReplaced {
        tried += 1
        let old = url.path + "-old"
        _ = try ifPresent(
          rename(url.path, at: Directory.current, to: old, at: Directory.current))
        try FileDescriptor.open(url.path, [.writeOnly, .create]).writeAll([9])
      }
      try late.send(.continue)
      #expect(try late.answer() == "done")
      #expect(try scene.receiveAll().map(\.content) == [[1, 2]])
      #expect(try scene.read(url) == (isReplaced ? [9] : nil), "before call \(step)")
      step += Self.isEach || TriedSteps.isThorough ? 1 : 3
      withExtendedLifetime(place) {}
    }
    #expect(tried > 3)
  }

  @Test("is not cancelled while another process has the source locked that is to be removed")
  func lockedSource() throws {
    let scene = try FileScene()
    let url = try scene.write([1, 2], "f")
    let other = try FileDescriptor.open(url.path, .readOnly)
    #expect(try other.tryLock(.shared))
    let transfer = try scene.sender.intendTransfer(
      fileAt: url, to: "watch", options: .init(isMoved: true))
    try scene.sender.sendOutgoingFiles()
    // A directory has it by a rename, which nobody can undo by removing the source.
    let isCopied = TestEngine.current == .etcd
    #expect(try scene.exists("f") == isCopied)
    #expect(try transfer.cancel() == !isCopied)
    try other.unlock()
    if isCopied {
      // Another file in its place is none of this.
      try rename(url.path, at: Directory.current, to: scene.path("old"), at: Directory.current)
      try scene.write([9], "f")
      let foreign = try FileDescriptor.open(url.path, .readOnly)
      #expect(try foreign.tryLock(.exclusive) && transfer.cancel())
      try rename(scene.path("old"), at: Directory.current, to: url.path, at: Directory.current)
    }
    #expect(try transfer.cancel() && transfer.status() == .cancelled)
    #expect(try scene.read(url) == [1, 2] && scene.receiveAll().isEmpty)
  }

  @Test("by another process than the copying one is not sent", arguments: [false, true])
  func elsewhere(isMoved: Bool) throws {
    let scene = try FileScene()
    let transfer = try scene.sender.intendTransfer(
      fileAt: scene.write([1, 2], "f"), to: "watch", options: .init(isMoved: isMoved))
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
    for isMoved in [false, true] {
      let transfer = try session.transfer(
        fileAt: large, to: "watch", options: .init(isMoved: isMoved))
      guard case .failed(let reason) = try transfer.ended() else {
        Issue.record("it did not fail")
        return
      }
      #expect(reason.contains("no space left"), "\(reason)")
      #expect(try scene.exists("large"))
    }
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
