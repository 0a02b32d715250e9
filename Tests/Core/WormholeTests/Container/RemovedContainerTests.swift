import Dispatch
import FoundationEssentials
import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import Wormhole

@Suite("A container that is removed under running programs", .blocking)
struct RemovedContainerTests {
  private let directory: TemporaryDirectory
  private let queue = DispatchQueue(label: "test")
  private var path: String { directory.path + "/groups/group.test" }

  init() throws {
    directory = try TemporaryDirectory()
    try ContainerLocation.create(path)
  }

  private func group() throws -> SharedContainer {
    try ContainerLocation.create(path)
    return try SharedContainer(path: path, group: "group.test", access: nil)
  }

  private func remove() throws { try shell("rm -r '\(path)'") }

  private func shell(_ command: String) throws { try directory.shell(command) }

  /// Waits until an observer in it was signalled several times: each look for it fails.
  private func signalled(_ signals: Heard<Int>) throws {
    let count = signals.all.count
    try eventually("looks fail") { signals.all.count >= count + 5 }
    queue.sync {}
  }

  @Test("calls no observer of a notification, and goes on with the first post in a new one")
  func notifications() throws {
    let container = try group()
    try container.notification("n").post()
    let heard = Heard<Int>()
    let signals = Heard<Int>()
    let registration = try container.notification("n").observe(on: queue) { _ in heard.add(1) }
    let checked = try container.notification("n").register()
    _ = try checked.check()
    let listening = try PostFile(root: container.root, name: "n").listen { signals.add(1) }
    try remove()
    try signalled(signals)
    #expect(heard.all.isEmpty)
    let count = signals.all.count
    let other = try group()
    try eventually("the new one is found") { signals.all.count > count }
    queue.sync {}
    #expect(heard.all.isEmpty)
    #expect(try !checked.check())
    try other.notification("n").post()
    try eventually("the post is heard") { heard.all == [1] }
    #expect(try checked.check())
    try other.notification("n").post()
    try eventually("so is the next") { heard.all == [1, 1] }
    withExtendedLifetime((registration, listening)) {}
  }

  @Test("calls no observer again when it is moved away and back")
  func movedAway() throws {
    let container = try group()
    try container.notification("n").post()
    try container.value("v").replace(with: 1)
    let heard = Heard<String>()
    let signals = Heard<Int>()
    let registration = try container.notification("n").observe(on: queue) { _ in heard.add("post") }
    let token = try container.value("v").observe(on: queue) { snapshot in
      heard.add(snapshot.isKnown ? "known" : snapshot.isAbsent ? "unknown" : "value")
    }
    let listening = try PostFile(root: container.root, name: "n").listen { signals.add(1) }
    try shell("mv '\(path)' '\(directory.path)/away'")
    try signalled(signals)
    try shell("mv '\(directory.path)/away' '\(path)'")
    try container.notification("n").post()
    try eventually("the post and the value are there") {
      heard.all.contains("post") && heard.all.last != "unknown"
    }
    #expect(heard.all.filter { $0 == "post" }.count == 1)
    #expect(!heard.all.contains("value"), "nobody has published")
    withExtendedLifetime((registration, token, listening)) {}
  }

  @Test("is no message of a channel")
  func channel() async throws {
    let container = try group()
    let channel = Channel<Int>("c", in: container)
    try await channel.publish(1)
    let messages = try channel.messages()
    let signals = Heard<Int>()
    let listening = try PostFile(root: container.root, name: "n").listen { signals.add(1) }
    try remove()
    try await eventuallyAsync("looks fail") { signals.all.count > 5 }
    try await Channel<Int>("c", in: group()).publish(2)
    var iterator = messages.makeAsyncIterator()
    let next = await iterator.next()
    #expect(try next?.message == 2)
    withExtendedLifetime(listening) {}
  }

  // MARK: The next write

  @Test(
    "of a group is made again by the next write of each kind",
    arguments: ["value", "transaction", "notification", "queue", "log", "presence", "directory"])
  func madeAgain(_ kind: String) throws {
    let container = try group()
    try write(kind, in: container)
    try remove()
    try write(kind, in: container)
    let reader = try #require(try SharedContainer.existing(location: path))
    switch kind {
    case "value": #expect(try reader.value("v").read() == 1)
    case "transaction": #expect(try reader.value("w").read() == 2)
    case "notification": #expect(try !PostFile(root: reader.root, name: "n").mark().marks.isEmpty)
    case "queue": #expect(try reader.queue("q").hasEntries())
    case "log": #expect(try reader.identifiers(of: .log) == ["l"])
    case "directory": #expect(try exists(path + "/own/inbox", at: Directory.current))
    default: #expect(try reader.identifiers(of: .presence) == ["p"])
    }
    let handle = try reader.root.handle()
    #expect(try ContainerFormat.isPresent(at: handle.descriptor.rawValue))
  }

  private func write(_ kind: String, in container: SharedContainer) throws {
    switch kind {
    case "value": try container.value("v").replace(with: 1)
    case "transaction":
      try container.update(["v", "w"]) { $0 = ["v": 1, "w": 2] }
    case "notification": try container.notification("n").post()
    case "queue": _ = try container.queue("q").sender("s").enqueue(1)
    case "log": _ = try container.log("l").append(1)
    case "directory": try ContainerDirectory("own/inbox", in: container).make()
    default: try container.presence("p").enter().close()
    }
  }

  @Test("of a group is made again together with removed directories above it")
  func removedAbove() throws {
    let container = try group()
    try shell("rm -r '\(directory.path)/groups'")
    try container.value("v").replace(with: 1)
    #expect(try SharedContainer.existing(location: path)?.value("v").read() == 1)
  }

  @Test("of a group is not made again by looking, or by observing")
  func looking() throws {
    let container = try group()
    let signals = Heard<Int>()
    let listening = try PostFile(root: container.root, name: "n").listen { signals.add(1) }
    try remove()
    try signalled(signals)
    #expect(throws: WormholeError.self) { try container.value("v").read() }
    #expect(try !exists(path, at: Directory.current))
    withExtendedLifetime(listening) {}
  }

  @Test("is not made again if it was opened as a directory")
  func directoryStaysRemoved() throws {
    _ = try group()
    let container = try SharedContainer(path: path)
    try remove()
    let error = try #require(throws: WormholeError.self) {
      try container.value("v").replace(with: 1)
    }
    #expect(error.code == .containerMissing)
    #expect(throws: WormholeError.self) { try container.notification("n").post() }
    #expect(try !exists(path, at: Directory.current))
  }

  @Test("of a group is made again after a pause, so that the program finishes that removes it")
  func pause() throws {
    let container = try group()
    try remove()
    let removed = try fileStatus(directory.path + "/groups").modified
    try container.value("v").replace(with: 1)
    let made = try fileStatus(path + "/" + ContainerFormat.fileName).modified
    #expect(made.timeIntervalSince(removed) > 0.4)
  }
}
