import Dispatch
import Synchronization
import Testing
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import Wormhole
@testable import WormholeInspection

/// A notification that can be held while it is looked at.
private final class SlowPosts: PostStore, PostWatching {
  private struct State {
    var posted = 0
    var signal: @Sendable () -> Void = {}
    var holds = false
  }

  private let state = Mutex(State())
  let isLookedAt = DispatchSemaphore(value: 0)
  let goesOn = DispatchSemaphore(value: 0)

  let path = "posts"
  let detection = ChangeDetection.events

  func cancel() {}
  func remove(_ mark: PostMark) -> Bool { false }
  func hold() { state.withLock { $0.holds = true } }

  func post() {
    let signal = state.withLock { state in
      state.posted += 1
      return state.signal
    }
    signal()
  }

  func mark() -> PostMark {
    let (posted, holds) = state.withLock { state in
      defer { state.holds = false }
      return (state.posted, state.holds)
    }
    if holds {
      isLookedAt.signal()
      #expect(goesOn.wait(timeout: .now() + 30) == .success)
    }
    return PostMark([FileName("\(posted)")])
  }

  func mark(ofNow: Bool) -> PostMark { mark() }

  func listen(_ signal: @escaping @Sendable () -> Void) -> any PostWatching {
    state.withLock { $0.signal = signal }
    return self
  }
}

@Suite("A notification among others of its name", .blocking)
struct NotificationRaceTests {
  let directory: TemporaryDirectory
  let container: SharedContainer

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
  }

  private func shell(_ command: String) throws { try directory.shell(command) }

  @Test("is delivered although another post removes as surplus the very file that it would rename")
  func posts() throws {
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

  @Test("is one rename after a post of the same process, and found by a look after another's")
  func oneCall() throws {
    let calls = Heard<SystemCall>()
    let plan = Faults.Plan { call, _ in
      calls.add(call)
      return .proceed
    }
    // Asked for each time, as a program does that posts by a center.
    func post() throws { try container.notification("n").post() }
    let registration = try container.notification("n").register()
    _ = try registration.check()
    try post()
    for _ in 0..<3 {
      #expect(try registration.check())
      try Faults.$plan.withValue(plan) { try post() }
    }
    #expect(calls.all == [.renameat, .renameat, .renameat])
    #expect(try registration.check())
    let other = try Participant(directory.path)
    #expect(try other.ask("post n") == "done")
    #expect(try registration.check())
    try post()
    #expect(try registration.check())
    #expect(try !registration.check())
    // A sweep, and a directory that is new.
    try shell("rm -r notifications")
    _ = try registration.check()
    try post()
    #expect(try registration.check())
    let path = directory.path + "/notifications/n"
    #expect(try FileDescriptor.open(path, .readOnly).entries().count == 1)
  }

  @Test("comes once though its last resume meets a look at it")
  func resumed() throws {
    let posts = SlowPosts()
    let heard = Heard<Int>()
    let queue = DispatchQueue(label: "test")
    let registration = NotificationRegistration(container.notification("n"), posts: posts)
    try registration.begin(startsWithPast: false, on: queue) { _ in heard.add(1) }
    try registration.suspend()
    posts.post()
    queue.sync {}
    posts.hold()
    defer { posts.goesOn.signal() }
    posts.post()
    // Once it is looked at, or nobody looks as long as it is suspended.
    queue.async { posts.isLookedAt.signal() }
    #expect(posts.isLookedAt.wait(timeout: .now() + 30) == .success)
    try registration.resume()
    posts.goesOn.signal()
    // The look that is held, and those that it has caused.
    for _ in 0..<5 { queue.sync {} }
    #expect(heard.all == [1])
    posts.post()
    queue.sync {}
    #expect(heard.all == [1, 1])
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
