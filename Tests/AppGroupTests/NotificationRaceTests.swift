import Dispatch
import Testing
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeInspection

@Suite("A notification among others of its name", .blocking)
struct NotificationRaceTests {
  let directory: TemporaryDirectory
  let container: SharedContainer

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
  }

  private func shell(_ command: String) throws {
    let child = try ChildProcess("sh", ["-c", "cd '\(directory.path)' && " + command])
    #expect(try child.wait(until: .now + .seconds(30)) == .exited(0))
  }

  @Test("is delivered although another post removes as surplus the very bell that it would ring")
  func bells() throws {
    let notification = container.notification("n")
    let registration = try notification.register()
    _ = try registration.check()
    try shell("mkdir -p notifications/n && cd notifications/n && touch bell-1 bell-2")
    let path = directory.path + "/notifications/n"
    let plan = Faults.Plan { call, _ in
      guard call == .renameat else { return .proceed }
      return Faults.$plan.withValue(nil) {
        do {
          let place = try FileDescriptor.open(path, [.readOnly, .directory])
          if let first = try place.entries().first {
            try removeFile(first.name, at: place.rawValue)
          }
        } catch { Issue.record(error) }
        return .proceed
      }
    }
    try Faults.$plan.withValue(plan) { try notification.post() }
    #expect(try registration.check())
    #expect(try FileDescriptor.open(path, .readOnly).entries().count == 1)
  }

  @Test("compares its names by their bytes")
  func center() throws {
    final class Owner {}
    let owner = Owner()
    let heard = Heard<String>()
    let center = DarwinNotificationCenter(container: container)
    let queue = DispatchQueue(label: "test")
    try center.addObserver(owner, name: "\u{e9}", queue: queue) { _ in heard.add("one") }
    try center.addObserver(owner, name: "e\u{301}", queue: queue) { _ in heard.add("two") }
    center.removeObserver(owner, name: "e\u{301}")
    try center.postNotification(name: "\u{e9}")
    try eventually("the other one is called", within: .seconds(3)) { heard.all == ["one"] }
  }
}
