import FoundationEssentials
import Synchronization
import Testing
import Wormhole
import WormholeSystem
import WormholeTestSupport

@testable import WormholeFiles

/// TN2408: "a process that is suspended while it has access holds everybody up". Not here.
@Suite("A process suspended with access to an item", .blocking)
struct SuspensionTests {
  let scene: RaceScene

  init() throws {
    scene = try RaceScene()
    try scene.put("old", "a")
  }

  private func stop(_ participant: Participant) throws {
    try participant.send(.stop)
    try participant.waitUntilStopped()
  }

  // late                       reader                     taker
  // inside, has written
  // stopped
  //                            reads after the grace
  //                            nothing was taken away
  //                                                       after the grace: published
  // continues, leaves:
  // overtaken, by the taker
  @Test(
    "to change it delays readers and writers for the grace only, and the late one learns it",
    arguments: ["writing", "replacing", "merging", "moving", "metadata"])
  func writer(kind: String) throws {
    // The others have the item itself.
    let isCopying = !["moving", "metadata"].contains(kind)
    let late = try scene.participant()
    let taker = try scene.participant()
    #expect(try late.ask("\(kind) \(scene.path("a"))").hasPrefix("inside "))
    if isCopying { #expect(try late.ask("put late") == "done") }
    try stop(late)
    let before = try scene.entries("a")
    #expect(try taker.ask("reading \(scene.path("a")) read=yes") == "old")
    if isCopying { #expect(try scene.entries("a") == before, "a reader takes nothing away") }
    #expect(try taker.ask("writing \(scene.path("a")) put=taken") == "done")
    try late.send(.continue)
    let answer = try late.ask("leave")
    #expect(answer.hasPrefix("error overtaken "), "\(answer)")
    #expect(answer.contains("process \(taker.processID) (participant)"), "\(answer)")
    #expect(try scene.text("a") == "taken")
    if isCopying { try scene.takeKept("a", "late") }
    try scene.expectOnly(["a"])
  }

  @Test("to change it gets its change published if no other access wanted the item meanwhile")
  func nobodyElse() throws {
    let late = try scene.participant()
    #expect(try late.ask("writing \(scene.path("a"))").hasPrefix("inside "))
    #expect(try late.ask("put late") == "done")
    try stop(late)
    #expect(
      try FileCoordinator().coordinate(readingItemAt: scene.url("a")) {
        try ItemText.read($0.path)
      } == "old")
    try late.send(.continue)
    #expect(try late.ask("leave") == "done")
    #expect(try scene.text("a") == "late")
    try scene.expectOnly(["a"])
  }

  #if DEBUG
    // late                       this process
    // inside, has written
    // stopped
    //                            finds it overdue
    //                            looks once more, or takes over: before call N
    // continues, leaves: done
    //                            finds nobody
    @Test(
      "to change it may continue and leave at any moment of another process's look",
      arguments: [false, true])
    func leavesDuringLook(isTakeover: Bool) throws {
      for number in 0..<40 {
        let late = try scene.participant()
        #expect(try late.ask("writing \(scene.path("a"))").hasPrefix("inside "))
        #expect(try late.ask("put \(number)") == "done")
        try stop(late)
        let place = try ItemPath.find(scene.path("a"), followingLink: false).place
        let site = try #require(try ItemSite.openIfPermitted(place, isOwn: true))
        var survey = HolderSurvey()
        try eventually("the stopped process is overdue") {
          if case .overdue = try survey.look(at: site, { _ in true }) { true } else { false }
        }
        let before = try scene.text("a")
        let end = Mutex<String?>(nil)
        let leaving = Faults.Plan.acting(before: number) {
          try late.send(.continue)
          let answer = try late.ask("leave")
          end.withLock { $0 = answer }
        }
        try Faults.$plan.withValue(leaving) {
          _ =
            try isTakeover ? survey.takeOver(at: site) : survey.look(at: site) { _ in true } == nil
        }
        guard let answer = end.withLock(\.self) else { return }
        #expect(
          answer == "done" || isTakeover && answer.hasPrefix("error overtaken "),
          "before call \(number): \(answer)")
        #expect(try scene.text("a") == (answer == "done" ? "\(number)" : before))
        let found = try survey.look(at: site) { _ in true }
        #expect(found == nil, "before call \(number)")
        if answer != "done" { try scene.takeKept("a", "\(number)") }
        try scene.expectOnly(["a"])
      }
      Issue.record("it never ends")
    }
  #endif

  // late                       taker
  // waits for a lock on a
  // is stopped
  //                            takes a over: inside
  // the lock ends
  // continues: waits
  //                            publishes, leaves
  // inside
  @Test("while it waits for a program's lock begins again, and its accessor with it")
  func waiting() throws {
    let late = try scene.participant()
    let taker = try scene.participant()
    let program = try FileDescriptor.open(scene.path("a"), .readOnly)
    #expect(try program.tryLock(.shared))
    try late.tell("moving \(scene.path("a"))")
    try eventually("it waits for the lock") { try !scene.entries("a").isEmpty }
    try stop(late)
    #expect(try taker.ask("writing \(scene.path("a"))").hasPrefix("inside "))
    try program.unlock()
    try late.send(.continue)
    try scene.waitUntil(late, waitsFor: "a")
    #expect(try taker.ask("put taken") == "done")
    #expect(try taker.ask("leave") == "done")
    #expect(try late.answer().hasPrefix("inside "))
    #expect(try late.ask("read") == "taken")
    #expect(try late.ask("leave") == "done")
    try scene.expectOnly(["a"])
  }

  // reader                     publisher
  // has the file open, stopped
  //                            after the grace: published
  // continues, reads
  @Test("to read it is overtaken by a publication after the grace; a directory's gets an error")
  func reader() throws {
    try scene.makeFolder("d")
    try scene.put("old", "d/file")
    for (item, answer) in [("a", "done"), ("d", "error overtaken ")] {
      let late = try scene.participant()
      #expect(try late.ask("reading \(scene.path(item))").hasPrefix("inside "))
      try stop(late)
      let publisher = try scene.participant()
      let action = item == "a" ? "put=new" : "tree=other"
      #expect(try publisher.ask("replacing \(scene.path(item)) \(action)") == "done")
      try late.send(.continue)
      let last = try late.ask("leave")
      #expect(last.hasPrefix(answer), "\(item): \(last)")
    }
    #expect(try scene.text("a") == "new")
    #expect(try scene.names(in: "d") == ["other"])
    try scene.expectOnly(["a", "d"])
  }

  @Test("in a directory is overtaken by a process that replaces the directory")
  func directoryContents() throws {
    try scene.makeFolder("d")
    try scene.put("old", "d/file")
    let late = try scene.participant()
    let taker = try scene.participant()
    #expect(try late.ask("writing \(scene.path("d/file"))").hasPrefix("inside "))
    #expect(try late.ask("put late") == "done")
    try stop(late)
    #expect(try taker.ask("replacing \(scene.path("d")) tree=file,new") == "done")
    try late.send(.continue)
    let answer = try late.ask("leave")
    #expect(answer.hasPrefix("error overtaken "), "\(answer)")
    #expect(try scene.text("d/file") == "file")
    try scene.expectOnly(["file", "new"], in: "d")
    try scene.expectOnly(["a", "d"])
  }

  // late                       killed                     this process
  // inside, stopped
  //                            waits for it: killed
  //                                                       writes
  // continues: overtaken
  @Test("is overtaken by the next one if the first waiter was killed")
  func killedWaiter() throws {
    let late = try scene.participant()
    #expect(try late.ask("writing \(scene.path("a"))").hasPrefix("inside "))
    #expect(try late.ask("put late") == "done")
    let waiting = try scene.participant()
    try waiting.tell("writing \(scene.path("a")) put=killed")
    try scene.waitUntil(waiting, waitsFor: "a")
    try waiting.end()
    try stop(late)
    try FileCoordinator().coordinate(writingItemAt: scene.url("a")) {
      try ItemText.write("this", to: $0.path)
    }
    try late.send(.continue)
    let answer = try late.ask("leave")
    #expect(answer.hasPrefix("error overtaken "), "\(answer)")
    #expect(answer.contains("process \(Program.processID) "), "\(answer)")
    #expect(try scene.text("a") == "this")
    try scene.takeKept("a", "late")
    try scene.expectOnly(["a"])
  }

  @Test("or running longer than its term is overtaken as soon as another access wants the item")
  func term() throws {
    let late = try scene.participant()
    #expect(try late.ask("writing \(scene.path("a")) term=0.05").hasPrefix("inside "))
    #expect(try late.ask("put late") == "done")
    try FileCoordinator().coordinate(writingItemAt: scene.url("a")) {
      try ItemText.write("this", to: $0.path)
    }
    let answer = try late.ask("leave")
    #expect(answer.hasPrefix("error overtaken "), "\(answer)")
    #expect(try scene.text("a") == "this")
    try scene.takeKept("a", "late")
    try scene.expectOnly(["a"])
  }

  // owner                      this process
  // inside
  //                            is about to inherit its lock
  // killed
  //                            has the lock, as a child of the owner would
  @Test("A waiter for what its dead owner's child still has does not wake itself or other waiters")
  func child() throws {
    let owner = try scene.participant()
    #expect(try owner.ask("inplace \(scene.path("a"))").hasPrefix("inside "))
    let site = ItemSite.path(of: try ItemPath.find(scene.path("a"), followingLink: false).place)
    let name = try #require(try scene.entries("a").first)
    let held = try FileDescriptor.open(site + "/held", [.readOnly, .directory])
    try owner.end()
    try eventually("the owner's lock is free") { try held.tryLock(.exclusive) }
    let queue = try FileDescriptor.eventQueue()
    _ = try queue.addWatch(site + "/held/" + name, .closedWithoutWriting)
    for kind in [AccessKind.locking, .content, .reading] {
      let acquisition = ItemAcquisition(
        try ItemPath.find(scene.path("a"), followingLink: false).place, kind,
        under: AccessTerms(purpose: "other", term: .seconds(60), until: .now + .seconds(600)))
      // Three looks, so that everything is open that stays open.
      for _ in 0..<3 { _ = try acquisition.step() }
      _ = try queue.takeEvents { _, _ in }
      for _ in 0..<3 { _ = try acquisition.step() }
      var closings = 0
      _ = try queue.takeEvents { _, _ in closings += 1 }
      #expect(closings == 0, "\(kind)")
    }
  }
}
