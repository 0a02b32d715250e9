import GroupDefaults
import Testing
import Wormhole
import WormholePropertyLists
import WormholeTestSupport

@Suite("Defaults with types of the program", .blocking, .bothEngines)
struct TypedDefaultsTests {
  let scene: DefaultsScene
  let volume = DefaultsKey("volume", default: 5)

  struct Settings: Codable, Equatable, Sendable {
    var volume: Int
    var name: String?
    var films: [String]?
  }

  init() throws { scene = try DefaultsScene() }

  @Test("have keys with a type and a default")
  func keys() throws {
    let defaults = scene.defaults
    #expect(defaults[volume] == 5)
    defaults[volume] += 1
    #expect(defaults[volume] == 6 && defaults.integer(forKey: "volume") == 6)
    #expect(try defaults.update(volume) { $0 += 10 } == ())
    #expect(defaults[volume] == 16)
    let films = DefaultsKey("films", default: ["Metropolis"])
    try defaults.update(films) { $0.append("M") }
    #expect(defaults[films] == ["Metropolis", "M"])
    #expect(scene.reported() == [])
  }

  @Test("report a value of another shape, and then have the default")
  func shape() throws {
    scene.defaults.set("loud", forKey: "volume")
    #expect(scene.defaults[volume] == 5)
    let reported = scene.reported()
    #expect(reported.count == 1 && reported[0].contains("volume"), "\(reported)")
    #expect(throws: WormholeError.self) { try scene.defaults.update(volume) { $0 += 1 } }
    #expect(scene.defaults.string(forKey: "volume") == "loud")
  }

  @Test("are properties that processes share")
  func wrapper() throws {
    struct Player {
      @Default var volume: Int
      init(_ defaults: GroupDefaults) { _volume = Default(wrappedValue: 7, "volume", in: defaults) }
    }
    let player = Player(scene.defaults)
    #expect(player.volume == 7 && player.$volume.key.name == "volume")
    player.volume = 8
    let other = try scene.participant()
    #expect(try other.ask("defaults-add volume 2") == "done")
    #expect(player.volume == 10)
  }

  @Test("are a whole suite; keys that the type lacks are kept")
  func suite() throws {
    let defaults = scene.defaults
    #expect(try defaults.readSuite(as: Settings.self) == nil)
    try defaults.updateSuite(as: Settings.self) { $0 = Settings(volume: 3, name: "a") }
    defaults.set("kept", forKey: "other")
    #expect(try defaults.readSuite() == Settings(volume: 3, name: "a"))
    try defaults.updateSuite(as: Settings.self) { settings in
      settings?.volume += 1
      settings?.name = nil
      settings?.films = ["M"]
    }
    #expect(
      try defaults.storedValues() == ["volume": 4, "films": ["M"], "other": "kept"],
      "a property that is nil has no key")
    try defaults.updateSuite(as: Settings.self) { $0 = nil }
    #expect(try defaults.storedValues() == ["other": "kept"])
    let error = try #require(throws: WormholeError.self) {
      try defaults.readSuite(as: Settings.self)
    }
    #expect(error.code == .wrongType, "\(error)")
    let number = try #require(throws: WormholeError.self) {
      try GroupDefaults(suite: "new", in: scene.container).updateSuite(as: Int.self) { $0 = 1 }
    }
    #expect(number.code == .unsupportedValue, "\(number)")
  }

  @Test("lose no change of another process in a step on the whole suite")
  func suiteStep() throws {
    let other = try scene.participant()
    for _ in 0..<50 { try other.tell("defaults-add other 1") }
    for _ in 0..<50 {
      try scene.defaults.updateSuite(as: [String: Int].self) { keys in
        keys = (keys ?? [:]).merging(["volume": (keys?["volume"] ?? 0) + 1]) { $1 }
      }
    }
    for _ in 0..<50 { #expect(try other.answer() == "done") }
    #expect(try scene.defaults.readSuite() == ["other": 50, "volume": 50])
  }
}
