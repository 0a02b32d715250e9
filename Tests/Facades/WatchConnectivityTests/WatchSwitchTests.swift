import Testing
import WormholePeers
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@Suite("Another watch", .blocking, .bothEngines)
struct WatchSwitchTests {
  @Test(
    "makes the session inactive, delivers arrivals, deactivates it, and is active afterwards"
  )
  func order() throws {
    let scene = try SessionScene()
    try scene.pairTwo()
    let phone = try scene.phone()
    let (first, second) = (try scene.watch(), try scene.watch("watch2"))
    #expect(try second.session("ask a=1") == "failed 7007")
    #expect(try second.session("info 100 2") == "done")
    #expect(try first.session("info 1 1") == "done")
    #expect(try phone.await("info n=1") == "info n=1")
    try eventually("the second watch's dictionaries do not count") {
      try !phone.session("state").contains("pending")
    }
    let directory = try phone.session("directory")

    try phone.send(.stop)
    try phone.waitUntilStopped()
    #expect(try first.session("info 2 3") == "done")
    #expect(try scene.pairing.activate("watch2"))
    try phone.send(.continue)

    #expect(try phone.await("deactivated") == "deactivated")
    // Arrivals from the first watch were delivered before, and none from the second.
    #expect(try phone.await("inactive") == "inactive")
    #expect(try phone.story() == "info n=2; info n=3; info n=4")
    #expect(try phone.session("state").hasPrefix("notActivated"))
    #expect(try phone.session("tell a=1") == "done")
    #expect(try phone.await("failed") == "failed 7004")
    #expect(try phone.session("context a=1") == "failed 7004")

    #expect(try phone.session("activate") == "done")
    #expect(try phone.await("activated") == "activated")
    #expect(try phone.await("info n=101") == "info n=101")
    #expect(try phone.await("info n=100") == "info n=100")
    #expect(try phone.session("ask b=1") == "reply b=1 by=\(second.processID)")
    #expect(try second.session("ask b=2") == "reply b=2 by=\(phone.processID)")
    #expect(try first.session("ask b=3") == "failed 7007")
    #expect(try phone.session("directory") != directory)
  }

  @Test("leaves the objects of the first one's transfers alive, so that they can be cancelled")
  func keptTransfer() throws {
    let scene = try SessionScene()
    try scene.pairTwo()
    let phone = try scene.phone()
    #expect(try phone.session("keep 5") == "done")
    for other in ["watch2", "watch"] {
      #expect(try scene.pairing.activate(other))
      #expect(try phone.await("deactivated") == "deactivated")
      #expect(try phone.session("activate") == "done")
      #expect(try phone.await("activated") == "activated")
    }
    #expect(try phone.session("outstanding") == "5")
    #expect(try phone.session("cancel-kept") == "true")
    #expect(try phone.session("outstanding") == "")
    let watch = try scene.watch()
    #expect(try phone.session("info 6 1") == "done")
    #expect(try watch.await("info n=6") == "info n=6")
    #expect(try phone.await("finished n=6").hasPrefix("finished n=6"))
    #expect(try !phone.story().contains("n=5"))
  }

  @Test("ends a message that waits for its reply, as sessionInactive")
  func underWay() throws {
    let scene = try SessionScene()
    try scene.pairTwo()
    let (phone, watch) = (try scene.phone(), try scene.watch("watch", "hold"))
    #expect(try phone.session("begin a=1") == "done")
    #expect(try watch.await("asked") == "asked a=1")
    #expect(try scene.pairing.activate("watch2"))
    #expect(try phone.await("deactivated") == "deactivated")
    #expect(try phone.story().hasSuffix("inactive; failed 7016"))
  }

  @Test(
    "loses nothing if the delegate activates while the session is inactive, or ignores all"
  )
  func activatesEarly() throws {
    for manner in ["hold", "bare"] {
      let scene = try SessionScene()
      try scene.pairTwo()
      let phone = try scene.phone(manner)
      let second = try scene.watch("watch2")
      #expect(try second.session("info 1 3") == "done")
      #expect(try scene.pairing.activate("watch2"))
      #expect(try phone.await("activated") == "activated")
      if manner == "hold" {
        #expect(try phone.await("info n=3") == "info n=3")
        #expect(try phone.story().contains("inactive; deactivated; info n=1; info n=2"))
      } else {
        // The bare delegate has no method for it, so its sender gets an error: the message has
        // arrived.
        #expect(try second.await("finished n=3") == "finished n=3 7014")
      }
    }
  }

  @Test("or none: the watch's state changes, is reported, and decides what can be sent")
  func known() throws {
    let scene = try SessionScene()
    let phone = try scene.phone()
    #expect(try phone.session("state") == "activated paired installed complication companion 50")
    let directory = try phone.session("directory")
    try scene.pairing.pair(.init(name: "watch", isAppInstalled: false))
    #expect(try phone.await("watchState") == "watchState")
    #expect(try phone.session("state") == "activated paired 0")
    #expect(try phone.session("directory") == "nil")
    #expect(try phone.session("context a=1") == "failed 7006")
    #expect(try phone.session("info 1 1") == "done")
    #expect(try phone.await("finished") == "finished n=1 7006")
    #expect(try scene.pairing.unpair("watch"))
    #expect(try phone.await("watchState") == "watchState")
    #expect(try phone.session("state") == "activated 0")
    #expect(try phone.session("ask a=1") == "failed 7005")
    #expect(Files.exists(directory))
    try phone.end()
    let again = try scene.phone()
    #expect(!Files.exists(directory))
    try scene.pairing.pair(.init(name: "watch"))
    #expect(try again.await("watchState") == "watchState")
    let watch = try scene.watch()
    try eventually("the new watch is reached") {
      try again.session("ask a=1") == "reply a=1 by=\(watch.processID)"
    }
  }

  @Test("that is the first or was the last, and runs, is reported as reachable or not")
  func reachableAtOnce() throws {
    let scene = try SessionScene()
    try scene.pairing.pair(.init(name: "watch"))
    let (phone, watch) = (try scene.phone(), try scene.watch())
    #expect(try phone.await("reachability") == "reachability true")
    #expect(try scene.pairing.unpair("watch"))
    #expect(try phone.await("reachability") == "reachability false")
    #expect(try phone.await("watchState") == "watchState")
    try scene.pairing.pair(.init(name: "watch"))
    #expect(try phone.await("reachability") == "reachability true")
    #expect(try phone.await("watchState") == "watchState")
    // Paired means that something can be sent.
    #expect(try phone.session("info 1 1") == "done")
    #expect(try watch.await("info n=1") == "info n=1")
  }

  @Test("that is paired again begins clean: both sides get nothing of the earlier pairing")
  func pairedAgain() throws {
    let scene = try SessionScene()
    try scene.pairing.pair(.init(name: "watch"))
    let phone = try scene.phone()
    let file = try scene.file("a", "b")
    #expect(try phone.session("info 1 1") == "done" && phone.session("context a=1") == "done")
    #expect(try phone.session("file \(file)") == "done")
    let watch = try PeerSession("watch", in: scene.container)
    try watch.setContext(["a": 2], for: "phone")
    #expect(try scene.pairing.unpair("watch"))
    try scene.pairing.pair(.init(name: "watch"))
    #expect(try phone.await("finished") == "finished n=1 7014")
    #expect(try phone.await("sent") == "sent a 7014")
    #expect(try watch.context(from: "phone") == nil && watch.context(for: "phone") == nil)
    let new = try scene.watch()
    #expect(try phone.session("info 2 1") == "done")
    #expect(try new.await("info") == "info n=2")
    #expect(try new.story() == "")
  }

  // The phone used to stay activated, and received nothing any more.
  @Test(
    "whose link cannot be opened ends the phone's session, and its delegate learns it",
    .onlyDirectories("a file takes a queue's place"))
  func unopened() throws {
    let scene = try SessionScene()
    try scene.pairing.pair(.init(name: "watch"))
    #expect(try scene.pairing.unpair("watch"))
    let phone = try scene.phone()
    #expect(try phone.session("state") == "activated 0")
    try Files.write("", to: scene.directory.path + "/own/queues/peer%2Fleft%2Fmessages")
    try scene.pairing.pair(.init(name: "left"))
    #expect(try phone.await("activated ") == "activated 7001")
    #expect(try !phone.session("state").hasPrefix("activated"))
  }

  @Test("that is the first to be paired by its name is the active one at once")
  func firstByName() throws {
    let scene = try SessionScene()
    try scene.pairing.pair(.init(name: "left"))
    let (phone, watch) = (try scene.phone(), try scene.watch("left"))
    #expect(
      try watch.session("state") == "activated paired installed complication companion reachable 50"
    )
    #expect(try watch.session("ask a=1") == "reply a=1 by=\(phone.processID)")
    #expect(try phone.session("info 1 1") == "done")
    #expect(try watch.await("info") == "info n=1")
  }

  @Test("that is not paired can send nothing, and learns the state of its phone's app")
  func unpaired() throws {
    let scene = try SessionScene()
    let watch = try scene.watch("watch2")
    #expect(try watch.session("state") == "activated 0")
    #expect(try watch.session("context a=1") == "failed 7005")
    try scene.pairTwo()
    #expect(try watch.await("companion") == "companion")
    #expect(try watch.session("state") == "activated paired installed complication companion 50")
    #expect(try watch.session("context a=1") == "done")
  }
}
