import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import WormholeFiles

@Suite("Presenters of other processes", .blocking)
struct PresentersProcessTests {
  let scene: PresenterScene

  init() throws {
    scene = try PresenterScene(seesMessages: true)
    try scene.shell("mkdir d; echo 1 > d/file")
  }

  private func participant() throws -> Participant { try Participant(scene.directory.path) }

  private func waitFor(_ line: String, _ other: Participant, _ name: String) throws {
    try eventually("\(name) hears \(line)") {
      try other.ask("heard \(scene.path(name))").split(separator: " ").contains { $0 == line }
    }
  }

  @Test(
    "get the requests that each access requires",
    arguments: [
      (AccessKind.reading, "d/file", "reader save"),
      (.readingWithoutChanges, "d/file", "reader"), (.content, "d/file", "writer"),
      (.metadata, "d/file", "writer"), (.merging, "d/file", "save writer"),
      (.deleting, "d/file", "writer deletion"),
      (.replacing, "d", "writer deletion"), (.moving, "d", "writer"),
      (.content, "d", ""), (.content, "other", ""),
    ])
  func rows(_ kind: AccessKind, _ name: String, _ lines: String) throws {
    let other = try participant()
    #expect(try other.ask("present \(scene.path("d/file"))") == "done")
    let conversation = try scene.ask(kind, name)
    #expect(try other.ask("heard \(scene.path("d/file"))") == lines)
    #expect(conversation.silent.isEmpty)
    conversation.finish(published: [:])
  }

  @Test("of parent directories are asked about a deletion, with the item to be deleted")
  func above() throws {
    let other = try participant()
    _ = try other.ask("present \(scene.path(""))")
    let conversation = try scene.ask(.deleting, "d/file")
    #expect(try other.ask("heard \(scene.path(""))") == "deletion:file")
    conversation.finish(published: [:])
  }

  @Test("get their item back when the access is over, each once")
  func reacquiring() throws {
    let other = try participant()
    _ = try other.ask("present \(scene.path("d/file")) reacquires")
    let first = try scene.ask(.readingWithoutChanges, "d/file")
    let second = try scene.ask(.readingWithoutChanges, "d/file")
    first.finish(published: [:])
    try waitFor("reacquired", other, "d/file")
    #expect(try other.ask("heard \(scene.path("d/file"))") == "reader reader reacquired")
    second.finish(published: [:])
    try eventually("also from the second") {
      try other.ask("heard \(scene.path("d/file"))") == "reader reader reacquired reacquired"
    }
    try scene.waitUntilRead()
  }

  @Test("get it back when the coordinator's process is killed, and its leftovers are removed")
  func coordinatorDies() throws {
    let presenting = try participant()
    let coordinating = try participant()
    _ = try presenting.ask("present \(scene.path("d/file")) reacquires")
    #expect(try coordinating.ask("ask content \(scene.path("d/file"))") == "begun")
    #expect(try presenting.ask("heard \(scene.path("d/file"))") == "writer")
    try coordinating.end()
    try waitFor("reacquired", presenting, "d/file")
    try scene.waitUntilRead()
    #expect(try presenting.ask("heard \(scene.path("d/file"))") == "writer reacquired")
  }

  @Test("that refuse end the access before it begins, and are named")
  func refusing() throws {
    let other = try participant()
    _ = try other.ask("present \(scene.path("d/file")) refuses")
    let error = try #require(
      #expect(throws: PresenterError.self) {
        try scene.ask(.reading, "d/file")
      })
    #expect(error.description.contains("process \(other.processID)"))
    #expect(error.description.contains("not now"))
    try scene.waitUntilRead()
  }

  @Test("that are stopped are named, and do nothing outdated when they continue")
  func suspended() throws {
    let other = try participant()
    _ = try other.ask("present \(scene.path("d/file")) reacquires")
    try other.send(.stop)
    try other.waitUntilStopped()
    let conversation = try scene.ask(.content, "d/file")
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
    let conversation = try scene.ask(.content, "d/file")
    #expect(conversation.silent.isEmpty)
    #expect(try scene.unread().isEmpty)
    conversation.finish(published: [:])
  }

  @Test("get a coordinated move before they get their item back")
  func movesBeforeReacquiring() throws {
    let other = try participant()
    for turn in 1...20 {
      let (old, new) = ("d/\(turn)", "d/moved\(turn)")
      try scene.shell("echo 1 > \(old)")
      _ = try other.ask("present \(scene.path(old)) reacquires")
      let moving = try scene.ask(.moving, old)
      try scene.shell("cp \(old) \(new); rm \(old)")
      PresenterConversation.reportMove(from: scene.path(old), to: scene.path(new), by: nil)
      moving.finish(published: [:])
      try waitFor("reacquired", other, old)
      let heard = try other.ask("heard \(scene.path(old))").split(separator: " ")
      #expect(heard.filter { $0 != "changed" } == ["writer", "moved:moved\(turn)", "reacquired"])
    }
  }

  @Test("get a coordinated move that the watch cannot detect, and then follow the new place")
  func moves() throws {
    let other = try participant()
    _ = try other.ask("present \(scene.path("d/file"))")
    _ = try other.ask("present \(scene.path(""))")
    let moving = try scene.ask(.moving, "d/file")
    // A copy and a removal: a different file, and only the mover knows that it is the same item.
    try scene.shell("cp d/file ../moved; rm d/file")
    PresenterConversation.reportMove(
      from: scene.path("d/file"), to: scene.directory.path + "/moved", by: nil)
    moving.finish(published: [:])
    try waitFor("moved:moved", other, "d/file")
    try waitFor("moved:file:moved", other, "")
    try eventually("its new place is known to all") {
      try scene.site.members().contains { $0.path.text == scene.directory.path + "/moved" }
    }
    try scene.waitUntilRead()
    let conversation = try PresenterConversation.begin(
      [PresenterDemand(path: ItemPath(scene.directory.path + "/moved"), kind: .content)],
      for: nil, until: .now + .seconds(20))
    try waitFor("writer", other, "d/file")
    conversation.finish(published: [:])
  }

  @Test("get a move whose mover has ended, also when they were stopped meanwhile")
  func movesOfTheDead() throws {
    let (other, moving) = (try participant(), try participant())
    _ = try other.ask("present \(scene.path("d/file"))")
    try other.send(.stop)
    try other.waitUntilStopped()
    try scene.shell("cp d/file ../moved; rm d/file")
    _ = try moving.ask("moved \(scene.path("d/file")) \(scene.directory.path)/moved")
    try moving.end()
    try other.send(.continue)
    try waitFor("moved:moved", other, "d/file")
  }

  @Test("are asked although there are foreign registrations and messages")
  func junk() throws {
    let other = try participant()
    _ = try other.ask("present \(scene.path("d/file"))")
    let stranger = try participant()
    _ = try stranger.ask("enter file-presenters text")
    let foreign: PropertyListValue = [
      "presenter": "x", "path": "relative", "mailbox": "../elsewhere",
    ]
    let registration = try scene.container.own.presence("file-presenters").enter(content: foreign)
    let presenter = try #require(try scene.site.members().first)
    let outlet = try #require(scene.container.mailboxWriter(to: presenter.mailbox))
    let id = PropertyListValue.string(presenter.id)
    let junk: [PropertyListValue] = [
      "text", 7, [], ["presenter": 3, "demands": []],
      ["presenter": id, "demands": [["path": "/"]]],
      ["presenter": "nobody", "demands": []], ["presenter": id, "demands": 1],
      ["presenter": id, "movedFrom": "a", "movedTo": "/b"],
    ]
    let asking = CallEndpoint(in: scene.container) { _ in }
    let replyTo = PropertyListValue.string(try asking.open())
    for (number, value) in junk.enumerated() {
      var request: PropertyListValue = [
        "kind": "request", "id": PropertyListValue(UInt64(number)), "replyTo": replyTo,
        "value": value,
      ]
      Expiry.never.write(into: &request)
      for message in [value, request, ["kind": "notice", "value": value]] {
        #expect(try outlet.post(message) == .posted)
      }
      try scene.ask(.content, "d/file").finish(published: [:])
    }
    #expect(
      try other.ask("heard \(scene.path("d/file"))")
        == Array(repeating: "writer", count: junk.count).joined(separator: " "))
    try scene.waitUntilRead()
    withExtendedLifetime((stranger, registration, asking)) {}
  }

  @Test("do not get the requests of a coordinator that is gone")
  func deadCoordinator() throws {
    let other = try participant()
    _ = try other.ask("present \(scene.path("d/file"))")
    let presenter = try #require(try scene.site.members().first)
    let demand: PropertyListValue = ["path": .string(scene.path("d/file")), "for": "content"]
    var request: PropertyListValue = [
      "kind": "request", "id": 1, "replyTo": "0-0",
      "value": ["presenter": .string(presenter.id), "demands": [demand]],
    ]
    Expiry.never.write(into: &request)
    let outlet = try #require(scene.container.mailboxWriter(to: presenter.mailbox))
    #expect(try outlet.post(request) == .posted)
    try scene.waitUntilRead()
    #expect(try other.ask("heard \(scene.path("d/file"))") == "")
  }
}

@Suite("A presenter", .blocking)
struct PresentersWakeUpTests {
  @Test("causes no wake-up for changes beside its item and above it")
  func beside() throws {
    let scene = try PresenterScene()
    try scene.shell("mkdir d; echo 1 > file")
    let other = try Participant(scene.directory.path)
    for name in ["d", "file"] { _ = try other.ask("present \(scene.path(name))") }
    // The events of its own start are over when this later one is reported.
    try scene.shell("echo > d/first")
    try eventually("it is called") {
      try other.ask("heard \(scene.path("d"))").contains("appeared:first")
    }
    let before = try #require(Int(try other.ask("wakeups -")))
    try scene.shell("for i in $(seq 500); do echo > beside$i; mv beside$i ../beside; done")
    try scene.shell("echo > d/last")
    try eventually("it is called") {
      try other.ask("heard \(scene.path("d"))").contains("appeared:last")
    }
    let after = try #require(Int(try other.ask("wakeups -")))
    // Those of two writes in d, a few events each.
    #expect(after - before < 20)
  }
}

extension PresenterScene {
  var site: PresenterSite { PresenterSite.asking([ItemPath(directory.path)])[0] }

  /// The messages that wait in mailboxes of living processes.
  func unread() throws -> [String] {
    let mailboxes = directory.path + "/" + ContainerFormat.mailboxes
    let dead = Set(try MailboxDirectory.dead(in: container.root))
    return try names(mailboxes).filter { !dead.contains(ContainerFormat.mailboxes + "/" + $0) }
      .flatMap { try names(mailboxes + "/" + $0) }.filter { $0 != "owner" && $0 != "wire" }
  }

  func waitUntilRead() throws {
    try eventually("all messages are read") { try unread().isEmpty }
  }

  private func names(_ path: String) throws(Errno) -> [String] {
    try ifPresent(
      FileDescriptor.open(path, [.readOnly, .directory]).remainingEntries().map(\.name.text)) ?? []
  }
}
