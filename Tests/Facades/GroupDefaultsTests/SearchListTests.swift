import GroupDefaults
import Testing
import Wormhole
import WormholePropertyLists
import WormholeTestSupport

@Suite("The search list of defaults", .blocking, .bothEngines)
struct SearchListTests {
  let scene: DefaultsScene

  init() throws { scene = try DefaultsScene() }

  @Test(
    "is the command line, the suite, added suites in their order, and registered values")
  func order() throws {
    let defaults = scene.defaults
    // Given: a key with a different value in each domain. Registered values belong to the process.
    let key = "order-\(UInt64.random(in: .min ... .max))"
    defaults.register(defaults: [key: "registered"])
    for name in ["first", "second"] {
      GroupDefaults(suite: name, in: scene.container).set(name, forKey: key)
      defaults.addSuite(named: name)
    }
    defaults.set("suite", forKey: key)
    defaults.setVolatileDomain([key: "argument"], forName: GroupDefaults.argumentDomain)
    // Then: as each is removed, the next one is found.
    func expectFound(_ expected: String) {
      #expect(defaults.string(forKey: key) == expected)
      #expect(defaults.dictionaryRepresentation()[key] as? String == expected)
    }
    expectFound("argument")
    defaults.removeVolatileDomain(forName: GroupDefaults.argumentDomain)
    expectFound("suite")
    defaults.removeObject(forKey: key)
    expectFound("first")
    defaults.removeSuite(named: "first")
    expectFound("second")
    defaults.removeSuite(named: "second")
    expectFound("registered")
    #expect(scene.reported() == [])
  }

  @Test("never stores registered values")
  func registered() throws {
    let key = "registered-\(UInt64.random(in: .min ... .max))"
    scene.defaults.register(defaults: [key: 7])
    scene.defaults.set(1, forKey: "other")
    #expect(scene.defaults.integer(forKey: key) == 7)
    #expect(try scene.defaults.storedValues() == ["other": 1])
    #expect(try scene.participant().ask("defaults-get \(key)") == "nil")
    #expect(
      scene.defaults.volatileDomain(forName: GroupDefaults.registrationDomain)[key] as? Int == 7)
  }

  @Test("has separate suites of one container, each a persistent domain")
  func domains() throws {
    let other = GroupDefaults(suite: "other/suite", in: scene.container)
    scene.defaults.set(1, forKey: "k")
    #expect(other.object(forKey: "k") == nil)
    scene.defaults.setPersistentDomain(["k": 2, "l": "x"], forName: "other/suite")
    #expect(other.integer(forKey: "k") == 2 && scene.defaults.integer(forKey: "k") == 1)
    #expect(scene.defaults.persistentDomain(forName: "other/suite")?.count == 2)
    other.removePersistentDomain(forName: "other/suite")
    #expect(other.object(forKey: "k") == nil)
    #expect(scene.defaults.persistentDomain(forName: "other/suite") == nil)
    #expect(scene.defaults.persistentDomain(forName: "NSGlobalDomain") == nil)
    #expect(scene.reported().count == 1)
    scene.defaults.setVolatileDomain(["v": 1], forName: "own")
    #expect(scene.defaults.volatileDomainNames.contains("own"))
    #expect(scene.defaults.volatileDomain(forName: "own")["v"] as? Int == 1)
    #expect(scene.defaults.object(forKey: "v") == nil)
  }

  @Test(
    "begins with the command line of the program", .onlyDirectories("it is about the arguments"))
  func arguments() throws {
    let directory = try TemporaryDirectory()
    let words = [directory.path, "-volume", " 7 ", "-xml", "<array><integer>1</integer></array>"]
    let participant = try Participant(program: BuiltProgram.path("participant"), words)
    #expect(try participant.ask("defaults-set volume 3") == "done")
    #expect(try participant.ask("defaults-get volume") == "\"7\"")
    #expect(try participant.ask("defaults-get xml") == "[1]")
    #expect(try GroupDefaults(in: directory.container()).integer(forKey: "volume") == 3)
  }

  @Test(
    "of a group is in the container of that name, which the first use creates",
    .onlyDirectories("it is about the path; see UserDefaultsTests"))
  func groups() throws {
    let home = try TemporaryDirectory()
    let place = try TemporaryDirectory()
    let participant = try Participant(place.path, environment: ["XDG_DATA_HOME=\(home.path)"])
    let file = home.path + "/app-groups/group.test.cinema/own/values/defaults/value.plist"
    #expect(try participant.ask("defaults-group group.test.cinema") == "7 \(file)")
    #expect(try participant.ask("defaults-group NSGlobalDomain") == "nil")
  }
}
