import Testing
import WormholePeers
import WormholeSystem
import WormholeTestSupport

/// The reports to a delegate about its counterpart, and the results of queries.
@Suite("Reachability", .blocking, .bothEngines)
struct ReachabilityTests {
  // A transfer used to report the stop, and nothing reported the changes after it.
  @Test("is reported when the counterpart is stopped, continued and killed, with transfers between")
  func transfers() throws {
    let scene = try SessionScene()
    let (phone, watch) = (try scene.phone(), try scene.watch())
    #expect(try phone.await("reachability") == "reachability true")
    try watch.send(.stop)
    try watch.waitUntilStopped()
    #expect(try phone.session("complication 1 1") == "done")
    #expect(try phone.await("reachability") == "reachability false")
    try watch.send(.continue)
    #expect(try phone.await("reachability") == "reachability true")
    #expect(try phone.session("info 2 1") == "done")
    try watch.end()
    #expect(try phone.await("reachability") == "reachability false")
    #expect(try !phone.session("state").contains("reachable"))
  }

  @Test("is also reported to a watch that nobody queries")
  func quiet() throws {
    let scene = try SessionScene()
    let (watch, phone) = (try scene.watch(), try scene.phone())
    #expect(try watch.await("reachability") == "reachability true")
    try phone.send(.stop)
    #expect(try watch.await("reachability") == "reachability false")
    try phone.send(.continue)
    #expect(try watch.await("reachability") == "reachability true")
    try phone.end()
    #expect(try watch.await("reachability") == "reachability false")
  }

  // The answers before the first look used to be forgotten: the delegate had been answered that the
  // counterpart is not reachable, and never learned that it is.
  @Test("is reported if it differs from an answer during the activation", arguments: [true, false])
  func answeredEarly(isStoppedBefore: Bool) throws {
    let scene = try SessionScene()
    let watch = try scene.watch()
    if isStoppedBefore {
      try watch.send(.stop)
      try watch.waitUntilStopped()
    }
    let phone = try scene.phone(
      (isStoppedBefore ? "continued" : "stopped") + ":\(watch.processID)")
    #expect(try phone.await("answered") == "answered false")
    #expect(try phone.await("reachability") == "reachability true")
  }

  @Test("from an answer is reported")
  func answered() throws {
    let scene = try SessionScene()
    let (phone, watch) = (try scene.phone(), try scene.watch())
    #expect(try phone.await("reachability") == "reachability true")
    try watch.send(.stop)
    try watch.waitUntilStopped()
    #expect(try phone.session("ask a=1") == "failed 7007")
    try watch.send(.continue)
    #expect(try phone.await("reachability").hasPrefix("reachability"))
    try eventually("it is reachable") { try phone.session("state").contains("reachable") }
    #expect(try watch.session("ask b=1") == "reply b=1 by=\(phone.processID)")
    try watch.end()
    #expect(try phone.await("reachability false") == "reachability false")
  }
}
