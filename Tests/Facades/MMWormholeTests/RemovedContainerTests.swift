import Dispatch
import Foundation
import MMWormhole
import Testing
import Wormhole
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@Suite("MMWormhole, when its group's container is removed", .blocking)
struct RemovedContainerTests {
  private let directory: TemporaryDirectory
  private var path: String { directory.path + "/group.test" }

  init() throws {
    directory = try TemporaryDirectory()
    try makeDirectory(path)
  }

  private func remove() throws {
    #expect(try ChildProcess("rm", ["-r", path]).wait(until: soon) == .exited(0))
  }

  @Test("calls no listener, makes the container again with the next message, and delivers that")
  func removed() throws {
    let container = try SharedContainer(path: path, group: "group.test", access: nil)
    let wormhole = MMWormhole(container: container, optionalDirectory: "wormhole")
    let errors = Errors()
    wormhole.errorHandler = { errors.add($0) }
    let (received, cleared) = (Recorder(), Recorder())
    wormhole.passMessageObject("old" as NSString, identifier: "a")
    wormhole.listenForMessage(withIdentifier: "a") { received.add($0) }
    wormhole.listenForMessage(withIdentifier: "b") { cleared.add($0) }
    // A message that no value holds.
    wormhole.passMessageObject(nil, identifier: "b")
    try eventually("nil is received") { cleared.all == ["nil"] }
    let signals = Heard<Int>()
    let listening = try PostFile(root: container.root, name: "wormhole/b").listen { signals.add(1) }
    try remove()
    try eventually("looks fail") { signals.all.count > 5 }
    DispatchQueue.main.sync {}
    #expect(received.all.isEmpty && cleared.all == ["nil"])
    #expect(errors.all.isEmpty)
    wormhole.passMessageObject("new" as NSString, identifier: "a")
    try eventually("the message is received") { received.all == ["new"] }
    let reader = MMWormhole(
      container: try SharedContainer(path: path, group: "group.test", access: nil),
      optionalDirectory: "wormhole")
    #expect(reader.message(withIdentifier: "a") as? String == "new")
    try remove()
    wormhole.passMessageObject(nil, identifier: "b")
    try eventually("the next nil is received") { cleared.all == ["nil", "nil"] }
    withExtendedLifetime((listening, wormhole)) {}
  }
}
