import Dispatch
import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import Wormhole
@testable import WormholeInspection

@Suite("Unused names", .blocking)
struct NameSweepTests {
  private let directory: TemporaryDirectory
  private let container: SharedContainer

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
  }

  private func names(_ part: String = "values") throws -> [String] {
    let place = try FileDescriptor.open(directory.path + "/" + part, [.readOnly, .directory])
    return try place.entries().map(\.name.text)
  }

  @Test("of notifications keep a post that came after the look")
  func postSinceLook() throws {
    let notification = container.notification("n")
    try notification.post()
    let posts = PostFile(root: container.root, name: "n")
    let look = try posts.mark()
    try notification.post()
    let later = try posts.mark()
    #expect(try !posts.remove(look) && posts.mark().marks == later.marks)
    #expect(later.marks != look.marks)
    #expect(try posts.remove(later) && posts.mark().marks.isEmpty)
  }

  private func shell(_ command: String) throws {
    let child = try ChildProcess("sh", ["-c", "cd '\(directory.path)' && " + command])
    #expect(try child.wait(until: soon) == .exited(0))
  }

  // NAMES=2000 sets the number of each kind.
  private static let count = Program.environment("NAMES").flatMap { Int($0) } ?? 50

  @Test("leave nothing after a sweep, whatever their use was, and can be used again")
  func nothingLeft() throws {
    let long = String(repeating: "long/", count: 100)
    let identifiers = (0..<Self.count).map { "job/\($0)" } + [long, ""]
    for identifier in identifiers {
      let value = container.value(identifier)
      try value.replace(with: 1)
      try value.update { $0 = nil }
      let own = container.own.value(identifier)
      try own.replace(with: 1)
      try own.remove()
      try container.notification(identifier).post()
      try container.presence(identifier).enter().close()
      try container.presence(identifier).enterExclusively().close()
      let queue = container.queue(identifier)
      let sender = try queue.sender("a")
      let id = try sender.enqueue(1, key: "k", keepsReceipt: true)
      let consumer = try queue.consume()
      try consumer.next(until: .now)?.fail("no")
      consumer.close()
      try sender.forget(id)
    }
    // Watched once, and never written: there is no such name.
    try container.value("never").observe(on: DispatchQueue(label: "never")) { _ in }.cancel()
    var gone: Set<String> = []
    // Lately removed entries are being flushed to the disk, and the flush holds the lease just now.
    func sweep(until isDone: () throws -> Bool) throws {
      try eventually("the names are gone: \(directory.listing)") {
        let swept = try container.sweep()
        #expect(swept.failures.isEmpty && swept.removed == [])
        gone.formUnion(swept.names)
        return try isDone()
      }
    }
    let atOnce = ["values", "own/values", "queues", "consumers"]
    try sweep { try atOnce.allSatisfy { try names($0).isEmpty } }
    #expect(gone.count == identifiers.count * 4)
    // These still record their last use.
    #expect(try names("notifications").count == identifiers.count)
    #expect(try names("presence").count == identifiers.count)
    try shell("touch -d '25 hours ago' notifications/* presence/*")
    try sweep {
      try names("notifications").isEmpty && names("presence").isEmpty
    }
    #expect(gone.count == identifiers.count * 6)
    for identifier in [long, ""] {
      try container.value(identifier).replace(with: 2)
      #expect(try container.value(identifier).read() == 2)
      let registration = try container.notification(identifier).register()
      _ = try registration.check()
      try container.notification(identifier).post()
      #expect(try registration.check())
      #expect(try container.presence(identifier).status() == .neverSeen)
    }
  }

  /// Sweeps until a name is removed: a program that another test starts has this process's locks until
  /// it runs.
  private func sweptNames() throws -> [String] {
    var names: [String] = []
    try eventually("a name is removed") {
      names = try container.sweep().names
      return !names.isEmpty
    }
    return names
  }

  @Test("stay while something is kept, or while a process uses them, of each kind")
  func stayOfEachKind() throws {
    try container.notification("state").setState(7)
    let registration = try container.presence("here").enter()
    let queue = container.queue("waiting")
    let id = try queue.sender("a").enqueue(1)
    let cancelled = try container.queue("noted").sender("a")
    try cancelled.cancel(cancelled.enqueue(1))
    let sent = try container.queue("sent").sender("a")
    try sent.enqueue(1, keepsReceipt: true)
    _ = try container.queue("sent").consume().next(until: .now)?.acknowledge()
    let consumer = try container.queue("consumed").consume()
    let attached = try container.queue("attached").sender("a").stage("x", bytes: 3)
    _ = try container.queue("watched").sender("a").enqueue(2)
    let ends = DispatchQueue(label: "ends")
    let watching = try container.queue("watched").sender("a")
    let awaited = try watching.enqueue(3)
    let waiter = Task { try await watching.finalStatus(of: awaited) }
    try eventually("it waits") { watching.ends.watches > 0 }
    let heard = Heard<Int>()
    let listening = try container.notification("heard").observe(on: ends) { _ in heard.add(1) }
    try container.notification("heard").post()
    try eventually("the observer is called") { heard.all.count == 1 }
    try shell("touch -d '25 hours ago' notifications/* presence/*")
    // A watch keeps no name; the observer notices the next post all the same.
    #expect(try sweptNames() == [directory.path + "/notifications/heard"])
    #expect(try container.notification("state").state() == 7)
    try registration.confirm()
    #expect(try queue.sender("a").status(of: id) == .stored)
    #expect(try cancelled.outcomes().count == 1)
    #expect(try sent.receipts().count == 1)
    try container.queue("consumed").sender("a").enqueue(5)
    #expect(try consumer.next(until: soon)?.payload == 5)
    withExtendedLifetime(attached) {}
    try container.notification("heard").post()
    try eventually("the observer is called again") { heard.all.count == 2 }
    waiter.cancel()
    listening.cancel()
    consumer.close()
    registration.close()
  }

  @Test("stay while they have a value, or while a process holds or awaits them")
  func stay() throws {
    try container.value("there").replace(with: 1)
    let heard = Heard<PropertyListValue?>()
    let watched = container.value("watched")
    try watched.replace(with: 1)
    try watched.remove()
    let observation = try watched.observe(on: DispatchQueue(label: "watched")) { snapshot in
      do { heard.add(try snapshot.propertyList()) } catch { Issue.record(error) }
    }
    let holder = try Participant(directory.path)
    let waiter = try Participant(directory.path)
    #expect(try holder.ask("hold held 1") == "holding")
    try waiter.tell("add held 10")
    try eventually("it waits") { try waiter.waitsForLease(of: "held", in: directory) }
    #expect(try sweptNames() == [directory.path + "/values/watched"])
    #expect(try Set(names()) == ["there", "held"])
    #expect(try holder.ask("go") == "done")
    #expect(try waiter.answer() == "done")
    #expect(try container.value("held").read() == 11)
    try watched.replace(with: 5)
    try eventually("the observer is called") { heard.all.last == .some(5) }
    observation.cancel()
    for participant in [holder, waiter] { try participant.end() }
  }

  @Test("that are removed while a stopped process has their lease open are observed again")
  func stoppedUser() throws {
    let value = container.value("k")
    let heard = Heard<PropertyListValue?>()
    let queue = DispatchQueue(label: "watched")
    let observation = try value.observe(on: queue) { snapshot in
      do { heard.add(try snapshot.propertyList()) } catch { Issue.record(error) }
    }
    let participant = try Participant(directory.path)
    for number in 1...3 { #expect(try participant.ask("set k \(number)") == "done") }
    try participant.send(.stop)
    try participant.waitUntilStopped()
    try value.remove()
    try eventually("the name is removed") { try container.removeEmptyName("k", .value) }
    // The events of the removal are over before the next change.
    let taken = Awaited<Void>()
    ChangeMonitor.shared.afterEvents { queue.async { taken.settle(()) } }
    try #require(taken.wait(until: soon) != nil)
    try value.replace(with: 4)
    // Before the next comparison of the watch with its path, once a minute.
    try eventually("the observer is called", within: .seconds(20)) { heard.all.last == .some(4) }
    observation.cancel()
    try participant.send(.continue)
    try participant.end()
  }

  @Test("that are watched and removed are observed again at their next use")
  func watchedAndRemoved() throws {
    let value = container.value("k")
    try value.replace(with: 0)
    try value.remove()
    let heard = Heard<PropertyListValue?>()
    let observation = try value.observe(on: DispatchQueue(label: "watched")) { snapshot in
      do { heard.add(try snapshot.propertyList()) } catch { Issue.record(error) }
    }
    for number in 1...5 {
      // The flush of what was published lately, or a child that is just starting, may hold the lock.
      try eventually("the name is removed") { try container.removeEmptyName("k", .value) }
      try value.replace(with: .integer(Int64(number)))
      try eventually("the observer is called") {
        heard.all.last == .some(.integer(Int64(number)))
      }
      try value.remove()
    }
    observation.cancel()
  }
}
