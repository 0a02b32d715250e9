import FoundationEssentials
import Testing
import WormholeSystem
import WormholeTestSupport

@testable import WormholeFiles

/// The original's rules (macOS): "reader/writer of a non-package directory does not wait for
/// ops on contained items (except deleting/moving/replacing)".
@Suite("A directory and its contents", .blocking)
struct DirectoryRulesTests {
  let scene: RaceScene
  let first: Participant
  let second: Participant
  static let inside = ["d/file", "d/sub/file"]

  init() throws {
    scene = try RaceScene()
    for folder in ["d", "d/sub"] { try scene.makeFolder(folder) }
    for file in Self.inside { try scene.put("old", file) }
    first = try scene.participant()
    second = try scene.participant()
    try createLink("d", "link")
  }

  private func createLink(_ target: String, _ name: String) throws {
    try FileManager.default.createSymbolicLink(
      atPath: scene.path(name), withDestinationPath: target)
  }

  private func expectClean() throws {
    try scene.expectOnly(["d", "link"])
    try scene.expectOnly(["file", "sub"], in: "d")
    try scene.expectOnly(["file"], in: "d/sub")
  }

  @Test(
    "Reading and writing one never wait for reading and writing the other",
    arguments: ["reading", "writing"], ["reading", "writing"])
  func independent(one: String, other: String) throws {
    for file in Self.inside {
      #expect(try first.ask("\(one) \(scene.path("d"))").hasPrefix("inside "))
      let answer = try second.ask("\(other) \(scene.path(file)) wait=0")
      #expect(answer.hasPrefix("inside "), "\(file): \(answer)")
      #expect(try first.ask("leave") == "done")
      #expect(try second.ask("leave") == "done")
    }
    try expectClean()
  }

  // first                      second
  // inside d/…/file
  //                            wants d: waits, naming the first
  // leaves
  //                            inside d
  @Test(
    "Deleting, moving and replacing a directory waits for accesses in it",
    arguments: ["deleting", "moving", "replacing"], ["reading", "writing"])
  func waitsForContents(kind: String, inner: String) throws {
    for file in Self.inside {
      #expect(try first.ask("\(inner) \(scene.path(file))").hasPrefix("inside "))
      let refusal = try second.ask("\(kind) \(scene.path("d")) wait=0.1 read=yes")
      #expect(
        refusal.hasPrefix("error timedOut ")
          && refusal.contains("process \(first.processID) (participant)"), "\(refusal)")
      try second.tell("\(kind) \(scene.path("link/../d"))")
      try eventually("the second has the directory's lease") { try !scene.entries("d").isEmpty }
      #expect(try first.ask("leave") == "done")
      let answer = try second.answer()
      #expect(answer.hasPrefix("inside "), "\(file): \(answer)")
      #expect(try second.ask("leave") == "done")
    }
    try expectClean()
  }

  // first                      second
  // inside d
  //                            wants d/…/file: waits, naming the first
  // leaves
  //                            inside d/…/file
  @Test(
    "Deleting, moving or replacing a directory blocks accesses in it",
    arguments: ["deleting", "moving", "replacing"], ["reading", "writing"])
  func keepsOut(kind: String, inner: String) throws {
    for file in Self.inside + ["link/file"] {
      #expect(try first.ask("\(kind) \(scene.path("d"))").hasPrefix("inside "))
      let refusal = try second.ask("\(inner) \(scene.path(file)) wait=0.1 read=yes")
      #expect(
        refusal.hasPrefix("error timedOut ")
          && refusal.contains("process \(first.processID) (participant)"), "\(refusal)")
      try second.tell("\(inner) \(scene.path(file)) read=yes")
      try scene.waitUntil(second, waitsFor: "d")
      #expect(try first.ask("leave") == "done")
      #expect(try second.answer() == "old")
    }
    try expectClean()
  }

  @Test("Two paths of one file mean one item; for a deletion a link is a separate item")
  func paths() throws {
    try createLink("sub/file", "d/pointer")
    let names = ["d/pointer", "link/sub/file", "d/sub/../sub/file", "link/pointer"]
    for name in names {
      #expect(try first.ask("writing \(scene.path("d/sub/file"))").hasPrefix("inside "))
      let refusal = try second.ask("writing \(scene.path(name)) wait=0.05 put=new")
      #expect(refusal.hasPrefix("error timedOut "), "\(name): \(refusal)")
      #expect(try first.ask("leave") == "done")
    }
    #expect(try second.ask("writing \(scene.path("link/pointer")) put=new") == "done")
    #expect(try scene.text("d/sub/file") == "new")
    #expect(try first.ask("writing \(scene.path("d/sub/file"))").hasPrefix("inside "))
    #expect(try second.ask("deleting \(scene.path("d/pointer")) wait=0 erase=yes") == "done")
    #expect(try first.ask("leave") == "done")
    try expectClean()
  }
}
