import Testing
import WormholeSystem
import WormholeTestSupport

@Suite("NSUbiquitousKeyValueStore", .blocking, .bothEngines)
struct UbiquitousStoreTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// A process with the client of the store, in a group of its own.
  private func device(_ variables: [String: String] = [:]) throws -> Participant {
    let environment = try directory.groups + variables.map { "\($0)=\($1)" }
    let device = try Participant("group:com.example.any", environment: environment)
    #expect(try device.ask("positions books") == "")
    return device
  }

  @Test("shares values with other processes, and posts what they change, and no change of its own")
  func shared() throws {
    let (phone, tablet) = (try device(), try device())
    #expect(try phone.ask("positions turn Emma") == "1 true")
    #expect(try tablet.ask("positions page Emma") == "1 true")
    try eventually("it is posted, with both keys") {
      let posted = try tablet.ask("positions posted")
      return ["server Emma,Emma details", "server Emma; server Emma details"].contains(posted)
    }
    #expect(try tablet.ask("positions turn Emma") == "2 true")
    #expect(try phone.ask("positions page Emma") == "2 true")
    #expect(try tablet.ask("positions turn Persuasion") == "1 true")
    #expect(try phone.ask("positions books") == "Emma,Persuasion")
    #expect(try phone.ask("positions close Emma") == "0 false")
    #expect(try tablet.ask("positions books") == "Persuasion")
    try eventually("the last change is posted") {
      try phone.ask("positions posted").contains("Persuasion")
    }
    #expect(try !phone.ask("positions posted").contains("quota"))
  }

  @Test("refuses what the original refuses, says so, and keeps the rest")
  func limits() throws {
    let phone = try device()
    #expect(try phone.ask("positions turn Emma") == "1 true")
    _ = try phone.ask("positions exceed")
    #expect(try phone.ask("positions posted") == "quota kkkkkkkkkkkkkkkkkkkk; quota large")
    #expect(try phone.ask("positions books") == "Emma")
  }

  @Test("is that of the program, or the one that the environment names")
  func named() throws {
    let (one, other) = (
      try device(["WORMHOLE_UBIQUITY_KVSTORE": "one"]),
      try device(["WORMHOLE_UBIQUITY_KVSTORE": "other"])
    )
    #expect(try one.ask("positions turn Emma") == "1 true")
    #expect(try other.ask("positions books") == "")
    #expect(
      try device(["WORMHOLE_UBIQUITY_KVSTORE": "three"]).ask("positions page Emma") == "0 false")
  }
}
