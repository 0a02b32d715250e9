import Foundation
import MMWormhole
import Testing
import Wormhole
import WormholePropertyLists
import WormholeTestSupport

@Suite("MMWormholeFileTransiting", .blocking, .bothEngines)
struct FileTransitingTests {
  let directory: TemporaryDirectory
  let container: SharedContainer

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
  }

  private func transiting(_ name: String?) -> MMWormholeFileTransiting {
    MMWormholeFileTransiting(container: container, optionalDirectory: name)
  }

  @Test("names the original's places, and makes the directory at each call")
  func places() throws {
    #expect(transiting(nil).messagePassingDirectoryPath() == directory.path)
    let files = transiting("a/b")
    let path = directory.path + "/a/b"
    for _ in 0..<2 {
      #expect(files.messagePassingDirectoryPath() == path)
      #expect(FileManager.default.fileExists(atPath: path))
      try FileManager.default.removeItem(atPath: path)
    }
    #expect(files.filePath(forIdentifier: "x") == path + "/x.archive")
    #expect(files.filePath(forIdentifier: nil) == nil && files.filePath(forIdentifier: "") == nil)
  }

  @Test(
    "has no directory of a name that is the container's or leads out of it, but messages",
    arguments: ["values", "own/x", "container.plist", "..", "a/../..", "mailboxes"])
  func reserved(name: String) throws {
    let files = transiting(name)
    let errors = Errors()
    files.errorHandler = { errors.add($0) }
    #expect(files.messagePassingDirectoryPath() == nil)
    #expect(files.filePath(forIdentifier: "x") == nil)
    #expect(errors.all.count == 2 && errors.all[0].contains("optionalDirectory"), "\(errors.all)")
    #expect(files.writeMessageObject("text", forIdentifier: "x"))
    #expect(try container.value("\(name)/x").read() == "text")
    files.deleteContentForAllMessages()
    #expect(files.messageObject(forIdentifier: "x") == nil)
    #expect(errors.all.count == 2)
  }

  @Test("shares its messages with the coordinated kind")
  func coordinated() throws {
    let files = transiting("d")
    let coordinated = MMWormholeCoordinatedFileTransiting(
      container: container, optionalDirectory: "d")
    coordinated.additionalFileWritingOptions = .atomic
    #expect(coordinated.writeMessageObject(NSNumber(value: 7), forIdentifier: "x"))
    #expect(files.messageObject(forIdentifier: "x") as? Int == 7)
    #expect(files.writeMessageObject(nil, forIdentifier: "x"))
    #expect(coordinated.messageObject(forIdentifier: "x") == nil)
  }

  @Test("leaves an app's files in the directory alone, when it clears its messages")
  func appFiles() throws {
    let files = transiting("d")
    let path = try #require(files.messagePassingDirectoryPath()) + "/app.txt"
    try "kept".write(toFile: path, atomically: true, encoding: .utf8)
    #expect(files.writeMessageObject("text", forIdentifier: "app"))
    files.deleteContentForAllMessages()
    #expect(files.messageObject(forIdentifier: "app") == nil)
    #expect(FileManager.default.fileExists(atPath: path))
  }

  @Test("may replace a wormhole's messenger, and the listeners hear of its messages from then on")
  func replaced() throws {
    let received = Recorder()
    let wormhole = MMWormhole(container: container, optionalDirectory: "d")
    wormhole.listenForMessage(withIdentifier: "x") { received.add($0) }
    wormhole.wormholeMessenger = transiting("other")
    wormhole.passMessageObject("one", identifier: "x")
    try eventually("it is heard") { received.all == ["one"] }
    #expect(transiting("d").writeMessageObject("not heard", forIdentifier: "x"))
    #expect(transiting("other").writeMessageObject("two", forIdentifier: "x"))
    try eventually("the next is heard") { received.all == ["one", "two"] }
    wormhole.stopListeningForMessage(withIdentifier: "x")
    wormhole.wormholeMessenger = transiting("d")
    wormhole.listenForMessage(withIdentifier: "y") { received.add($0) }
    wormhole.passMessageObject("stopped", identifier: "x")
    wormhole.passMessageObject("three", identifier: "y")
    try eventually("only the other is heard") { received.all == ["one", "two", "three"] }
  }
}
