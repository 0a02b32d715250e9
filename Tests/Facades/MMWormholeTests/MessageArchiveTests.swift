import Foundation
import MMWormhole
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

/// A program with the original and one with ours share a directory.
@Suite("A message's archive", .blocking, .bothEngines)
struct MessageArchiveTests {
  let scene: AppScene
  let app: Participant
  let foreign: Participant
  let directory: String

  init() throws {
    scene = try AppScene()
    app = try scene.start()
    foreign = try scene.start()
    directory = try app.mm("directory -")
  }

  private func archive(_ identifier: String) -> String { directory + "/\(identifier).archive" }

  @Test("is read by a program that knows only Foundation, and so is that program's by ours")
  func bothWays() throws {
    let forms = [("text", "tea"), ("string", "tea"), ("message", "alarms"), ("value", "value")]
    for (form, expected) in forms {
      #expect(try app.mm("pass a \(form) tea") == "done")
      #expect(try foreign.ask("archive-read \(archive("a"))") == expected)
    }
    for (number, verb) in ["write", "overwrite", "write"].enumerated() {
      #expect(try foreign.ask("archive-\(verb) \(archive("a")) milk\(number)") == "done")
      #expect(try app.mm("read a") == "milk\(number)")
      #expect(try scene.wormhole("read", "wormhole/a") == "\"milk\(number)\"")
      #expect(try foreign.ask("archive-read \(archive("a"))") == "milk\(number)")
    }
    #expect(try foreign.ask("archive-write \(archive("new")) milk") == "done")
    #expect(try app.mm("read new") == "milk")
  }

  @Test("is heard by listeners when a program replaces it, and watchers of the file hear of ours")
  func heard() throws {
    #expect(try app.mm("pass a text old") == "done")
    #expect(try app.mm("listen a") == "done")
    var expected: [String] = []
    for verb in ["write", "overwrite", "write"] {
      // Also the same text again is a message.
      #expect(try foreign.ask("archive-\(verb) \(archive("a")) milk") == "done")
      expected.append("milk")
      #expect(try app.mm("heard \(expected.count)") == expected.joined(separator: " "))
    }
    let changes = Heard<Int>()
    let place = ContainerDirectory(elsewhere: directory)
    let token = ForeignFile.observe("a.archive", in: place, on: .global()) { changes.add(1) }
    #expect(try app.mm("pass a text tea") == "done")
    try eventually("the watcher is called") { !changes.all.isEmpty }
    #expect(try foreign.ask("archive-read \(archive("a"))") == "tea")
    token.cancel()
  }

  @Test("is gone when either program clears the message")
  func cleared() throws {
    for identifier in ["a", "b"] { #expect(try app.mm("pass \(identifier) text tea") == "done") }
    #expect(try foreign.ask("archive-remove \(archive("a"))") == "done")
    #expect(try app.mm("read a") == "nil")
    #expect(try scene.wormhole("read", "wormhole/a") == "")
    #expect(try app.mm("clear b") == "done")
    #expect(try foreign.ask("archive-read \(archive("b"))") == "nil")
    // None of ours has seen it.
    #expect(try foreign.ask("archive-write \(archive("c")) milk") == "done")
    #expect(try foreign.ask("archive-write \(archive("d")) milk") == "done")
    #expect(try app.mm("clear d") == "done")
    #expect(try foreign.ask("archive-read \(archive("d"))") == "nil")
    #expect(try app.mm("pass e text tea") == "done")
    #expect(try app.mm("clear all") == "done")
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == [])
    #expect(try app.mm("read c") == "nil")
  }

  @Test("follows a message of the command, which is newer than an archive that was not read yet")
  func command() throws {
    #expect(try app.mm("pass a text old") == "done")
    #expect(try foreign.ask("archive-write \(archive("a")) milk") == "done")
    let long = Date(timeIntervalSinceNow: -60)
    try FileManager.default.setAttributes([.modificationDate: long], ofItemAtPath: archive("a"))
    #expect(try scene.wormhole("send", "wormhole/a", "\"tea\"") == "")
    #expect(try app.mm("read a") == "tea")
    #expect(try foreign.ask("archive-read \(archive("a"))") == "tea")
    #expect(try scene.wormhole("remove", "wormhole/a") == "")
    #expect(try app.mm("read a") == "nil")
    #expect(try foreign.ask("archive-read \(archive("a"))") == "nil")
  }

  @Test("of an object whose class only the other program has stays as it is")
  func unknownClass() throws {
    #expect(try foreign.ask("archive-alarm \(archive("a")) tea") == "done")
    #expect(try app.mm("read a") == "nil")
    let content = try scene.wormhole("read", "wormhole/a")
    #expect(content.contains("AbsentAlarms"))
    #expect(try scene.wormhole("send", "wormhole/b", content) == "")
    #expect(try app.mm("read b") == "nil")
    #expect(try foreign.ask("archive-read \(archive("b"))") == "tea")
  }

  @Test("is made when a program asks for its place; no message has one before that")
  func first() throws {
    let messenger = MMWormholeFileTransiting(
      container: try scene.directory.container(), optionalDirectory: "d")
    let files = FileManager.default
    #expect(messenger.writeMessageObject("tea", forIdentifier: "a"))
    #expect(messenger.messageObject(forIdentifier: "a") as? String == "tea")
    #expect(!files.fileExists(atPath: scene.directory.path + "/d"))
    #expect(files.fileExists(atPath: try #require(messenger.filePath(forIdentifier: "a"))))
    #expect(messenger.writeMessageObject("milk", forIdentifier: "b"))
    #expect(files.fileExists(atPath: scene.directory.path + "/d/b.archive"))
  }

  @Test("is named by its identifier, byte for byte; one with a slash or 300 bytes has none")
  func identifiers() throws {
    let names = ["é", "e\u{301}", ".", "..", "a b", "%", "x.archive", "\u{1F600}"]
    let messenger = MMWormholeFileTransiting(
      container: try scene.directory.container(), optionalDirectory: "d")
    let place = try #require(messenger.messagePassingDirectoryPath())
    for (number, name) in names.enumerated() {
      #expect(messenger.writeMessageObject(number as NSNumber, forIdentifier: name))
    }
    let found = try FileManager.default.contentsOfDirectory(atPath: place).map { Array($0.utf8) }
    #expect(Set(found) == Set(names.map { Array(($0 + ".archive").utf8) }))
    for name in ["a/b", "../x", String(repeating: "x", count: 300), "n\0l"] {
      #expect(messenger.writeMessageObject("tea", forIdentifier: name))
      #expect(messenger.messageObject(forIdentifier: name) as? String == "tea")
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: place).count == names.count)
    messenger.deleteContentForAllMessages()
    for name in names { #expect(messenger.messageObject(forIdentifier: name) == nil) }
    #expect(try FileManager.default.contentsOfDirectory(atPath: place) == [])
  }

  @Test("is for the container's group where the container is")
  func modes() throws {
    let path = scene.directory.path + "/shared"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    try FileManager.default.setAttributes([.posixPermissions: 0o2770], ofItemAtPath: path)
    let shared = try SharedContainer(url: URL(filePath: path), access: .group)
    let modes = [(shared, 0o2770, 0o660), (try scene.directory.container(), 0o700, 0o600)]
    for (container, directory, file) in modes {
      let messenger = MMWormholeFileTransiting(container: container, optionalDirectory: "d")
      #expect(messenger.writeMessageObject("tea", forIdentifier: "a"))
      let archive = try #require(messenger.filePath(forIdentifier: "a"))
      let place = try #require(messenger.messagePassingDirectoryPath())
      for (path, mode) in [(place, directory), (archive, file)] {
        let found = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions]
        #expect(found as? Int == mode, "\(path)")
      }
    }
  }
}
