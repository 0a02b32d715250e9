import Foundation
import Testing
import WormholePeers
import WormholeTestSupport

@Suite("Transfers between two processes", .blocking, .bothEngines)
struct TransfersTests {
  @Test("of guaranteed messages arrive in order, even those from before the other side ran")
  func order() throws {
    let scene = try CommunicatorScene()
    let phone = try scene.start("phone")
    try phone.awaits("reachability", "backgroundOnly")
    for number in 0..<10 { try phone.perform("guaranteed m\(number) \(number)") }
    let watch = try scene.start("watch")
    // The session is active before the first observer of messages is registered: they wait for it.
    try watch.awaits("reachability", "immediatelyReachable")
    try watch.perform("observe guaranteed")
    for number in 10..<20 { try phone.perform("guaranteed m\(number) \(number)") }
    #expect(try watch.hears("guaranteed", 20) == (0..<20).map { "m\($0)=\($0)" })
    #expect(try phone.hears("completions", 20) == (0..<20).map { "m\($0)=done" })
  }

  // In the original the handler died with its process, and the next process learned nothing.
  @Test("that end after their sender was started again are reported to it")
  func relaunch() throws {
    let scene = try CommunicatorScene()
    let first = try scene.start("phone")
    try first.awaits("reachability", "backgroundOnly")
    try first.perform("guaranteed a 1")
    try first.perform("blob b 10")
    try first.end()
    let watch = try scene.start("watch")
    try watch.perform("observe guaranteed")
    try watch.perform("observe blob")
    let second = try scene.start("phone")
    try second.perform("observe finished")
    let finished = try second.hears("finished", 2)
    #expect(Set(finished) == ["guaranteedMessage:a=done", "blob:b=done"])
    // Observers are called on a queue of their own, after the delivery.
    #expect(try watch.hears("guaranteed") == ["a=1"])
    #expect(try watch.hears("blob") == ["b:b*10/10"])
    try eventually("the blob's file is gone") { try blobFiles(scene).isEmpty }
  }

  // In the original all blobs were written to one file, and the last one arrived several times.
  @Test("of several blobs at once never mix them up, and leave no files")
  func blobs() throws {
    let scene = try CommunicatorScene()
    let (phone, watch) = try scene.startBoth()
    try watch.perform("observe blob")
    let names = ["a", "b", "c", "d", "e", "f"]
    for (index, name) in names.enumerated() { try phone.perform("blob \(name) \(index * 10_000)") }
    let expected = names.enumerated().map { index, name in
      "\(name):\(index == 0 ? "" : name)*\(index * 10_000)/\(index * 10_000)"
    }
    #expect(try watch.hears("blob", names.count).sorted() == expected)
    #expect(try phone.hears("completions", names.count).sorted() == names.map { "\($0)=done" })
    #expect(try blobFiles(scene).isEmpty)
  }

  @Test(
    "that expire or are superseded call their completion and are not delivered")
  func expiringAndSuperseded() throws {
    let scene = try CommunicatorScene()
    let phone = try scene.start("phone")
    try phone.awaits("reachability", "backgroundOnly")
    try phone.perform("guaranteed first 1")
    try phone.perform("expiring late 1")
    try phone.perform("expiring-blob old 1")
    try phone.perform("expiring seat 0")
    try phone.perform("expiring seat 0")
    try eventually("the older one of the key has ended") {
      try phone.heard("completions").contains { $0.hasPrefix("seat=") }
    }
    let watch = try scene.start("watch")
    try watch.perform("observe guaranteed")
    #expect(try watch.hears("guaranteed", 2) == ["first=1", "seat=0"])
    let ends = try phone.hears("completions", 5)
    #expect(Set(ends.filter { $0.hasSuffix("=done") }) == ["first=done", "seat=done"], "\(ends)")
    #expect(Set(ends.map { $0.prefix { $0 != "=" } }) == ["first", "seat", "late", "old"])
    #expect(try blobFiles(scene).isEmpty)
  }

  @Test("that are cancelled call their completion once, and leave no files")
  func cancelled() throws {
    let scene = try CommunicatorScene()
    let phone = try scene.start("phone")
    try phone.awaits("reachability", "backgroundOnly")
    try phone.perform("guaranteed a 1")
    try phone.perform("blob b 1000")
    for name in ["a", "b", "a", "b"] { try phone.perform("cancel \(name)") }
    #expect(
      try Set(phone.hears("completions", 2)) == ["a=CancellationError", "b=CancellationError"])
    #expect(try blobFiles(scene).isEmpty)
    // The first message to arrive is the one that was sent next.
    try phone.perform("guaranteed c 3")
    let watch = try scene.start("watch")
    try watch.perform("observe guaranteed")
    #expect(try watch.hears("guaranteed") == ["c=3"])
    #expect(try phone.hears("completions", 3).last == "c=done")
  }

  @Test("that another process cancels fail")
  func takenBack() throws {
    let scene = try CommunicatorScene()
    let phone = try scene.start("phone")
    try phone.awaits("reachability", "backgroundOnly")
    try phone.perform("observe finished")
    try phone.perform("guaranteed a 1")
    for transfer in try PeerSession("phone", in: scene.container).messageTransfers(to: "watch") {
      #expect(try transfer.cancel())
    }
    #expect(try phone.hears("completions") == ["a=deliveryFailed"])
    #expect(try phone.hears("finished") == ["guaranteedMessage:a=deliveryFailed"])
  }

  @Test("of complication info report the remaining number of today to the phone")
  func complication() throws {
    let (phone, watch) = try CommunicatorScene().startBoth()
    try watch.perform("observe complication")
    try watch.perform("observe guaranteed")
    try phone.perform("complication a 7")
    #expect(try watch.hears("complication") == ["7"])
    #expect(try phone.hears("completions") == ["a=49"])
    #expect(try watch.heard("guaranteed").isEmpty)
  }

  @Test("that no property list can hold, or that are too large, fail and are not sent")
  func refused() throws {
    let (phone, watch) = try CommunicatorScene().startBoth()
    try watch.perform("observe guaranteed")
    try phone.perform("large a 70000")
    #expect(try phone.hears("completions") == ["a=payloadTooLarge"])
    try phone.perform("guaranteed b 1")
    #expect(try watch.hears("guaranteed") == ["b=1"])
  }

  private func blobFiles(_ scene: CommunicatorScene) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: scene.temporary.path)
      .filter { $0.hasPrefix("communicator-blob-") }
  }
}
