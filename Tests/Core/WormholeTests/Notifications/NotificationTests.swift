import Dispatch
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

/// The rules are those of notify(3) and of its own tests; each test names its rule.
@Suite("A notification", .blocking, .bothEngines)
struct NotificationTests {
  let directory: TemporaryDirectory
  let container: SharedContainer
  let queue = DispatchQueue(label: "test")

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
  }

  @Test("may be posted without a listener, and reaches all processes, including the poster's")
  func post() throws {
    try container.notification("n").post()
    let heard = Heard<Int>()
    let first = try container.notification("n").observe(on: queue) { _ in heard.add(1) }
    let second = try container.notification("n").observe(on: queue) { _ in heard.add(2) }
    try container.notification("n").post()
    try eventually("both registrations are called") { Set(heard.all) == [1, 2] }
    let count = heard.all.count
    let other = try Participant(directory.path)
    #expect(try other.ask("post n") == "done")
    try eventually("another process's post is delivered") { heard.all.count == count + 2 }
    withExtendedLifetime((first, second)) {}
  }

  @Test("is checked true at first, then only if it was posted since")
  func check() throws {
    let registration = try container.notification("n").register()
    #expect(try registration.check())
    #expect(try !registration.check())
    let other = try Participant(directory.path)
    for _ in 0..<3 { #expect(try other.ask("post n") == "done") }
    #expect(try registration.check())
    #expect(try !registration.check(), "posts are not counted")
    let late = try container.notification("n").register()
    #expect(try late.check(), "each registration has a first check")
  }

  @Test("is as if it had never been used after its removal, which calls nobody")
  func removal() throws {
    let notification = container.notification("n")
    #expect(try !notification.remove())
    let heard = Heard<Int>()
    let observer = try notification.observe(on: queue) { _ in heard.add(1) }
    let registration = try notification.register()
    try notification.setState(7)
    try notification.post()
    try eventually("the post is delivered") { heard.all == [1] }
    #expect(try registration.check())
    let other = try Participant(directory.path)
    #expect(try other.ask("forget n") == "true")
    #expect(try notification.state() == 0)
    #expect(try !notification.isUsed() && !notification.remove())
    #expect(try !registration.check() && container.notification("n").register().check())
    try notification.post()
    try eventually("the next post is delivered") { heard.all == [1, 1] }
    #expect(try registration.check())
    withExtendedLifetime(observer) {}
  }

  @Test("is held back while it is suspended, which nests, and comes once at the last resume")
  func suspension() throws {
    let heard = Heard<Int>()
    let suspended = try container.notification("n").observe(on: queue) { _ in heard.add(1) }
    let other = try container.notification("n").observe(on: queue) { _ in heard.add(2) }
    try suspended.suspend()
    try suspended.suspend()
    for number in 1...3 {
      try container.notification("n").post()
      try eventually("the other one is called") { heard.all.filter { $0 == 2 }.count >= number }
    }
    try suspended.resume()
    try container.notification("n").post()
    try eventually("the other one is called") { heard.all.filter { $0 == 2 }.count >= 4 }
    #expect(!heard.all.contains(1))
    try suspended.resume()
    try eventually("the posts meanwhile arrive as one") { heard.all.contains(1) }
    try container.notification("n").post()
    try eventually("the next is delivered again") { heard.all.filter { $0 == 1 }.count == 2 }
    try suspended.resume()
    withExtendedLifetime(other) {}
  }

  @Test("has one 64-bit state for all processes, which setting does not post")
  func state() throws {
    let heard = Heard<Int>()
    let registration = try container.notification("n").observe(on: queue) { _ in heard.add(1) }
    #expect(try registration.state() == 0)
    for state in [1, UInt64.max, 0, 1 << 63] {
      try registration.setState(state)
      #expect(try container.notification("n").state() == state)
    }
    let other = try Participant(directory.path)
    #expect(try other.ask("state n 77") == "done")
    #expect(try registration.state() == 77)
    #expect(heard.all.isEmpty)
    try container.notification("n").post()
    try eventually("only the post is delivered") { heard.all == [1] }
  }

  @Test("is over when it is cancelled, even in its own handler")
  func cancel() throws {
    let heard = Heard<Int>()
    let registration = try container.notification("n").observe(on: queue) { registration in
      heard.add(1)
      registration.cancel()
    }
    let control = try container.notification("n").observe(on: queue) { _ in heard.add(2) }
    for number in 1...2 {
      try container.notification("n").post()
      try eventually("the control is called") { heard.all.filter { $0 == 2 }.count == number }
    }
    try eventually("the first one ended itself") { !registration.isValid }
    try container.notification("n").post()
    try eventually("the control is called") { heard.all.filter { $0 == 2 }.count == 3 }
    #expect(heard.all.filter { $0 == 1 }.count == 1)
    #expect(throws: WormholeError.self) { try registration.check() }
    #expect(throws: WormholeError.self) { try registration.suspend() }
    withExtendedLifetime(control) {}
  }

  @Test("in a burst is delivered at least once after its last post")
  func coalesces() throws {
    let posted = Heard<Int>()
    let heardAt = Heard<Int>()
    let registration = try container.notification("n").observe(on: queue) { _ in
      heardAt.add(posted.all.count)
    }
    for number in 1...300 {
      posted.add(number)
      try container.notification("n").post()
    }
    try eventually("a call comes after the last post") { heardAt.all.last == 300 }
    #expect(heardAt.all.count <= 300)
    withExtendedLifetime(registration) {}
  }

  @Test("is either posted or not when its poster is killed at any step; others go on")
  func killedAtEveryStep() throws {
    for isFirstPost in [true, false] {
      let counting = try Participant(directory.path)
      if !isFirstPost { try container.notification("again").post() }
      let name = isFirstPost ? "first" : "again"
      let calls = try counting.calls(of: "post \(name)")
      for place in 0..<calls {
        let name = isFirstPost ? "first-\(place)" : "again"
        let victim = try Participant(directory.path)
        try victim.tell("die \(place) post \(name)")
        // One call fewer is made if the directory above exists already.
        try victim.tell("die 0 post \(name)")
        #expect(try victim.wait() == .killed(signal: 9))
        let registration = try container.notification(name).register()
        _ = try registration.check()
        try container.notification(name).post()
        #expect(try registration.check(), "killed before call \(place)")
        let path = directory.path + "/notifications/" + name
        let posts = try FileDescriptor.open(path, .readOnly).entries()
        #expect(posts.count == 1, "\(directory.listing)")
      }
    }
  }

  @Test("of one container is not delivered in another, or under another name")
  func namespaces() throws {
    let elsewhere = try TemporaryDirectory()
    let heard = Heard<Int>()
    let same = try elsewhere.container().notification("n").observe(on: queue) { _ in heard.add(1) }
    let other = try container.notification("N").observe(on: queue) { _ in heard.add(2) }
    let right = try container.notification("n").observe(on: queue) { _ in heard.add(3) }
    try container.notification("n").post()
    try eventually("it is delivered") { heard.all == [3] }
    withExtendedLifetime((same, other, right)) {}
  }

  @Test("has a Darwin-like center: observers are added, called, and removed")
  func center() throws {
    final class Owner {}
    let center = DarwinNotificationCenter(container: container)
    let owners = (Owner(), Owner())
    let heard = Heard<String>()
    try center.addObserver(owners.0, name: "a", queue: queue) { heard.add("0\($0)") }
    try center.addObserver(owners.0, name: "b", queue: queue) { heard.add("0\($0)") }
    try center.addObserver(owners.1, name: "a", queue: queue) { heard.add("1\($0)") }
    try center.postNotification(name: "a")
    try eventually("both observers of a are called") { Set(heard.all) == ["0a", "1a"] }
    center.removeObserver(owners.0, name: "a")
    try center.postNotification(name: "a")
    try center.postNotification(name: "b")
    try eventually("the others are called") { heard.all.sorted() == ["0a", "0b", "1a", "1a"] }
    center.removeEveryObserver(owners.0)
    try center.postNotification(name: "b")
    try center.postNotification(name: "a")
    try eventually("the other one is called") { heard.all.filter { $0 == "1a" }.count == 3 }
    #expect(heard.all.filter { $0 == "0b" }.count == 1)
  }

  @Test("resumed more often than suspended, or without a post, is unaffected")
  func unevenSuspension() throws {
    let heard = Heard<Int>()
    let registration = try container.notification("n").observe(on: queue) { _ in heard.add(1) }
    try registration.resume()
    try registration.resume()
    for round in 1...2 {
      try registration.suspend()
      try registration.suspend()
      try container.notification("n").post()
      let control = Heard<Int>()
      let other = try container.notification("n").observe(on: queue) { _ in control.add(1) }
      try container.notification("n").post()
      try eventually("the others are called") { !control.all.isEmpty }
      try registration.resume()
      queue.sync {}
      #expect(heard.all.count == round - 1, "one suspension is left")
      try registration.resume()
      try eventually("the posts meanwhile are one") { heard.all.count == round }
      // After this there is nothing to deliver either.
      try registration.suspend()
      try registration.resume()
      queue.sync {}
      #expect(heard.all.count == round)
      other.cancel()
    }
  }

  @Test("is suspended 255 times deep at most, as in notify_suspend(3)")
  func deepSuspension() throws {
    let heard = Heard<Int>()
    let registration = try container.notification("n").observe(on: queue) { _ in heard.add(1) }
    for _ in 0..<300 { try registration.suspend() }
    try container.notification("n").post()
    for _ in 0..<255 { try registration.resume() }
    try eventually("it is delivered") { heard.all == [1] }
  }

  @Test("that is cancelled while a call waits for its queue is not called any more")
  func cancelledBeforeItsCall() throws {
    let heard = Heard<Int>()
    let held = DispatchQueue(label: "held")
    let registration = try container.notification("n").observe(on: held) { _ in heard.add(1) }
    let control = try container.notification("n").observe(on: queue) { _ in heard.add(2) }
    held.suspend()
    try container.notification("n").post()
    try eventually("the other one is called") { heard.all == [2] }
    registration.cancel()
    held.resume()
    try container.notification("n").post()
    try eventually("the other one is called") { heard.all.count == 2 }
    held.sync {}
    #expect(heard.all == [2, 2])
    #expect(registration.detection == nil)
    withExtendedLifetime(control) {}
  }

  @Test(
    "whose state is not a number is an error, never a state", .onlyDirectories("it writes the file")
  )
  func damagedState() throws {
    let notification = container.notification("n")
    try notification.setState(1)
    let file = try FileDescriptor.open(
      directory.path + "/notifications/n/state.plist", [.writeOnly, .truncate])
    try file.writeAll(Array("<plist><string>x</string></plist>".utf8))
    let error = #expect(throws: WormholeError.self) { try notification.state() }
    #expect(error?.code == .damaged)
    try notification.setState(2)
    #expect(try notification.state() == 2)
  }

  @Test(
    "posted by two at once is posted, before whichever step the other one posts",
    .onlyDirectories("the steps are system calls"))
  func twoPosters() throws {
    #if DEBUG
      for isFirst in [true, false] {
        var place = 0
        var wasReached = true
        while wasReached {
          let notification = container.notification("\(isFirst)-\(isFirst ? place : 0)")
          let path = directory.path + "/notifications/" + notification.name
          /// Posts as a process that does not know the last post.
          @Sendable func post() throws {
            try directory.container().notification(notification.name).post()
          }
          if !isFirst {
            try post()
            // The files that two first posters at once leave.
            try FileDescriptor.open(path + "/bell-second", [.writeOnly, .create]).close()
          }
          let reached = Heard<Int>()
          let current = place
          let other = Faults.Plan.acting(before: current) {
            reached.add(current)
            try post()
          }
          let registration = try notification.register()
          _ = try registration.check()
          let poster = try directory.container().notification(notification.name)
          try Faults.$plan.withValue(other) { try poster.post() }
          #expect(try registration.check())
          #expect(try !registration.check())
          try post()
          #expect(try registration.check())
          #expect(try FileDescriptor.open(path, .readOnly).entries().count == 1)
          wasReached = !reached.all.isEmpty
          place += 1
        }
        #expect(place > 3)
      }
    #endif
  }

  @Test(
    "is silence while it cannot be looked at, and then heard once",
    .onlyDirectories("it puts a file in the directory's place"))
  func unreadable() throws {
    let heard = Heard<Int>()
    try container.notification("n").post()
    let registration = try container.notification("n").observe(on: queue) { _ in heard.add(1) }
    let signals = Heard<Int>()
    let listening = try PostFile(root: container.root, name: "n").listen { signals.add(1) }
    let place = directory.path + "/notifications/"
    try rename(place + "n", at: Directory.current, to: place + "away", at: Directory.current)
    try FileDescriptor.open(place + "n", [.writeOnly, .create]).close()
    try eventually("looks fail") { signals.all.count > 5 }
    queue.sync {}
    #expect(heard.all.isEmpty)
    try removeFile(place + "n")
    try rename(place + "away", at: Directory.current, to: place + "n", at: Directory.current)
    try container.notification("n").post()
    try eventually("it is called") { !heard.all.isEmpty }
    queue.sync {}
    #expect(heard.all == [1])
    withExtendedLifetime((registration, listening)) {}
  }

  @Test(
    "as a sequence comes for each post, and ends with its task",
    .onlyDirectories("it looks at the kernel's watches"))
  func posts() async throws {
    let notification = container.notification("n")
    let posts = try notification.posts()
    let heard = Heard<Int>()
    let task = Task { for await _ in posts { heard.add(1) } }
    for count in 1...2 {
      try notification.post()
      try await eventuallyAsync("it is delivered") { heard.all.count == count }
    }
    #expect(try KernelWatches.contain(directory.path + "/notifications/n"))
    task.cancel()
    await task.value
    #expect(try !KernelWatches.contain(directory.path + "/notifications/n"))
  }
}
