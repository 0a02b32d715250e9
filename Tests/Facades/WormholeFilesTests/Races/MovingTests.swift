import FoundationEssentials
import Testing
import WormholeSystem
import WormholeTestSupport

@testable import WormholeFiles

@Suite("Moving and deleting while others wait", .blocking)
struct MovingTests {
  let scene: RaceScene
  let mover: Participant
  let waiter: Participant

  init() throws {
    scene = try RaceScene()
    try scene.put("old", "a")
    mover = try scene.participant()
    waiter = try scene.participant()
  }

  // mover                      waiter
  // inside a
  //                            asks for a, and waits
  // renames it to b, leaves
  //                            has b
  @Test(
    "A waiter for an item that is moved gets its new place",
    arguments: ["writing", "reading", "deleting"])
  func moved(kind: String) throws {
    #expect(try mover.ask("moving \(scene.path("a"))").hasPrefix("inside "))
    try waiter.tell("\(kind) \(scene.path("a"))")
    try scene.waitUntil(waiter, waitsFor: "a")
    #expect(try mover.ask("rename \(scene.path("b"))") == "done")
    #expect(try mover.ask("leave") == "done")
    let place = try waiter.answer()
    #expect(place.hasPrefix("inside ") && place.hasSuffix("/b"), "\(place)")
    #expect(try waiter.ask("read") == "old")
    if kind == "writing" { #expect(try waiter.ask("put new") == "done") }
    if kind == "deleting" { #expect(try waiter.ask("erase") == "done") }
    #expect(try waiter.ask("leave") == "done")
    try scene.expectOnly(kind == "deleting" ? [] : ["b"])
    #expect(try scene.text("b") == ["writing": "new", "reading": "old"][kind])
  }

  @Test("To replace an item that is moved meanwhile means the place, not the item")
  func replacing() throws {
    #expect(try mover.ask("moving \(scene.path("a"))").hasPrefix("inside "))
    try waiter.tell("replacing \(scene.path("a")) put=new")
    try scene.waitUntil(waiter, waitsFor: "a")
    #expect(try mover.ask("rename \(scene.path("b"))") == "done")
    #expect(try mover.ask("leave") == "done")
    #expect(try waiter.answer() == "done")
    #expect(try scene.text("a") == "new")
    #expect(try scene.text("b") == "old")
    try scene.expectOnly(["a", "b"])
  }

  @Test("A waiter whose item was moved to a name that is not UTF-8 finds nothing at its place")
  func unreadableName() throws {
    #expect(try mover.ask("moving \(scene.path("a"))").hasPrefix("inside "))
    try waiter.tell("writing \(scene.path("a"))")
    try scene.waitUntil(waiter, waitsFor: "a")
    let items = try FileDescriptor.open(scene.items, [.readOnly, .directory])
    let name = FileName(bytes: [0x61, 0xff])
    try rename(FileName("a"), at: items.rawValue, to: name, at: items.rawValue)
    #expect(try mover.ask("leave") == "done")
    let place = try waiter.answer()
    #expect(place.hasPrefix("inside "), "\(place)")
    #expect(try waiter.ask("read") == "nothing")
    #expect(try waiter.ask("leave") == "done")
    try removeFile(name, at: items.rawValue)
    try scene.expectOnly([])
  }

  private var move: String { "replacing \(scene.path("b")) moving \(scene.path("a"))" }

  // mover                      waiter
  // inside a and b
  //                            asks for both, and waits
  // renames a to b, leaves
  //                            finds nothing at a
  @Test("A waiter with both places of a move does not follow it, and so does not wait for itself")
  func sameMove() throws {
    #expect(try mover.ask(move).hasPrefix("inside "))
    try waiter.tell(move)
    try scene.waitUntil(waiter, waitsFor: "a")
    #expect(try mover.ask("rename \(scene.path("b"))") == "done")
    #expect(try mover.ask("leave") == "done")
    let places = try waiter.answer()
    #expect(places.hasPrefix("inside ") && places.hasSuffix("/a"), "\(places)")
    #expect(try waiter.ask("read") == "nothing")
    #expect(try waiter.ask("leave") == "done")
    #expect(try scene.text("b") == "old")
    try scene.expectOnly(["b"])
  }

  // other                      waiter                     mover
  // inside b
  //                            has a, waits for b
  //                            is stopped
  //                                                       takes a over, waits for b
  // leaves
  //                                                       renames a to b, leaves
  //                            continues: begins with a
  //                            again, and finds nothing
  @Test("A waiter that has lost one of its items acquires it again, and does not wait for itself")
  func lostMeanwhile() throws {
    let other = try scene.participant()
    #expect(try other.ask("inplace \(scene.path("b"))").hasPrefix("inside "))
    try waiter.tell(move)
    try scene.waitUntil(waiter, waitsFor: "b")
    try waiter.send(.stop)
    try waiter.waitUntilStopped()
    try mover.tell(move)
    try scene.waitUntil(mover, waitsFor: "b")
    #expect(try other.ask("leave") == "done")
    #expect(try mover.answer().hasPrefix("inside "))
    #expect(try mover.ask("rename \(scene.path("b"))") == "done")
    #expect(try mover.ask("leave") == "done")
    try waiter.send(.continue)
    let places = try waiter.answer()
    #expect(places.hasPrefix("inside ") && places.hasSuffix("/a"), "\(places)")
    #expect(try waiter.ask("read") == "nothing")
    #expect(try waiter.ask("leave") == "done")
    #expect(try scene.text("b") == "old")
    try scene.expectOnly(["b"])
  }

  // other                      mover                      waiter
  // inside e
  //                            has d, waits for e
  //                            is stopped
  //                                                       inside d/file
  // leaves
  //                            continues: waits for d/file
  //                                                       publishes, leaves
  //                            renames d to e
  @Test(
    "A directory is not moved while others work in it that have passed its stopped mover by",
    arguments: ["writing", "reading"])
  func stoppedMover(kind: String) throws {
    try scene.makeFolder("d")
    try scene.put("old", "d/file")
    let other = try scene.participant()
    #expect(try other.ask("inplace \(scene.path("e"))").hasPrefix("inside "))
    try mover.tell("replacing \(scene.path("e")) moving \(scene.path("d"))")
    try scene.waitUntil(mover, waitsFor: "e")
    try mover.send(.stop)
    try mover.waitUntilStopped()
    #expect(try waiter.ask("\(kind) \(scene.path("d/file"))").hasPrefix("inside "))
    #expect(try other.ask("leave") == "done")
    try mover.send(.continue)
    if kind == "writing" {
      try scene.waitUntil(mover, waitsFor: "d/file")
      #expect(try waiter.ask("put new") == "done")
    } else {
      #expect(try waiter.ask("read") == "old")
    }
    #expect(try waiter.ask("leave") == "done")
    #expect(try mover.answer().hasPrefix("inside "))
    #expect(try mover.ask("rename \(scene.path("e"))") == "done")
    #expect(try mover.ask("leave") == "done")
    #expect(try scene.text("e/file") == (kind == "writing" ? "new" : "old"))
    try scene.expectOnly(["file"], in: "e")
    try scene.expectOnly(["a", "e"])
  }

  // deleter                    waiter
  // inside a, removes its copy
  //                            asks for a, and waits
  // leaves
  //                            finds no item
  @Test("A waiter for an item that is deleted finds none, and may create it again")
  func deleted() throws {
    #expect(try mover.ask("deleting \(scene.path("a"))").hasPrefix("inside "))
    #expect(try mover.ask("erase") == "done")
    try waiter.tell("writing \(scene.path("a"))")
    try scene.waitUntil(waiter, waitsFor: "a")
    #expect(try mover.ask("leave") == "done")
    #expect(try waiter.answer().hasPrefix("inside "))
    #expect(try waiter.ask("read") == "nothing")
    #expect(try waiter.ask("leave") == "done")
    try scene.expectOnly([])
  }

  // mover                      waiter
  // inside the directory d
  //                            asks for d/file, and waits
  // renames d to e, leaves
  //                            has e/file
  @Test(
    "A waiter for an item in a directory that is moved gets its new place",
    arguments: ["writing", "reading"])
  func movedDirectory(kind: String) throws {
    try scene.makeFolder("d")
    try scene.put("old", "d/file")
    #expect(try mover.ask("moving \(scene.path("d"))").hasPrefix("inside "))
    try waiter.tell("\(kind) \(scene.path("d/file"))")
    try scene.waitUntil(waiter, waitsFor: "d")
    #expect(try mover.ask("rename \(scene.path("e"))") == "done")
    #expect(try mover.ask("leave") == "done")
    let place = try waiter.answer()
    #expect(place.hasPrefix("inside "), "\(place)")
    let text = try waiter.ask("read")
    #expect(text == "old", "\(place)")
    if kind == "writing" { #expect(try waiter.ask("put new") == "done") }
    #expect(try waiter.ask("leave") == "done")
    #expect(try scene.text("e/file") == (kind == "writing" ? "new" : "old"))
    try scene.expectOnly(["file"], in: "e")
    try scene.expectOnly(["a", "e"])
  }

  @Test("A waiter for an item in a directory that is deleted gets an error that it is missing")
  func deletedDirectory() throws {
    try scene.makeFolder("d")
    try scene.put("old", "d/file")
    #expect(try mover.ask("deleting \(scene.path("d"))").hasPrefix("inside "))
    #expect(try mover.ask("reading \(scene.path("a")) read=yes") == "old")
    try waiter.tell("writing \(scene.path("d/file")) put=new")
    try scene.waitUntil(waiter, waitsFor: "d")
    #expect(try mover.ask("erase") == "done")
    #expect(try mover.ask("leave") == "done")
    let answer = try waiter.answer()
    #expect(answer.hasPrefix("error directoryMissing "), "\(answer)")
    try scene.expectOnly(["a"])
  }
}
