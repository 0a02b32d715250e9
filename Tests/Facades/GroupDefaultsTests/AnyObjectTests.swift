import Testing
import WormholeDefaultsClients
import WormholeTestSupport

/// The helpers did not compile: only `UserDefaults` had these methods, and the file's `NSObject` was ambiguous.
@Suite("Helpers that take any object", .blocking)
struct AnyObjectTests {
  @Test("observe defaults, and read and set values by their keys")
  func helpers() throws {
    let directory = try TemporaryDirectory()
    let defaults = try #require(UserDefaults(suiteName: "helpers-\(directory.path.hashValue)"))
    defer { defaults.removePersistentDomain(forName: "helpers-\(directory.path.hashValue)") }
    let (listener, settings) = (Listener(), Settings())
    defaults.set(1, forKey: "goal")
    AnyObjectHelpers.begin(listener, of: defaults, "goal")
    AnyObjectHelpers.copy("goal", from: settings, to: defaults, "goal")
    AnyObjectHelpers.end(listener, of: defaults, "goal")
    defaults.set(3, forKey: "goal")
    #expect(listener.heard == ["goal 1", "goal 10"])
    // An object of the app: its stored properties are found, and what cannot be is its own concern.
    AnyObjectHelpers.begin(listener, of: settings, "goal")
    AnyObjectHelpers.copy("goal", from: defaults, to: settings, "goal")
    AnyObjectHelpers.end(listener, of: settings, "goal")
    #expect(listener.heard.last == "goal 10" && settings.unknown == ["goal"])
    #expect(settings.value(forKey: "title") == nil && settings.value(forKey: "none") == nil)
    settings.title = "tea"
    #expect(settings.value(forKey: "title") as? String == "tea")
  }
}
