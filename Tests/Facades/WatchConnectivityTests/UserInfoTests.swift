import Testing
import WormholePeers
import WormholeSystem
import WormholeTestSupport

@Suite("A transferred dictionary", .blocking, .bothEngines)
struct UserInfoTests {
  @Test("is delivered in the order of sending to a counterpart that starts later")
  func later() throws {
    let scene = try SessionScene()
    let phone = try scene.phone()
    #expect(try phone.session("info 1 20") == "done")
    let numbers = (1...20).map(String.init).joined(separator: " ")
    #expect(try phone.session("outstanding") == numbers)
    let watch = try scene.watch()
    #expect(try watch.await("info n=20") == "info n=20")
    let order = (1...19).map { "info n=\($0)" }.joined(separator: "; ")
    #expect(try watch.story().contains(order))
    #expect(try phone.await("finished n=20") == "finished n=20 -")
    let ends = (1...19).map { "finished n=\($0) -" }.joined(separator: "; ")
    #expect(try phone.story().contains(ends))
    #expect(try phone.session("outstanding") == "")
  }

  @Test("survives its sender, which gets its outcome at the next activation, once")
  func nextLaunch() throws {
    let scene = try SessionScene()
    do {
      let phone = try scene.phone()
      #expect(try phone.session("info 1 2") == "done")
      try phone.end()
    }
    let watch = try scene.watch()
    #expect(try watch.await("info n=2") == "info n=2")
    do {
      let phone = try scene.phone()
      #expect(try phone.await("finished n=2") == "finished n=2 -")
      #expect(try phone.await("finished n=1") == "finished n=1 -")
      try eventually("both are gone") { try phone.session("outstanding") == "" }
      // Its end is recorded after the delegate's call, so wait for a later event.
      #expect(try phone.session("info 3 1") == "done")
      #expect(try phone.await("finished n=3") == "finished n=3 -")
      try phone.end()
    }
    let phone = try scene.phone()
    #expect(try watch.session("info 9 1") == "done")
    #expect(try phone.await("info n=9") == "info n=9")
    #expect(try !phone.story().contains("finished n=1"))
  }

  @Test("is listed while it waits, even after a restart; a cancelled one is never delivered")
  func cancelled() throws {
    let scene = try SessionScene()
    do {
      let phone = try scene.phone()
      #expect(try phone.session("info 1 4") == "done")
      #expect(try phone.session("cancel 2") == "true")
      #expect(try phone.session("outstanding") == "1 3 4")
      try phone.end()
    }
    let phone = try scene.phone()
    #expect(try phone.session("outstanding") == "1 3 4")
    #expect(try phone.session("cancel 3") == "true")
    let watch = try scene.watch()
    #expect(try watch.await("info n=4") == "info n=4")
    #expect(try watch.story() == "info n=1")
    #expect(try phone.await("finished n=4") == "finished n=4 -")
    #expect(try phone.story().contains("finished n=2") == false)
    #expect(try phone.session("cancel 4") == "none")
  }

  @Test("expires, or is superseded at once, and its sender learns which")
  func expiringAndSuperseded() throws {
    let scene = try SessionScene()
    let phone = try scene.phone()
    #expect(try phone.session("info 1 1") == "done")
    #expect(try phone.session("expiring 2 1 -") == "done")
    #expect(try phone.session("expiring 3 0 seat") == "done")
    #expect(try phone.session("expiring 4 0 seat") == "done")
    #expect(try phone.session("expiring 5 3600000 row") == "done")
    // Nobody has received anything yet.
    #expect(try phone.await("finished n=3") == "finished n=3 7014")
    let watch = try scene.watch()
    #expect(try watch.await("info n=5") == "info n=5")
    #expect(try watch.story() == "info n=1; info n=4")
    #expect(try phone.await("finished n=2") == "finished n=2 7017")
    #expect(try phone.await("finished n=5") == "finished n=5 -")
  }

  @Test("and a file and a message: each has an expiry of its own")
  func filesAndMessages() throws {
    let scene = try SessionScene()
    let phone = try scene.phone("hold")
    let path = try scene.file("ticket", "seat 7")
    #expect(try phone.session("file-expiring \(path) 1") == "done")
    let watch = try scene.watch(replySeconds: 600)
    #expect(try phone.await("sent").contains("7017"))
    #expect(try phone.session("files") == "")
    #expect(try watch.session("ask-expiring 100 a=1") == "failed 7012")
  }

  @Test("is delivered again if the receiver is killed before its delegate returned")
  func killed() throws {
    let scene = try SessionScene()
    let watch = try scene.watch()
    let phone = try scene.phone()
    try watch.send(.stop)
    try watch.waitUntilStopped()
    #expect(try phone.session("info 1 3") == "done")
    try watch.end()
    let other = try scene.watch()
    #expect(try other.await("info n=3") == "info n=3")
    #expect(try other.story().contains("info n=1; info n=2"))
  }

  @Test("waits while there is no delegate; a delegate without its method fails it: deliveryFailed")
  func undelegated() throws {
    let scene = try SessionScene()
    let (phone, watch) = (try scene.phone(), try scene.watch())
    #expect(try watch.session("forget") == "done")
    #expect(try phone.session("info 1 3") == "done")
    try eventually("it waits there") { try watch.session("state").contains("pending") }
    #expect(try phone.session("context c=1") == "done")
    try eventually("the context is there") { try watch.session("contexts") == " / c=1" }
    #expect(try watch.session("remember") == "done")
    #expect(try watch.await("context") == "context c=1")
    #expect(try watch.await("info n=3") == "info n=3")
    #expect(try watch.story().contains("info n=1; info n=2"))
    try watch.end()
    let bare = try scene.watch("watch", "bare")
    #expect(try phone.session("info 4 1") == "done")
    #expect(try phone.await("finished n=4") == "finished n=4 7014")
    withExtendedLifetime(bare) {}
  }

  @Test(
    "for the complication is current until the next; 50 a day, then they are ordinary",
    .onlyDirectories("it counts days; CinemaTime's test shows one on the face"))
  func complication() throws {
    let scene = try SessionScene()
    let phone = try scene.phone()
    #expect(try phone.session("state").hasSuffix(" 50"))
    #expect(try phone.session("complication 1 1") == "done")
    #expect(try phone.session("info 2 1") == "done")
    #expect(try phone.session("complication 3 1") == "done")
    #expect(try phone.session("outstanding") == "1 2 3!")
    #expect(try phone.await("watchState") == "watchState")
    #expect(try phone.session("complication 4 48") == "done")
    #expect(try phone.session("state").hasSuffix(" 0"))
    #expect(try phone.session("complication 52 1") == "done")
    #expect(try phone.session("outstanding").hasSuffix("50 51! 52"))
    try phone.end()
    let again = try scene.phone()
    #expect(try again.session("state").hasSuffix(" 0"))
    #expect(try again.session("outstanding").hasSuffix("51! 52"))
    try scene.pairing.pair(.init(name: "watch", isComplicationEnabled: false))
    try eventually("it is disabled") { try !again.session("state").contains("complication") }
    let watch = try scene.watch()
    #expect(try watch.await("info n=52") == "info n=52")
    #expect(try watch.await("info n=1") == "info n=1")
  }

  @Test(
    "for the complication starts the watch's app; an ordinary one waits for it",
    .onlyDirectories("nobody is started by what is on etcd"))
  func waking() throws {
    let scene = try SessionScene()
    try scene.launch("watch", for: .urgentWork)
    let phone = try scene.phone()
    #expect(try phone.session("info 1 1") == "done")
    #expect(try phone.session("outstanding") == "1")
    #expect(try phone.session("complication 2 1") == "done")
    #expect(try phone.await("finished n=2") == "finished n=2 -")
    #expect(try phone.story().contains("finished n=1 -"))
    #expect(try phone.session("tell quit=1") == "done")
    try eventually("the watch's app has ended") {
      try phone.session("state").contains("reachable") == false
    }
  }
}
