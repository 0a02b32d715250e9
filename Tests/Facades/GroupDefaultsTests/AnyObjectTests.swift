import Testing
import WormholeTestSupport

/// The helpers did not compile: only `UserDefaults` had these methods, and the file's `NSObject` was ambiguous.
@Suite("Helpers that take any object", .blocking)
struct AnyObjectTests {
  @Test("observe defaults, and read and set values by their keys")
  func helpers() throws {
    let directory = try TemporaryDirectory()
    let client = try Participant(directory.path, environment: ["XDG_DATA_HOME=\(directory.path)"])
    #expect(try client.ask("settings object defaults") == "goal 1, goal 10")
    // An object of the app: its stored properties are found, and what cannot be is its own concern.
    #expect(
      try client.ask("settings object settings")
        == "goal 10; unknown goal; title nil, then Optional(\"tea\"); none nil")
  }
}
