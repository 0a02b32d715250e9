import Foundation
import Testing
import WormholeTestSupport

/// The code of `Clients` is compiled unchanged in the mode of Swift 5.
@Suite("Code written for MMWormhole", .blocking, .bothEngines)
struct ClientsTests {
  let scene: AppScene

  init() throws { scene = try AppScene() }

  @Test("passes strings, dictionaries and objects of its own between processes")
  func forms() throws {
    let (app, widget) = (try scene.start(), try scene.start())
    #expect(try widget.mm("listen a") == "done")
    let forms = [
      ("text", "tea"), ("string", "tea"), ("value", "value:true"), ("message", "tea:3:1.5"),
      ("alarm", "alarm:tea:7"), ("alarms", "tea:1+tea:2"), ("nothing", "nil"),
    ]
    for (index, form) in forms.enumerated() {
      #expect(try app.mm("pass a \(form.0) tea") == "done")
      #expect(try app.mm("read a") == form.1)
      let heard = try widget.mm("heard \(index + 1)").split(separator: " ").map(String.init)
      #expect(heard == forms[...index].map(\.1))
    }
    #expect(try widget.mm("stop a") == "done")
    #expect(try app.mm("pass a text late") == "done")
    #expect(try widget.mm("listen b") == "done")
    #expect(try app.mm("pass b text tea") == "done")
    let heard = try widget.mm("heard \(forms.count + 1)")
    #expect(!heard.contains("late") && heard.hasSuffix(" tea"))
    #expect(try app.mm("clear b") == "done")
    #expect(try widget.mm("read b") == "nil")
    #expect(try widget.mm("clear all") == "done")
    #expect(try app.mm("read a") == "nil")
  }

  @Test("shares its messages with the command, and an archive is a property list, too")
  func command() throws {
    let app = try scene.start()
    #expect(try app.mm("pass a message tea") == "done")
    #expect(
      try scene.wormhole("read", "wormhole/a")
        == #"{"alarms":[{"amount":1.5,"index":3,"title":"tea"}]}"#)
    #expect(try app.mm("pass a alarm tea") == "done")
    let archive = try scene.wormhole("read", "wormhole/a")
    #expect(archive.contains(#""$archiver":"NSKeyedArchiver""#), "\(archive)")
    #expect(archive.contains(#""WormholeMessageClients.Alarm""#), "\(archive)")
    #expect(try app.mm("listen b") == "done")
    #expect(try scene.wormhole("send", "wormhole/b", #"{"value":true}"#) == "")
    #expect(try app.mm("heard 1") == "value:true")
  }

  @Test(
    "has its directory in the group's container, where it may keep files",
    .onlyDirectories("on etcd it is this machine's"))
  func directory() throws {
    let app = try scene.start()
    let path = try app.mm("directory -")
    #expect(path == scene.container + "/wormhole")
    var isDirectory: ObjCBool = false
    #expect(FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory))
    #expect(isDirectory.boolValue)
    #expect(try scene.wormhole("doctor").withoutInotifyWarning == "nothing wrong")
  }

  @Test("stores messages with a messenger of its own, and hears of them in other processes")
  func customFiles() throws {
    let (app, widget) = (try scene.start(), try scene.start())
    // A value of an earlier version of the app stays, and is not taken for the message.
    #expect(try app.mm("pass a text old") == "done")
    for side in [app, widget] { #expect(try side.mm("use json") == "done") }
    #expect(try widget.mm("listen a") == "done")
    #expect(try app.mm("pass a text tea") == "done")
    #expect(try widget.mm("heard 1") == "tea")
    // On etcd this machine's directory, which both processes share.
    let file = try app.mm("directory -") + "/a.archive"
    #expect(try String(contentsOfFile: file, encoding: .utf8) == #"{"message":"tea"}"#)
    #expect(try app.mm("clear a") == "done")
    #expect(!FileManager.default.fileExists(atPath: file))
    #expect(try app.mm("pass b text tea") == "done")
    #expect(try widget.mm("clear all") == "done")
    #expect(try app.mm("read b") == "nil")
  }

  // The receiver observes both the value and the notification, and only one of them may come.
  @Test("hears each message once, whichever kind of messenger the other process has")
  func mixedKinds() throws {
    let (app, widget) = (try scene.start(), try scene.start())
    let kinds = ["counting", "file", "own"]
    var expected: [String] = []
    #expect(try widget.mm("listen a") == "done")
    for (index, kind) in kinds.enumerated() {
      if kind != "own" { #expect(try app.mm("use \(kind)") == "done") }
      #expect(try app.mm("pass a text \(index)") == "done")
      expected.append("\(index)")
      #expect(try widget.mm("heard \(index + 1)") == expected.joined(separator: " "))
    }
    // The control's own notification comes after those that would be too many.
    #expect(try app.mm("pass a nothing -") == "done")
    #expect(try widget.mm("heard \(kinds.count + 1)") == expected.joined(separator: " ") + " nil")
  }

  @Test("keeps messages in one process, and outside every group")
  func otherPlaces() throws {
    let (app, widget) = (try scene.start(), try scene.start())
    #expect(try app.mm("use memory") == "done")
    #expect(try app.mm("listen a") == "done")
    #expect(try app.mm("pass a alarm tea") == "done")
    #expect(try app.mm("heard 1") == "alarm:tea:7")
    #expect(try widget.mm("read a") == "nil")

    let place = scene.directory.path + "/outside"
    try FileManager.default.createDirectory(
      atPath: place, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o755])
    for side in [app, widget] { #expect(try side.mm("use temporary \(place)") == "done") }
    #expect(try widget.mm("listen a") == "done")
    #expect(try app.mm("pass a text eggs") == "done")
    #expect(try widget.mm("heard 1") == "eggs")
    #expect(try widget.mm("read a") == "eggs")
    #expect(try widget.mm("clear a") == "done")
    #expect(try app.mm("read a") == "nil")
  }

  @Test("runs on a phone and a watch through the session")
  func phoneAndWatch() throws {
    let phone = try scene.start("WATCHCONNECTIVITY_ROLE=phone")
    let watch = try scene.start("WATCHCONNECTIVITY_ROLE=watch")
    #expect(try phone.mm("session phone") == "done")
    #expect(try watch.mm("session watch") == "reachable")
    #expect(try watch.mm("current -") == " none")

    // A message asks, the context answers.
    #expect(try watch.mm("cancel 0") == "done")
    #expect(try phone.mm("serve 1") == "[0]")
    #expect(try watch.mm("titles 1") == "eggs")
    #expect(try watch.mm("current -") == "eggs none")

    // A file is kept by the listening session's messenger.
    #expect(try phone.mm("picture 100000") == "done")
    #expect(try watch.mm("pictures 1") == "100000")
    #expect(try watch.mm("current -") == "eggs 100000")
    try eventually("the file on its way is removed") {
      try FileManager.default.contentsOfDirectory(atPath: scene.directory.path)
        .allSatisfy { !$0.hasPrefix("wormhole-content-message-") }
    }

    // The context has all identifiers, and only what is new in it is heard.
    #expect(try phone.mm("note eggs-are-ready") == "done")
    #expect(try watch.mm("notes 1") == "eggs-are-ready")
    #expect(try watch.mm("titles 1") == "eggs")
  }

  @Test("finds the context in a watch that starts later")
  func later() throws {
    let phone = try scene.start("WATCHCONNECTIVITY_ROLE=phone")
    #expect(try phone.mm("session phone") == "done")
    try eventually("the session is activated and takes the context") {
      _ = try phone.mm("alarms -")
      return try scene.wormhole("peer", "context", "watch", "--from", "phone").contains("tea")
    }
    let watch = try scene.start("WATCHCONNECTIVITY_ROLE=watch")
    #expect(try watch.mm("session watch") == "reachable")
    #expect(try watch.mm("titles 1") == "tea+eggs")
  }
}
