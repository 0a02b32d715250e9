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
}
