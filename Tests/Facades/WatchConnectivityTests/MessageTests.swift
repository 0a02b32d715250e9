import Foundation
import Testing
import WormholePeers
import WormholeSystem
import WormholeTestSupport

@Suite("A message", .blocking, .bothEngines)
struct MessageTests {
  @Test("with a reply handler is replied to, dictionary or data, in both directions")
  func replied() throws {
    let scene = try SessionScene()
    let (phone, watch) = (try scene.phone(), try scene.watch())
    #expect(try phone.session("ask a=1") == "reply a=1 by=\(watch.processID)")
    #expect(try watch.session("ask b=two") == "reply b=two by=\(phone.processID)")
    #expect(try phone.session("data abc") == "reply cba")
    #expect(try watch.session("data xyz") == "reply zyx")
    #expect(try watch.await("asked") == "asked a=1")
    #expect(try watch.await("askedData") == "askedData abc")
  }

  @Test("without one goes to the receiver's method without reply, in the order of sending")
  func unreplied() throws {
    let scene = try SessionScene()
    let (phone, watch) = (try scene.phone(), try scene.watch())
    for number in 1...30 { try watch.tell("session-tell n=\(number)") }
    for _ in 1...30 { #expect(try watch.answer() == "done") }
    #expect(try watch.session("tell-data last") == "done")
    #expect(try phone.await("data") == "data last")
    let expected = (1...30).map { "message n=\($0)" }.joined(separator: "; ")
    #expect(try phone.story().hasSuffix(expected))
    #expect(try !watch.story().contains("failed"))
  }

  @Test("without a method in the receiver's delegate is an error of the sender: deliveryFailed")
  func unimplemented() throws {
    let scene = try SessionScene()
    let phone = try scene.phone("bare")
    let watch = try scene.watch()
    #expect(try watch.session("ask a=1") == "failed 7014")
    #expect(try watch.session("data a") == "failed 7014")
    #expect(try watch.session("tell a=1") == "done")
    #expect(try watch.await("failed") == "failed 7014")
    #expect(try watch.session("tell-data a") == "done")
    #expect(try watch.await("failed") == "failed 7014")
    withExtendedLifetime(phone) {}
  }

  @Test("whose reply handler is released ends as messageReplyTimedOut, long before its timeout")
  func released() throws {
    let scene = try SessionScene()
    let (phone, watch) = (try scene.phone("release"), try scene.watch(replySeconds: 600))
    #expect(try watch.session("ask a=1") == "failed 7012")
    #expect(try watch.session("data a") == "failed 7012")
    withExtendedLifetime(phone) {}
  }

  @Test("whose reply handler is kept without a call ends as messageReplyTimedOut at its timeout")
  func late() throws {
    let scene = try SessionScene()
    let (phone, watch) = (try scene.phone("hold"), try scene.watch(replySeconds: 0.2))
    #expect(try watch.session("ask a=1") == "failed 7012")
    withExtendedLifetime(phone) {}
  }

  @Test("whose reply is not a property list ends as messageReplyFailed; of two replies one counts")
  func badReply() throws {
    let scene = try SessionScene()
    let watch = try scene.watch()
    do {
      let phone = try scene.phone("bad")
      #expect(try watch.session("ask a=1") == "failed 7011")
      try phone.end()
    }
    let phone = try scene.phone("twice")
    #expect(try watch.session("ask a=1") == "reply reply=1")
    #expect(try watch.session("ask a=1") == "reply reply=1")
    #expect(try !watch.story().contains("own"))
    withExtendedLifetime(phone) {}
  }

  @Test("to a counterpart that is missing, stopped or dies is an error: notReachable")
  func unreachable() throws {
    let scene = try SessionScene()
    let phone = try scene.phone()
    #expect(try phone.session("ask a=1") == "failed 7007")
    let watch = try scene.watch("watch", "hold")
    #expect(try phone.await("reachability") == "reachability true")
    #expect(try phone.session("begin a=1") == "done")
    #expect(try watch.await("asked") == "asked a=1")
    try watch.end()
    #expect(try phone.await("failed") == "failed 7007")
    #expect(try phone.await("reachability") == "reachability false")
    let other = try scene.watch()
    #expect(try phone.await("reachability") == "reachability true")
    try other.send(.stop)
    try other.waitUntilStopped()
    #expect(try phone.session("ask a=2") == "failed 7007")
    try other.send(.continue)
    try eventually("it is reachable again") {
      try phone.session("ask a=3") == "reply a=3 by=\(other.processID)"
    }
  }

  @Test(
    "of a watch starts the phone's app if that is registered; one of a phone starts nothing",
    .onlyDirectories("nobody is started by what is on etcd"))
  func launching() throws {
    let scene = try SessionScene()
    try scene.launch("phone", for: .request)
    try scene.launch("watch", for: .request)
    let watch = try scene.watch()
    #expect(try watch.session("state").contains("reachable"))
    let reply = try watch.session("ask a=1")
    #expect(reply.hasPrefix("reply a=1 by="))
    #expect(reply != "reply a=1 by=\(watch.processID)")
    #expect(try watch.session("ask a=1") == reply)
    #expect(try watch.session("tell quit=1") == "done")
    // Only then can another one be the phone; it waits just seconds for that.
    let started = try #require(Int32(reply.dropFirst("reply a=1 by=".count)))
    try eventually("the started process has ended") { ProcessStatus.of(started)?.isDead ?? true }
    let phone = try scene.phone()
    try watch.end()
    try eventually("the watch is gone") { try phone.session("ask a=1") == "failed 7007" }
  }

  // A number used to arrive as an Int or a Double that cast to no other type.
  @Test("and a transfer hold numbers that cast to every type, as Apple's do")
  func numbers() throws {
    let scene = try SessionScene()
    let (phone, watch) = (try scene.phone(), try scene.watch())
    #expect(try phone.session("numbers") == "reply numbers .")
    #expect(try watch.await("asked") == "asked numbers .")
    #expect(try watch.await("info") == "info numbers .")
    #expect(try watch.await("context") == "context numbers .")
    #expect(try watch.session("contexts") == " / numbers .")
  }

  @Test("that is too large, or not a property list, is a specific error")
  func payload() throws {
    let scene = try SessionScene()
    let (phone, watch) = (try scene.phone(), try scene.watch())
    #expect(try phone.session("oversize 60000").contains("failed") == false)
    #expect(try phone.session("oversize 66000") == "failed 7009, failed 7009, done")
    #expect(try phone.session("oversize 263000") == "failed 7009, failed 7009, failed 7009")
    withExtendedLifetime(watch) {}
  }
}
