import Testing
import WormholePeers
import WormholeTestSupport

@Suite("Observers of states", .blocking, .bothEngines)
struct ObservingTests {
  @Test("receive the activation, and a counterpart that comes and is killed")
  func reachability() throws {
    let scene = try CommunicatorScene()
    let phone = try scene.start("phone")
    try phone.perform("observe state")
    try phone.perform("observe reachability")
    #expect(try phone.hears("state") == ["activated"])
    try phone.awaits("reachability", "backgroundOnly")
    let watch = try scene.start("watch")
    try watch.perform("observe state")
    try eventually("the watch is reported to the phone") {
      try phone.heard("reachability").last == "immediatelyReachable"
    }
    try watch.end()
    try eventually("the end of the watch is reported to the phone") {
      try phone.heard("reachability").last == "backgroundOnly"
    }
  }

  @Test("receive the state of the watch's app and complication")
  func watchState() throws {
    let scene = try CommunicatorScene()
    let phone = try scene.start("phone")
    try phone.perform("observe watch")
    #expect(try phone.hears("watch").last == "enabled:50:url")
    try scene.phonePairing.pair(.init(name: "watch", isComplicationEnabled: false))
    try eventually("the complication is off") { try phone.heard("watch").last == "installed" }
    try scene.phonePairing.pair(.init(name: "watch", isAppInstalled: false))
    try eventually("the app is gone") { try phone.heard("watch").last == "notInstalled" }
    #expect(try phone.ask("now reachability") == "notReachable")
    #expect(try phone.ask("now phone") == "notPaired")
    try scene.phonePairing.unpair("watch")
    try eventually("the watch is gone") { try phone.heard("watch").last == "notPaired" }
  }

  // The original never calls them.
  @Test("of the phone receive the state of the phone's app, on the watch")
  func phoneState() throws {
    let scene = try CommunicatorScene()
    let watch = try scene.start("watch")
    try watch.perform("observe phone")
    #expect(try watch.hears("phone").last == "installed")
    try scene.watchPairing.pair(.init(name: "phone", isAppInstalled: false))
    try eventually("the app is gone") { try watch.heard("phone").last == "notInstalled" }
    #expect(try watch.ask("now phone") == "notInstalled")
    #expect(try watch.ask("now watch") == "notPaired")
    try scene.watchPairing.pair(.init(name: "phone"))
    try eventually("the app is back") { try watch.heard("phone").last == "installed" }
  }

  @Test("receive a change of watch, after which the phone exchanges messages with the new one")
  func switching() throws {
    let scene = try CommunicatorScene()
    try scene.phonePairing.pair(.init(name: "watch"))
    try scene.phonePairing.pair(.init(name: "other"))
    let phone = try scene.start("phone")
    try phone.perform("observe state")
    try phone.hears("state")
    let other = try scene.start("watch", watch: "other")
    try other.perform("observe guaranteed")
    try scene.phonePairing.activate("other")
    #expect(try phone.hears("state", 4) == ["activated", "inactive", "notActivated", "activated"])
    try phone.awaits("reachability", "immediatelyReachable")
    try phone.perform("guaranteed a 1")
    #expect(try other.hears("guaranteed") == ["a=1"])
  }

  // In the original a failed activation was repeated at once, for ever.
  @Test(
    "receive once that there is no session here, and nothing crashes",
    .onlyDirectories("it needs no container"))
  func unsupported() throws {
    let directory = try TemporaryDirectory()
    let lonely = Side(
      try Participant(directory.path, environment: ["WATCHCONNECTIVITY_ROLE=neither"]))
    try lonely.perform("observe state")
    #expect(try lonely.hears("state") == ["notActivated"])
    #expect(try lonely.ask("now reachability") == "notReachable")
    #expect(try lonely.ask("now watch") == "notPaired")
    #expect(try lonely.ask("now sent") == "nothing")
    try lonely.perform("guaranteed a 1")
    try lonely.perform("blob b 1")
    #expect(
      try lonely.heard("completions") == [
        "a=backgroundOnly>notReachable", "b=backgroundOnly>notReachable",
      ])
    #expect(try lonely.heard("state") == ["notActivated"])
  }
}
