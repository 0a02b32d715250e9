import Testing
import WormholePeers
import WormholeTestSupport

@Suite("Messages between two processes", .blocking, .bothEngines)
struct MessagesTests {
  @Test("are delivered to observers, and replies to the sender")
  func immediate() throws {
    let (phone, watch) = try CommunicatorScene().startBoth()
    try watch.perform("observe immediate")
    try watch.perform("observe interactive")
    try phone.perform("immediate a 1")
    try phone.perform("interactive b 2")
    try phone.perform("immediate c 3")
    #expect(try watch.hears("immediate", 2) == ["a=1", "c=3"])
    #expect(try watch.hears("interactive") == ["b=2"])
    #expect(try phone.hears("replies") == ["re=2"])
    #expect(try phone.heard("errors").isEmpty)
  }

  // In the original neither handler was ever called.
  @Test("end in an error if the reply is not a message")
  func malformedReply() throws {
    let scene = try CommunicatorScene()
    let (phone, watch) = (try scene.start("phone"), try scene.start("watch"))
    try watch.perform("raw malformed")
    try watch.hears("raw")
    try phone.awaits("reachability", "immediatelyReachable")
    try phone.perform("interactive a 1")
    #expect(try phone.hears("errors") == ["messageReplyFailed"])
    #expect(try phone.heard("replies").isEmpty)
  }

  @Test("end in an error at once without a reply, and if they are not messages")
  func noReply() throws {
    let (phone, watch) = try CommunicatorScene().startBoth()
    try phone.perform("interactive a 1")
    #expect(try phone.hears("errors").count == 1)
    try watch.perform("observe interactive")
    try phone.perform("raw-send 1")
    #expect(try phone.hears("errors", 2).count == 2)
    #expect(try phone.heard("replies").isEmpty)
    #expect(try watch.heard("interactive").isEmpty)
  }

  @Test("that cannot be sent fail before the call returns, with the missing condition")
  func notReachable() throws {
    let scene = try CommunicatorScene()
    let phone = try scene.start("phone")
    try phone.awaits("reachability", "backgroundOnly")
    try phone.perform("immediate a 1")
    #expect(try phone.heard("errors") == ["immediatelyReachable>backgroundOnly"])
    try scene.phonePairing.pair(.init(name: "watch", isAppInstalled: false))
    try phone.awaits("reachability", "notReachable")
    try phone.perform("guaranteed b 1")
    #expect(try phone.heard("completions") == ["b=backgroundOnly>notReachable"])
    #expect(try phone.ask("cancel b") == "none")
    #expect(try phone.ask("context c 1").contains("cannot send: the counterpart is not reachable"))
  }

  @Test("deliver to a watch and a phone one context, the latest")
  func context() throws {
    let scene = try CommunicatorScene()
    let phone = try scene.start("phone")
    try phone.awaits("reachability", "backgroundOnly")
    for value in 1...3 { try phone.perform("context - \(value)") }
    #expect(try phone.ask("now sent") == "3")
    let watch = try scene.start("watch")
    try watch.perform("observe context")
    #expect(try watch.hears("context") == ["3"])
    #expect(try watch.ask("now received") == "3")
    try watch.perform("context - 4")
    try phone.awaits("received", "4")
  }
}
