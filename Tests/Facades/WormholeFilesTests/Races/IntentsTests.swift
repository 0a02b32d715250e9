import FoundationEssentials
import Testing
import Wormhole
import WormholeSystem
import WormholeTestSupport

@testable import WormholeFiles

@Suite("Several items in one access", .blocking)
struct IntentsTests {
  let scene: RaceScene
  let first: Participant
  let second: Participant

  init() throws {
    scene = try RaceScene()
    for name in ["a", "b", "c"] { try scene.put("0", name) }
    first = try scene.participant()
    second = try scene.participant()
  }

  private func all(_ names: [String], _ kind: String = "writing") -> String {
    names.map { "\(kind) \(scene.path($0))" }.joined(separator: " ")
  }

  @Test("in opposite orders never wait for each other in a circle")
  func oppositeOrders() throws {
    for _ in 0..<20 {
      try first.tell(all(["a", "b", "c"]) + " add=1")
      try second.tell(all(["c", "b"]) + " " + all(["a"], "reading") + " wait=30 read=yes")
      #expect(try first.answer() == "done")
      #expect(try second.answer().hasPrefix("error") == false)
    }
    #expect(try scene.text("c") == "20")
    try scene.expectOnly(["a", "b", "c"])
  }

  // first                      second                     this process
  // inside b
  //                            wants a and b: has a,
  //                            waits for b
  //                                                       a is held, c is free
  // leaves
  //                            inside both
  @Test("keep the items that they have while they wait for the rest, and no others")
  func partly() throws {
    #expect(try first.ask(all(["b"])).hasPrefix("inside "))
    try second.tell(all(["b", "a"]))
    try scene.waitUntil(second, waitsFor: "b")
    let error = try #require(throws: WormholeError.self) {
      try FileCoordinator().coordinate(writingItemAt: scene.url("a"), until: .now) { _ in }
    }
    #expect(error.holder?.processID == second.processID)
    try FileCoordinator().coordinate(writingItemAt: scene.url("c"), until: .now) { _ in }
    #expect(try first.ask("leave") == "done")
    #expect(try second.answer().hasPrefix("inside "))
    #expect(try second.ask("leave") == "done")
    try scene.expectOnly(["a", "b", "c"])
  }

  @Test("may name an item twice, by two paths, and to read and to write it")
  func twice() throws {
    let a = scene.path("a")
    let other = scene.items + "/../items/a"
    for words in ["writing \(a) writing \(other)", "reading \(other) writing \(a)"] {
      #expect(try first.ask("\(words) wait=5").hasPrefix("inside "), "\(words)")
      #expect(try first.ask("add 1") == "done")
      #expect(try first.ask("leave") == "done")
    }
    #expect(try scene.text("a") == "2")
    try scene.expectOnly(["a", "b", "c"])
  }

  @Test(
    "may name a directory and an item in it", arguments: ["writing", "deleting", "replacing"])
  func nested(kind: String) throws {
    try scene.makeFolder("d")
    try scene.put("0", "d/file")
    let words = "\(kind) \(scene.path("d")) writing \(scene.path("d/file")) wait=5"
    #expect(try first.ask(words).hasPrefix("inside "))
    if kind == "writing" { #expect(try first.ask("put new") == "done") }
    #expect(try first.ask("leave") == "done")
    #expect(try scene.text("d/file") == (kind == "writing" ? "new" : "0"))
    try scene.expectOnly(["file"], in: "d")
    try scene.expectOnly(["a", "b", "c", "d"])
  }

  // first                      second
  // inside a for "p"
  //                            inside a for "p": waits
  @Test("of one purpose wait for each other in two processes", arguments: ["writing", "moving"])
  func purposes(kind: String) throws {
    #expect(try first.ask("\(kind) \(scene.path("a")) purpose=p").hasPrefix("inside "))
    let refusal = try second.ask("writing \(scene.path("a")) purpose=p wait=0")
    #expect(refusal.hasPrefix("error timedOut "), "\(kind): \(refusal)")
    #expect(try first.ask("leave") == "done")
    #expect(try second.ask("writing \(scene.path("a")) purpose=p put=new") == "done")
    #expect(try scene.text("a") == "new")
    try scene.expectOnly(["a", "b", "c"])
  }

  // this process: inside a for "p"; another coordinator for "p" is inside, too
  @Test("of one purpose never wait for each other in one process")
  func purposesHere() throws {
    let (outer, inner) = (FileCoordinator(), FileCoordinator())
    for coordinator in [outer, inner] { coordinator.purposeIdentifier = "p" }
    let write: (String) throws -> Void = { text in
      try inner.coordinate(writingItemAt: scene.url("a"), until: .now) {
        try ItemText.write(text, to: $0.path)
      }
      #expect(try scene.text("a") == text)
    }
    try outer.coordinate(readingItemAt: scene.url("a")) { _ in try write("beside a reader") }
    for options in [WritingOptions(), .forMoving, .inPlace] {
      try outer.coordinate(writingItemAt: scene.url("a"), options: options) { _ in
        try write("\(options.rawValue)")
        #expect(throws: WormholeError.self) {
          try FileCoordinator().coordinate(
            writingItemAt: scene.url("a"), options: .forMoving, until: .now
          ) { _ in }
        }
      }
    }
    try scene.expectOnly(["a", "b", "c"])
  }

  @Test("may be made inside an access: reading the same file, in the copy's old state")
  func nestedReading() throws {
    #expect(try first.ask("writing \(scene.path("a"))").hasPrefix("inside "))
    #expect(try first.ask("put new") == "done")
    #expect(try first.ask("reading \(scene.path("a")) wait=0 read=yes") == "0")
    #expect(try first.ask("writing \(scene.path("b")) wait=0 put=inner") == "done")
    #expect(try first.ask("leave") == "done")
    #expect(try scene.text("a") == "new")
    #expect(try scene.text("b") == "inner")
    try scene.expectOnly(["a", "b", "c"])
  }
}
