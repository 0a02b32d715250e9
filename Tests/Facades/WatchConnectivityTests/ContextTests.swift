import Testing
import Wormhole
import WormholePeers
import WormholeTestSupport

@Suite("An application context", .blocking, .bothEngines)
struct ContextTests {
  @Test(
    "reaches a counterpart that starts later as the latest only, once, and again when it changes")
  func latest() throws {
    let scene = try SessionScene()
    let phone = try scene.phone()
    for number in 1...3 { #expect(try phone.session("context n=\(number)") == "done") }
    do {
      let watch = try scene.watch()
      #expect(try watch.await("context") == "context n=3")
      #expect(try watch.session("contexts") == " / n=3")
      // If it is killed in the middle of its delegate's method, it gets the context again: the next
      // event follows.
      #expect(try phone.session("ask a=1").hasPrefix("reply"))
      try watch.end()
    }
    let watch = try scene.watch()
    #expect(try phone.session("context n=3") == "done")
    #expect(try phone.session("context n=4") == "done")
    #expect(try watch.await("context") == "context n=4")
    #expect(try !watch.story().contains("context"))
    #expect(try watch.session("contexts") == " / n=4")
  }

  @Test("takes the place of one that cannot be read", .onlyDirectories("a file is damaged"))
  func damaged() throws {
    let scene = try SessionScene()
    let (phone, watch) = (try scene.phone(), try scene.watch())
    #expect(try phone.session("context n=1") == "done")
    #expect(try watch.await("context") == "context n=1")
    let value = scene.container.own.value(PeerNames.context(from: "phone", to: "watch"))
    try Files.write("nonsense", to: value.path)
    #expect(try phone.session("context n=2") == "done")
    #expect(try watch.await("context") == "context n=2")
  }

  @Test("is available to both sides in each direction, and outlives both")
  func persistent() throws {
    let scene = try SessionScene()
    do {
      let (phone, watch) = (try scene.phone(), try scene.watch())
      #expect(try phone.session("context p=1") == "done")
      #expect(try watch.session("context w=1") == "done")
      #expect(try watch.await("context") == "context p=1")
      #expect(try phone.await("context") == "context w=1")
      #expect(try phone.session("ask a=1").hasPrefix("reply"))
      #expect(try watch.session("ask a=1").hasPrefix("reply"))
      try phone.end()
      try watch.end()
    }
    let phone = try scene.phone()
    #expect(try phone.session("contexts") == "p=1 / w=1")
    #expect(try scene.watch().session("contexts") == "w=1 / p=1")
    #expect(try !phone.story().contains("context"))
  }
}
