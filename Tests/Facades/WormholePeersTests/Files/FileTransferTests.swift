import Dispatch
import FoundationEssentials
import Synchronization
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import WormholePeers

@Suite("A file between peers", .blocking, .bothEngines)
struct FileTransferTests {
  @Test(
    "arrives with its content, name and metadata, and is deleted after it was handled",
    arguments: [0, 1, 70_000])
  func arrives(size: Int) throws {
    let scene = try FileScene()
    let content = FileScene.content(size)
    let url = try scene.write(content, "trailer.mov")
    let transfer = try scene.sender.transfer(fileAt: url, to: "watch", metadata: ["title": "Alien"])
    try transfer.store()
    #expect(try transfer.status() == .stored && transfer.progress.fraction == 1)
    let files = try scene.receiver.receiveFiles()
    let file = try #require(try files.next(until: .now))
    #expect(file.id == transfer.id && file.sender == "phone" && file.name == "trailer.mov")
    #expect(file.metadata == ["title": "Alien"] && file.size == size && !file.isRedelivery)
    #expect(try scene.read(file.url) == content)
    #expect(try transfer.status() == .taken)
    let path = file.url
    try file.acknowledge()
    #expect(try transfer.ended() == .processed)
    #expect(try scene.read(path) == nil && scene.read(url) == content)
    #expect(try scene.leftovers().isEmpty, "\(scene.directory.listing)")
    #expect(try files.isIdle())
  }

  @Test("arrives in the order of sending, from each of two processes at once")
  func order() throws {
    let scene = try FileScene()
    let senders = try ["a", "b"].map { (name: $0, process: try scene.participant()) }
    for number in 0..<6 {
      for sender in senders {
        try scene.write(FileScene.content(1_000 * number), "\(sender.name)\(number)")
        try sender.process.tell(
          "file-send \(sender.name) watch \(scene.path("\(sender.name)\(number)"))")
      }
    }
    let files = try scene.receiver.receiveFiles()
    var names: [String] = []
    while names.count < 12, let file = try files.next(until: soon) {
      names.append(file.name)
      try file.acknowledge()
    }
    for sender in senders {
      #expect(names.filter { $0.hasPrefix(sender.name) } == (0..<6).map { "\(sender.name)\($0)" })
    }
  }

  @Test("that is moved belongs to the receiver, and replaces the file in the target's place")
  func moved() throws {
    let scene = try FileScene()
    let transfer = try scene.sender.transfer(fileAt: scene.write([1, 2, 3], "f"), to: "watch")
    try scene.write([9], "mine")
    let files = try scene.receiver.receiveFiles()
    let file = try #require(try files.next(until: soon))
    let missing = try failure { try file.move(to: scene.url("none/mine")) }
    #expect(missing.code == .fileAccess)
    try file.move(to: scene.url("mine"))
    #expect(try failure { try file.move(to: scene.url("other")) }.code == .fileAccess)
    try file.acknowledge()
    #expect(try scene.read(scene.url("mine")) == [1, 2, 3])
    #expect(try transfer.ended() == .processed)
    #expect(try scene.leftovers().isEmpty, "\(scene.directory.listing)")
  }

  @Test(
    "that is moved onto another file system is copied, and gone from the container",
    .enabled(if: TemporaryDirectory.elsewhere != nil))
  func movedElsewhere() throws {
    let elsewhere = try TemporaryDirectory(under: TemporaryDirectory.elsewhere)
    let scene = try FileScene()
    let content = FileScene.content(100_000)
    try scene.sender.transfer(fileAt: scene.write(content, "f"), to: "watch").store()
    let files = try scene.receiver.receiveFiles()
    let mine = elsewhere.path + "/mine"
    let file = try #require(try files.next(until: soon))
    try file.move(to: URL(filePath: mine))
    #expect(try scene.read(mine) == content && scene.read(file.url) == nil)
    try file.acknowledge()
    #expect(try FileDescriptor.open(elsewhere.path, [.readOnly, .directory]).entries().count == 1)
    #expect(try scene.leftovers().isEmpty, "\(scene.directory.listing)")
  }

  @Test("that its handler moves away itself also belongs to the receiver")
  func movedAway() throws {
    let scene = try FileScene()
    let handled = Mutex<[String]>([])
    let files = try scene.receiver.receiveFiles()
    let target = scene.path("mine")
    files.handle(on: DispatchQueue(label: "files")) { file in
      handled.withLock { $0.append(file.name) }
      if file.name == "bad" { throw NeverHappened(what: "something with it") }
      try rename(file.url.path, at: Directory.current, to: target, at: Directory.current)
    }
    let good = try scene.sender.transfer(fileAt: scene.write([1, 2], "good"), to: "watch")
    let bad = try scene.sender.transfer(fileAt: scene.write([3], "bad"), to: "watch")
    #expect(try good.ended() == .processed)
    guard case .failed(let reason) = try bad.ended() else {
      Issue.record("it did not fail")
      return
    }
    #expect(reason.contains("something with it"))
    #expect(try scene.read(target) == [1, 2] && handled.withLock { $0 } == ["good", "bad"])
    try eventually("nothing is left") { try scene.leftovers().isEmpty }
  }

  @Test("is refused with a sentence if it is not a file")
  func refused() throws {
    let scene = try FileScene()
    let send = { (name: String) throws -> WormholeError in
      try failure { try scene.sender.transfer(fileAt: scene.url(name), to: "watch") }
    }
    try makeDirectory(scene.path("directory"))
    try makeFIFO(FileName(scene.path("fifo")), at: Directory.current)
    try scene.write([1], "real")
    try makeSymbolicLink(
      FileName(scene.path("link")), at: Directory.current, target: FileName("real"))
    let directory = try send("directory")
    #expect(directory.code == .fileAccess && directory.reason.contains("directory"))
    #expect(try send("missing").code == .fileAccess)
    #expect(try send("fifo").reason.contains("not a regular file"))
    #expect(try scene.sender.fileTransfers().isEmpty)
    // A link is followed in order to copy its target.
    try scene.sender.transfer(fileAt: scene.url("link"), to: "watch").store()
    let name = try #require(try scene.receiveAll().first)
    #expect(name.name == "link" && name.content == [1])
    if Program.effectiveUser != 0 {
      try setPermissions(FileName(scene.path("real")), at: Directory.current, 0)
      #expect(try send("real").code == .fileAccess)
    }
    let noPeer = try failure { try scene.sender.transfer(fileAt: scene.url("real"), to: "") }
    #expect(noPeer.code == .unsupportedValue)
  }

  @Test("that vanishes before it is copied fails with its reason")
  func vanished() throws {
    let scene = try FileScene()
    let transfer = try scene.sender.intendTransfer(fileAt: scene.write([1], "f"), to: "watch")
    try removeFile(scene.path("f"))
    try scene.sender.sendOutgoingFiles()
    guard case .failed(let reason) = try transfer.status() else {
      Issue.record("it did not fail")
      return
    }
    #expect(reason.contains("No such file"))
    #expect(try failure { try transfer.store() }.code == .failed)
    #expect(try scene.leftovers().isEmpty, "\(scene.directory.listing)")
  }

  @Test("is listed until it is cleared, even by the next process of its sender's name")
  func listed() throws {
    let scene = try FileScene()
    for name in ["one", "two"] {
      let url = try scene.write([1, 2], name)
      try scene.sender.transfer(fileAt: url, to: "watch", metadata: .string(name)).store()
    }
    try scene.sender.transfer(fileAt: scene.url("one"), to: "other").store()
    #expect(try scene.receiveAll().count == 2)
    let again = try PeerSession("phone", in: scene.container)
    let listed = try again.fileTransfers(to: "watch")
    #expect(listed.map(\.source.lastPathComponent) == ["one", "two"])
    #expect(listed.map(\.metadata) == ["one", "two"] && listed.allSatisfy { $0.sender == "phone" })
    #expect(try listed.map { try $0.status() } == [.processed, .processed])
    #expect(listed[0].progress.fraction == 1)
    try listed[0].removeReceipt()
    let waiting = try #require(try again.fileTransfers(to: "other").first)
    try waiting.removeReceipt()
    #expect(try waiting.status() == .stored)
    #expect(try again.fileTransfers().map(\.id) == [listed[1].id, waiting.id])
  }

  @Test(
    "that was cut off on the way is detected",
    .onlyDirectories("it is changed in the file; on etcd see EtcdAttachmentTests"))
  func damaged() throws {
    let scene = try FileScene()
    let transfer = try scene.sender.transfer(
      fileAt: scene.write(FileScene.content(10_000), "f"), to: "watch")
    try transfer.store()
    let waiting = try scene.container.own.queue(PeerNames.files("watch"))
      .waitingAttachments(prefix: transfer.id)
    let path = "\(scene.queue)/attachments/\(try #require(waiting.first).id)/content"
    try FileDescriptor.open(path, .readWrite).setLength(9_999)
    #expect(try scene.receiveAll().isEmpty)
    guard case .failed(let reason) = try transfer.status() else {
      Issue.record("it did not fail")
      return
    }
    #expect(reason == "it is damaged: 9999 bytes of 10000 are there")
    #expect(try scene.leftovers().isEmpty, "\(scene.directory.listing)")
  }

  @Test("expires while it waits to be copied or received, and is deleted then")
  func expires() throws {
    let scene = try FileScene()
    let url = try scene.write([1], "f")
    let options = PeerFileOptions(expiry: .zero)
    let early = try scene.sender.intendTransfer(fileAt: url, to: "watch", options: options)
    try scene.sender.sendOutgoingFiles()
    #expect(try early.status() == .expired)
    let sender = try scene.sender.outgoingFiles.sender(to: "watch")
    let stage = try sender.stage("late", bytes: 1)
    let source = try FileDescriptor.open(url.path, .readOnly)
    try stage.copy(
      source, source.status(), durability: .standard, check: {}, copied: { _ in })
    let id = try sender.enqueue([QueueAttachment.key: "late"], expires: .zero)
    #expect(try scene.receiveAll().isEmpty && sender.status(of: id) == .expired)
    #expect(try scene.leftovers().isEmpty, "\(scene.directory.listing)")
  }

  @Test("reports the copied part to its sender")
  func progress() throws {
    let scene = try FileScene()
    let url = try scene.write(FileScene.content(20_000), "f")
    let calls = Mutex<[PeerFileProgress]>([])
    let transfer = try scene.sender.intendTransfer(fileAt: url, to: "watch")
    let observation = transfer.observeProgress { progress in
      calls.withLock { $0.append(progress) }
    }
    #expect(transfer.progress == .init(completedBytes: 0, totalBytes: 20_000))
    try scene.sender.sendOutgoingFiles()
    try eventually("the end is reported") { calls.withLock { $0.last?.fraction == 1 } }
    let late = Mutex(false)
    let second = transfer.observeProgress { progress in
      late.withLock { $0 = progress.fraction == 1 }
    }
    try eventually("the end is reported to an observer that comes late") { late.withLock { $0 } }
    withExtendedLifetime((observation, second)) {}
  }
}
