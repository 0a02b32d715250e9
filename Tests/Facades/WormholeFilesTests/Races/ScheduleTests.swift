import FoundationEssentials
import Testing
import Wormhole
import WormholeSystem
import WormholeTestSupport

@testable import WormholeFiles

/// The waits between readers and writers. Each line is a gate: the next one begins after it.
@Suite("Readers and writers in several processes", .blocking)
struct ScheduleTests {
  let scene: RaceScene

  init() throws {
    scene = try RaceScene()
    try scene.put("old", "a")
  }

  // writer                     reader
  // inside, has written
  //                            asks, and waits
  // leaves: published
  //                            reads the new content
  @Test("A reader that begins while a writer works on its copy waits for it, and reads its change")
  func readersWait() throws {
    let (writer, reader) = (try scene.participant(), try scene.participant())
    #expect(try writer.ask("writing \(scene.path("a"))").hasPrefix("inside "))
    #expect(try writer.ask("put new") == "done")
    let refusal = try reader.ask("reading \(scene.path("a")) wait=0 read=yes")
    #expect(refusal.hasPrefix("error timedOut "), "\(refusal)")
    #expect(refusal.contains("process \(writer.processID) "), "\(refusal)")
    #expect(try scene.text("a") == "old")
    try reader.tell("reading \(scene.path("a")) read=yes")
    try scene.waitUntil(reader, waitsFor: "a")
    #expect(try writer.ask("leave") == "done")
    #expect(try reader.answer() == "new")
    try scene.expectOnly(["a"])
  }

  // writer 1                   reader                     writer 2
  // inside
  //                            asks, and waits
  //                                                       asks, and waits
  // leaves: published
  //                                                       inside
  //                            reads the first change
  @Test("A reader does not wait for a writer that has begun after it")
  func readersGoOn() throws {
    let (first, second) = (try scene.participant(), try scene.participant())
    let reader = try scene.participant()
    for number in 1...5 {
      #expect(try first.ask("writing \(scene.path("a"))").hasPrefix("inside "))
      #expect(try first.ask("put \(number)") == "done")
      try reader.tell("reading \(scene.path("a")) read=yes")
      try scene.waitUntil(reader, waitsFor: "a")
      try second.tell("writing \(scene.path("a"))")
      try scene.waitUntil(second, waitsFor: "a")
      #expect(try first.ask("leave") == "done")
      #expect(try second.answer().hasPrefix("inside "))
      #expect(try reader.answer() == "\(number)")
      #expect(try second.ask("leave") == "done")
    }
    try scene.expectOnly(["a"])
  }

  // reader 1                   writer                     reader 2
  // inside
  //                            wrote, about to publish
  //                                                       asks, and waits for the writer
  // reads the old content
  // leaves
  //                            published
  //                                                       reads the new content
  @Test("A publication waits for present readers, and new readers wait for the publication")
  func publicationWaits() throws {
    let first = try scene.participant()
    let writer = try scene.participant()
    let second = try scene.participant()
    #expect(try first.ask("reading \(scene.path("a"))").hasPrefix("inside "))
    try writer.tell("writing \(scene.path("a")) put=new")
    try scene.waitUntilPublishing("a")
    let refusal = try second.ask("reading \(scene.path("a")) wait=0 read=yes")
    #expect(refusal.hasPrefix("error timedOut "), "\(refusal)")
    try second.tell("reading \(scene.path("a")) read=yes")
    try scene.waitUntil(second, waitsFor: "a")
    #expect(try first.ask("read") == "old")
    #expect(try first.ask("leave") == "done")
    #expect(try writer.answer() == "done")
    #expect(try second.answer() == "new")
    try scene.expectOnly(["a"])
  }

  // writer 1                   writer 2
  // inside, has written 1
  //                            asks, and waits
  // leaves
  //                            finds 1 in its copy, adds 10
  @Test("A second writer waits for the first, and continues from its publication")
  func writersWait() throws {
    try scene.put("0", "a")
    let (first, second) = (try scene.participant(), try scene.participant())
    #expect(try first.ask("writing \(scene.path("a"))").hasPrefix("inside "))
    #expect(try first.ask("add 1") == "done")
    try second.tell("writing \(scene.path("a")) add=10")
    try scene.waitUntil(second, waitsFor: "a")
    #expect(try first.ask("leave") == "done")
    #expect(try second.answer() == "done")
    #expect(try scene.text("a") == "11")
    try scene.expectOnly(["a"])
  }

  // holder                     writer, publisher, mover
  // inside
  //                            give up, naming the holder
  @Test("An error at the deadline names the process, its program, and that it runs")
  func deadline() throws {
    let (holder, other) = (try scene.participant(), try scene.participant())
    let who = "process \(holder.processID) (participant), which is running"
    #expect(try holder.ask("writing \(scene.path("a"))").hasPrefix("inside "))
    for kind in ["writing", "replacing", "deleting", "moving", "metadata", "merging"] {
      let answer = try other.ask("\(kind) \(scene.path("a")) wait=0.1 put=new")
      #expect(answer.hasPrefix("error timedOut ") && answer.contains(who), "\(kind): \(answer)")
      #expect(answer.contains(scene.path("a")), "\(kind): \(answer)")
    }
    let error = try #require(throws: WormholeError.self) {
      try FileCoordinator().coordinate(writingItemAt: scene.url("a"), until: .now - .seconds(1)) {
        _ in Issue.record("access was granted")
      }
    }
    #expect(error.code == .timedOut && error.holder?.processID == holder.processID)
    #expect(error.holder?.program == "participant" && error.holder?.state == .running)
    #expect(try holder.ask("leave") == "done")
    #expect(try holder.ask("reading \(scene.path("a"))").hasPrefix("inside "))
    let moving = try other.ask("moving \(scene.path("a")) wait=0.1 put=new")
    #expect(moving.hasPrefix("error timedOut ") && moving.contains(who), "\(moving)")
    #expect(try holder.ask("leave") == "done")
    #expect(try scene.text("a") == "old")
    try scene.expectOnly(["a"])
  }

  // holder                     this process
  // has stopped inside
  //                            only a moment to wait: names it
  @Test("A stopped holder is reported as such to an access that cannot wait for the grace")
  func stoppedHolder() throws {
    let holder = try scene.participant()
    #expect(try holder.ask("writing \(scene.path("a"))").hasPrefix("inside "))
    try holder.send(.stop)
    try holder.waitUntilStopped()
    let error = try #require(throws: WormholeError.self) {
      try FileCoordinator().coordinate(writingItemAt: scene.url("a"), until: .now) { _ in
        Issue.record("access was granted")
      }
    }
    #expect(error.holder?.processID == holder.processID && error.holder?.state == .stopped)
    try holder.send(.continue)
    #expect(try holder.ask("leave") == "done")
    try scene.expectOnly(["a"])
  }
}
