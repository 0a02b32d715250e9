import Dispatch
import Testing
import WormholePropertyLists
import WormholeTestSupport
import WormholeToolkit

@testable import Wormhole
@testable import WormholeSystem

/// Two containers, and a link through which one of them is opened: `current/c`.
private struct Releases {
  let directory: TemporaryDirectory
  let container: SharedContainer

  init() throws {
    directory = try TemporaryDirectory()
    for release in ["1", "2"] {
      try makeDirectory(directory.path + "/" + release)
      try makeDirectory(directory.path + "/\(release)/c", mode: 0o700)
    }
    try Self.point(to: "1", in: directory)
    container = try SharedContainer(path: directory.path + "/current/c")
  }

  /// The container of a release, by its own path.
  func release(_ name: String) throws -> SharedContainer {
    try SharedContainer(path: directory.path + "/\(name)/c")
  }

  /// Points the link elsewhere in one step, as a deployment does.
  func point(to release: String) throws { try Self.point(to: release, in: directory) }

  private static func point(to release: String, in directory: TemporaryDirectory) throws {
    try directory.shell("ln -s '\(release)' new; mv -T new current")
  }
}

@Suite("A container whose path leads elsewhere after a change of a link", .blocking)
struct PointedElsewhereTests {
  private let releases: Releases
  private let queue = DispatchQueue(label: "test")

  init() throws { releases = try Releases() }

  @Test("has observers of values there within a second, who get the value of now, and later ones")
  func values() throws {
    try releases.container.value("v").replace(with: 1)
    try releases.release("2").value("v").replace(with: 2)
    let heard = Heard<PropertyListValue?>()
    let token = try releases.container.value("v").observe(on: queue) {
      heard.add(try? $0.propertyList())
    }
    try releases.point(to: "2")
    try eventually("the value there comes") { heard.all == [2] }
    try releases.release("1").value("v").replace(with: -1)
    try releases.release("2").value("v").replace(with: 3)
    try eventually("the next one comes") { heard.all == [2, 3] }
    try releases.point(to: "1")
    try eventually("the other one comes") { heard.all == [2, 3, -1] }
    withExtendedLifetime(token) {}
  }

  @Test("has observers of its notifications called for posts there from then on, once each")
  func notifications() throws {
    try releases.container.notification("n").post()
    try releases.release("2").value("v").replace(with: 2)
    let heard = Heard<Int>()
    let moved = Heard<Int>()
    let registration = try releases.container.notification("n").observe(on: queue) { _ in
      heard.add(1)
    }
    // The same queue and the same iteration of the monitor.
    let token = try releases.container.value("v").observe(on: queue) { _ in moved.add(1) }
    let checked = try releases.container.notification("n").register()
    _ = try checked.check()
    // While nobody hears it.
    try releases.release("2").notification("n").post()
    try releases.point(to: "2")
    try eventually("the value there comes") { !moved.all.isEmpty }
    let awaited = DispatchSemaphore(value: 0)
    ChangeMonitor.shared.afterEvents { awaited.signal() }
    awaited.wait()
    queue.sync {}
    #expect(heard.all.isEmpty)
    #expect(try !checked.check())
    for count in 1...3 {
      try releases.release("2").notification("n").post()
      try eventually("a post there is heard") { heard.all.count == count }
    }
    #expect(try checked.check())
    try releases.point(to: "1")
    try eventually("the value is gone") { moved.all.count == 2 }
    try releases.container.notification("n").post()
    try eventually("a post in the first one is heard") { heard.all.count == 4 }
    withExtendedLifetime((registration, token)) {}
  }

  @Test("has readers of its logs and observers of its presences there")
  func logsAndPresences() throws {
    let old = try releases.release("1").presence("p").enter()
    let heard = Heard<Int>()
    let token = try releases.container.presence("p").observe(on: queue) { heard.add($0.count) }
    try releases.point(to: "2")
    try eventually("nobody is present there") { heard.all == [0] }
    let new = try releases.release("2").presence("p").enter()
    try eventually("a process enters there") { heard.all == [0, 1] }
    withExtendedLifetime((old, new, token)) {}
  }

  @Test("is found again when the link was removed for a while")
  func removedLink() throws {
    let heard = Heard<PropertyListValue?>()
    try releases.container.value("v").replace(with: 1)
    let posts = Heard<Int>()
    let token = try releases.container.value("v").observe(on: queue) { snapshot in
      if !snapshot.isKnown, let value = try? snapshot.propertyList() { heard.add(value) }
    }
    let registration = try releases.container.notification("n").observe(on: queue) { _ in
      posts.add(1)
    }
    try removeFile(releases.directory.path + "/current")
    try eventually("the loss is noticed") {
      (try? releases.container.value("v").read()) == nil
    }
    try releases.point(to: "1")
    try releases.release("1").value("v").replace(with: 2)
    try releases.release("1").notification("n").post()
    try eventually("the new value is heard, and the post") { heard.all == [2] && posts.all == [1] }
    withExtendedLifetime((token, registration)) {}
  }

  @Test("costs an idle process no wake-up while others change something beside the link")
  func quiet() throws {
    let monitor = ChangeMonitor(checkInterval: .seconds(3_600))
    let path = releases.directory.path + "/current/c"
    let heard = Heard<Int>()
    let watch = monitor.watch(
      path: path, parents: [], way: path, prepare: {}, hear: { _ in heard.add(1) })
    let before = monitor.statistics.wakeUps
    for name in ["a", "b"] {
      try FileDescriptor.open(releases.directory.path + "/" + name, [.writeOnly, .create]).close()
      try makeDirectory(releases.directory.path + "/1/" + name)
    }
    let awaited = DispatchSemaphore(value: 0)
    monitor.afterEvents { awaited.signal() }
    awaited.wait()
    #expect(monitor.statistics.wakeUps <= before + 2 && heard.all.isEmpty)
    try releases.point(to: "2")
    try eventually("the change of the link is heard") { !heard.all.isEmpty }
    withExtendedLifetime(watch) {}
  }

  @Test("is found when a directory above it is moved, and another one takes its place")
  func movedDirectory() throws {
    let container = try releases.release("1")
    let heard = Heard<PropertyListValue?>()
    try releases.release("2").value("v").replace(with: 2)
    let token = try container.value("v").observe(on: queue) { snapshot in
      if let value = try? snapshot.propertyList() { heard.add(value) }
    }
    try releases.directory.shell("mv 1 old; mv 2 1")
    try eventually("the value of the other one comes") { heard.all == [2] }
    withExtendedLifetime(token) {}
  }
}
