import Testing
import WormholeSystem
import WormholeTestSupport

@Suite("UserDefaults(suiteName:) after one import", .blocking, .bothEngines)
struct UserDefaultsTests {
  // Each of the two processes runs the client, which imports Foundation.
  @Test("is shared by processes, and posts the changes of its own")
  func shared() throws {
    let directory = try TemporaryDirectory()
    let home = try directory.groups
    let app = try Participant("group:com.example.any", environment: home)
    let widget = try Participant("group:com.example.any", environment: home)
    #expect(try app.ask("settings show") == "nobody 10000 0.75 m, 0 changes")
    #expect(try widget.ask("settings goal 12000") == "nobody 12000 0.75 m, 1 changes")
    #expect(try app.ask("settings show") == "nobody 12000 0.75 m, 0 changes")
    #expect(try app.ask("settings name Ada") == "Ada 12000 0.75 m, 1 changes")
    #expect(try widget.ask("settings imperial") == "Ada 12000 0.75 ft, 2 changes")
    #expect(try app.ask("settings reset") == "nobody 10000 0.75 m, 4 changes")
    #expect(try widget.ask("settings show") == "nobody 10000 0.75 m, 2 changes")
  }

  @Test("has subclasses and identity, and booleans that are numbers")
  func objects() throws {
    let directory = try TemporaryDirectory()
    let app = try Participant("group:com.example.any", environment: directory.groups)
    #expect(
      try app.ask("settings accounts") == "5 true /tmp, 3 false true, 1 true [1, 2]")
  }

  @Test("tells observers of its own changes before they return, and of other processes'")
  func observing() throws {
    let directory = try TemporaryDirectory()
    let home = try directory.groups
    let app = try Participant("group:com.example.any", environment: home)
    let widget = try Participant("group:com.example.any", environment: home)
    var heard = "volume 0 -1"
    #expect(try app.ask("settings observe") == heard)
    heard += "; volume -1 5; property 5"
    #expect(try app.ask("settings volume 5") == heard)
    #expect(try app.ask("settings volume 5") == heard)
    heard += "; title tea"
    #expect(try app.ask("settings title tea") == heard)
    _ = try widget.ask("settings volume 7")
    heard += "; volume 5 7 elsewhere; property 7 elsewhere"
    try eventually("the other's change is reported") { try app.ask("settings heard") == heard }
    _ = try widget.ask("settings title")
    heard += "; title none elsewhere"
    try eventually("the removal is reported") { try app.ask("settings heard") == heard }
    // The queue may still look at the removal, and then reports one of these changes, or both.
    heard += "; volume 7 8; property 8"
    func changes(_ text: String) -> [String] {
      text.replacing(" elsewhere", with: "").split(separator: "; ").map(String.init).sorted()
    }
    _ = try app.ask("settings volume 8")
    do {
      try eventually("its own change is reported") {
        changes(try app.ask("settings heard")) == changes(heard)
      }
    } catch {
      Issue.record("it heard \(try app.ask("settings heard")), and not \(heard)")
      throw error
    }
    let last = try app.ask("settings stop")
    #expect(try app.ask("settings volume 9") == last)
  }

  @Test("tells observers of the last value, even if another one had been reported in between")
  func changedBack() throws {
    let directory = try TemporaryDirectory()
    let app = try Participant("group:com.example.any", environment: directory.groups)
    #expect(try app.ask("settings changedBack") == "1")
  }
}
