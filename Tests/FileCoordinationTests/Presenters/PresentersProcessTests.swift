import AppGroup
import PropertyLists
import SystemCalls
import TestScopes
import TestSupport
import Testing

@testable import FileCoordination

@Suite("Presenters of other processes", .blocking)
struct PresentersProcessTests {
  let scene: PresenterScene

  init() throws {
    scene = try PresenterScene()
    try scene.shell("mkdir d; echo 1 > d/file")
  }

  private func participant() throws -> Participant { try Participant(scene.directory.path) }

  private func waitFor(_ line: String, _ other: Participant, _ name: String) throws {
    try eventually("\(name) hears \(line)") {
      try other.ask("heard \(scene.path(name))").split(separator: " ").contains { $0 == line }
    }
  }

  @Test(
    "are asked what each access needs of them",
    arguments: [
      (PresenterDemand.Kind.reading(savesChanges: true), "d/file", "reader save"),
      (.reading(savesChanges: false), "d/file", "reader"), (.writing(.content), "d/file", "writer"),
      (.writing(.metadata), "d/file", "writer"), (.writing(.merging), "d/file", "save writer"),
      (.writing(.deleting), "d/file", "writer deletion"),
      (.writing(.replacing), "d", "writer deletion"), (.writing(.moving), "d", "writer"),
      (.writing(.content), "d", ""), (.writing(.content), "other", ""),
    ])
  func rows(_ kind: PresenterDemand.Kind, _ name: String, _ lines: String) throws {
    let other = try participant()
    #expect(try other.ask("present \(scene.path("d/file"))") == "done")
    let conversation = try scene.ask(kind, name)
    #expect(try other.ask("heard \(scene.path("d/file"))") == lines)
    #expect(conversation.silent.isEmpty)
    conversation.finish(published: [:])
  }

  @Test("of directories above are asked about a deletion, with what is to be deleted")
  func above() throws {
    let other = try participant()
    _ = try other.ask("present \(scene.path(""))")
    let conversation = try scene.ask(.writing(.deleting), "d/file")
    #expect(try other.ask("heard \(scene.path(""))") == "deletion:file")
    conversation.finish(published: [:])
  }

  @Test("get their item back when the access is over, each once")
  func reacquiring() throws {
    let other = try participant()
    _ = try other.ask("present \(scene.path("d/file")) reacquires")
    let first = try scene.ask(.reading(savesChanges: false), "d/file")
    let second = try scene.ask(.reading(savesChanges: false), "d/file")
    first.finish(published: [:])
    try waitFor("reacquired", other, "d/file")
    #expect(try other.ask("heard \(scene.path("d/file"))") == "reader reader reacquired")
    second.finish(published: [:])
    try eventually("also from the second") {
      try other.ask("heard \(scene.path("d/file"))") == "reader reader reacquired reacquired"
    }
    #expect(try scene.requests().isEmpty)
  }

  @Test("get it back when the coordinator's process is killed, and what it left is removed")
  func coordinatorDies() throws {
    let presenting = try participant()
    let coordinating = try participant()
    _ = try presenting.ask("present \(scene.path("d/file")) reacquires")
    #expect(try coordinating.ask("ask content \(scene.path("d/file"))") == "begun")
    #expect(try presenting.ask("heard \(scene.path("d/file"))") == "writer")
    try coordinating.end()
    try waitFor("reacquired", presenting, "d/file")
    try eventually("its request is gone") { try scene.requests().isEmpty }
    #expect(try presenting.ask("heard \(scene.path("d/file"))") == "writer reacquired")
  }

  @Test("that refuse end the access before it begins, and are named")
  func refusing() throws {
    let other = try participant()
    _ = try other.ask("present \(scene.path("d/file")) refuses")
    let error = try #require(
      #expect(throws: PresenterError.self) {
        try scene.ask(.reading(savesChanges: true), "d/file")
      })
    #expect(error.description.contains("process \(other.processID)"))
    #expect(error.description.contains("not now"))
    #expect(try scene.requests().isEmpty)
  }

  @Test("that are stopped are named, and do nothing out of date when they go on")
  func suspended() throws {
    let other = try participant()
    _ = try other.ask("present \(scene.path("d/file")) reacquires")
    try other.send(.stop)
    try other.waitUntilStopped()
    let conversation = try scene.ask(.writing(.content), "d/file")
    #expect(conversation.silent.map(\.state) == [.suspended])
    #expect(conversation.silent.map(\.processID) == [other.processID])
    conversation.finish(published: [:])
    try other.send(.continue)
    try scene.shell("echo others > d/file")
    try waitFor("changed", other, "d/file")
    #expect(try other.ask("heard \(scene.path("d/file"))").contains("writer") == false)
  }

  @Test("that do not answer are named, those that die or leave while they are asked are not")
  func silent() throws {
    let (mute, leaving, dying) = (try participant(), try participant(), try participant())
    _ = try mute.ask("present \(scene.path("d/file")) isSilent")
    _ = try leaving.ask("present \(scene.path("d/file")) leaves")
    _ = try dying.ask("present \(scene.path("d/file")) isSilent")
    let asking = try participant()
    try asking.tell("ask content \(scene.path("d/file"))")
    try waitFor("writer", dying, "d/file")
    try dying.end()
    #expect(try asking.answer() == "begun running")
    #expect(try leaving.ask("heard \(scene.path("d/file"))") == "writer")
  }

  @Test("that are dead are not asked at all")
  func dead() throws {
    let other = try participant()
    _ = try other.ask("present \(scene.path("d/file")) isSilent")
    try other.end()
    let conversation = try scene.ask(.writing(.content), "d/file")
    #expect(conversation.silent.isEmpty)
    #expect(try scene.requests().isEmpty)
    conversation.finish(published: [:])
  }

  @Test("hear of a coordinated move where the watch cannot tell, and then live at the new place")
  func moves() throws {
    let other = try participant()
    _ = try other.ask("present \(scene.path("d/file"))")
    _ = try other.ask("present \(scene.path(""))")
    let moving = try scene.ask(.writing(.moving), "d/file")
    // A copy and a removal: another file, which only the mover knows to be the same item.
    try scene.shell("cp d/file ../moved; rm d/file")
    PresenterConversation.tellMoved(
      from: scene.path("d/file"), to: scene.directory.path + "/moved", by: PresenterScene.client())
    moving.finish(published: [:])
    try waitFor("moved:moved", other, "d/file")
    try waitFor("moved:file:moved", other, "")
    try eventually("its new place is known to all") {
      try scene.site.members().contains { $0.path.text == scene.directory.path + "/moved" }
    }
    try eventually("nobody has to be told any more") { try scene.requests().isEmpty }
    let conversation = try PresenterConversation.begin(
      [PresenterDemand(path: scene.directory.path + "/moved", kind: .writing(.content))],
      for: PresenterScene.client(), until: .now + .seconds(20))
    try waitFor("writer", other, "d/file")
    conversation.finish(published: [:])
  }

  @Test("are asked although what is at the place of the requests is no request, or damaged")
  func junk() throws {
    let other = try participant()
    _ = try other.ask("present \(scene.path("d/file"))")
    let value = scene.container.value("file-presenters")
    let stranger = try participant()
    _ = try stranger.ask("enter file-presenters text")
    let junk: [PropertyListValue] = [
      "text", 7, [],
      [
        "a": 1, "b": ["coordinator": "x"],
        "c": ["coordinator": 3, "presenters": [:], "demands": []],
        "d": ["coordinator": "dead", "presenters": ["x": "asked"], "demands": [["path": "/"]]],
        "e": ["coordinator": "dead", "presenters": [], "movedFrom": "a", "movedTo": "/b"],
      ],
    ]
    for content in junk {
      try value.replace(with: content)
      try scene.ask(.writing(.content), "d/file").finish(published: [:])
    }
    try value.replace(withBytes: Array("<plist><dict>".utf8))
    try scene.ask(.writing(.content), "d/file").finish(published: [:])
    #expect(
      try other.ask("heard \(scene.path("d/file"))")
        == Array(repeating: "writer", count: junk.count + 1).joined(separator: " "))
    #expect(try scene.requests().isEmpty)
    withExtendedLifetime(stranger) {}
  }

  @Test("are told nothing of requests of a coordinator that is not there")
  func deadCoordinator() throws {
    let other = try participant()
    _ = try other.ask("present \(scene.path("d/file"))")
    let id = try #require(try scene.site.members().first?.id)
    let demands = [PresenterDemand(path: scene.path("d/file"), kind: .writing(.content))]
    let request = PresenterRequest(
      coordinator: "nobody", subject: .access(demands), answers: [id: .asked])
    try scene.site.book.change { $0["stale"] = request }
    try eventually("it is removed") { try scene.requests().isEmpty }
    #expect(try other.ask("heard \(scene.path("d/file"))") == "")
  }
}

@Suite("A presenter", .blocking)
struct PresentersWakeUpTests {
  @Test("costs no wake-up for what happens beside its item and above it")
  func beside() throws {
    let scene = try PresenterScene()
    try scene.shell("mkdir d; echo 1 > file")
    let other = try Participant(scene.directory.path)
    for name in ["d", "file"] { _ = try other.ask("present \(scene.path(name))") }
    // The events of its own beginning are over when this one, which comes later, is told.
    try scene.shell("echo > d/first")
    try eventually("it hears") {
      try other.ask("heard \(scene.path("d"))").contains("appeared:first")
    }
    let before = try #require(Int(try other.ask("wakeups -")))
    try scene.shell("for i in $(seq 500); do echo > beside$i; mv beside$i ../beside; done")
    try scene.shell("echo > d/last")
    try eventually("it hears") {
      try other.ask("heard \(scene.path("d"))").contains("appeared:last")
    }
    let after = try #require(Int(try other.ask("wakeups -")))
    // Those of two writes in d, each a few events.
    #expect(after - before < 20)
  }
}

extension PresenterScene {
  var site: PresenterSite { PresenterSites.asking([ItemPath(directory.path)])[0] }

  func requests() throws -> RequestBook.Requests { try site.book.requests() }
}
