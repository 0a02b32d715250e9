import Foundation
import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import Wormhole

@Suite(
  "A lease that its process keeps open", .blocking,
  .enabled(if: FileSystemKind(magic: 0x0102_1994).showsEachChange))
struct KeptLeaseTests {
  private let scene: LeaseScene
  private var value: PlainValue { scene.value }
  private var root: ContainerRoot { value.container.root }

  init() throws { scene = try LeaseScene() }

  private func taken() throws -> HeldLease { try takenWithDirectory().lease }

  /// Changes the value again if the lease was closed, a second after the last change.
  private func takenWithDirectory() throws -> (lease: HeldLease, directory: HeldDirectory) {
    var taken = try take()
    while taken == nil {
      try value.replace(with: 1)
      taken = try take()
    }
    return try #require(taken)
  }

  private func take() throws -> (lease: HeldLease, directory: HeldDirectory)? {
    let keptLease = try #require(value.store.file.keptLease)
    guard let lease = try keptLease.take(term: .seconds(600)) else { return nil }
    lease.keepOpen(as: keptLease)
    return (HeldLease(lease), lease.held)
  }

  @Test("stays open from change to change")
  func again() throws {
    try eventually("three changes within a second") {
      try value.replace(with: 1)
      return try (0..<3).allSatisfy { _ in
        let taken = try take()
        taken?.lease.end()
        return taken != nil
      }
    }
  }

  @Test(
    "is not kept on a file system that is mounted below the container: its times may show no change"
  )
  func mountedBelow() throws {
    let own = try root.handle().status.device
    #expect(root.showsEachChange(on: own))
    #expect(!root.showsEachChange(on: own &+ 1))
  }

  @Test("leaves no lock to a forked child, if it is not kept again")
  func inherited() throws {
    var copies: [Int32] = []
    defer { for copy in copies { close(copy) } }
    try eventually("it is taken again within a second") {
      try value.replace(with: 1)
      let lease = try value.store.file.keptLease?.take(term: .seconds(600))
      // As the child has it.
      if let lease { copies.append(dup(lease.held.descriptor.rawValue)) }
      return lease != nil
    }
    try value.replace(with: 2, until: .now)
  }

  @Test("is closed if a process was holder since, and was killed")
  func killedHolder() throws {
    try value.replace(with: 1)
    let holder = try Participant(scene.directory.path)
    #expect(try holder.ask("long k 1") == "holding")
    try holder.send(.kill)
    #expect(try holder.wait() == .killed(signal: 9))
    try value.replace(with: 2)
    #expect(scene.litter == ["held"], "\(scene.directory.listing)")
  }

  @Test("is closed if a process has removed the kept version since")
  func removedKeptVersion() throws {
    for _ in 0..<3 { try value.replace(with: 1) }
    let other = try SharedContainer(path: scene.directory.path).value("k")
    try other.replace(with: 3, durability: .durable)
    #expect(try !scene.names().contains { $0.hasPrefix(KeptVersion.prefix) })
    try value.replace(with: 4)
    #expect(try scene.names().contains { $0.hasPrefix(KeptVersion.prefix) })
  }

  @Test("is held by one thread or process at a time")
  func heldOnce() throws {
    try value.replace(with: 1)
    let held = try taken()
    #expect(throws: WormholeError.self) { try value.replace(with: 2, until: .now) }
    held.end()
    try value.replace(with: 2, until: .now)
  }

  @Test("wakes its waiters when it is unlocked and not closed")
  func waiters() throws {
    let far = ContinuousClock.now + .seconds(30)
    try value.replace(with: 1)
    // Kept open beyond the second after which it would be closed.
    let (held, directory) = try takenWithDirectory()
    defer { withExtendedLifetime(directory) {} }
    let waiting = try scene.request()
    guard try LeaseScene.isWaiting(waiting) else {
      Issue.record("the lease is held")
      return
    }
    // Drains the events of its own looks.
    waiting.latch.block(until: .now + .milliseconds(100))
    held.end()
    waiting.latch.block(until: far)
    #expect(ContinuousClock.now < far)
    try LeaseScene.finish(waiting).end()
  }

  @Test("wakes the process that waits for its turn, without an event")
  func handedOver() throws {
    try value.replace(with: 1)
    let (held, _) = try takenWithDirectory()
    let far = ContinuousClock.now + .seconds(30)
    let request = try scene.request(keeping: value.store.file.keptLease)
    while true {
      let step = try request.step()
      guard case .handOver(let counter, let seen, _) = step else {
        _ = step.block()
        continue
      }
      // It was waited for lately, so its release looks for waiters.
      held.end()
      #expect(counter.wait(unlessChangedFrom: seen, atMost: .seconds(60)))
      break
    }
    #expect(ContinuousClock.now < far)
    try LeaseScene.finish(request).end()
  }

  @Test(
    "is handed over or not, whatever its marker is",
    arguments: [
      "true", "printf 1234567 > clean", "truncate -s 1G clean", "rm clean && mkdir clean",
      "rm clean && mkfifo clean", "rm clean && ln -s /dev/zero clean",
      "printf precious > ../../../../precious && ln -f ../../../../precious clean",
    ])
  func hostileMarker(_ plant: String) throws {
    try value.replace(with: 0)
    func shell(_ script: String) throws {
      try scene.directory.shell(script, in: "values/k/lease/held")
    }
    try shell(plant)
    let processes = try (0..<4).map { _ in try Participant(scene.directory.path) }
    let times = 50
    for _ in 0..<times { for process in processes { try process.tell("add k 1") } }
    // Shortened while some of them wait at it.
    for _ in 0..<times {
      try shell("[ ! -f clean ] || [ $(stat -c %h clean) -gt 1 ] || truncate -cs 0 clean")
    }
    for process in processes {
      for _ in 0..<times { #expect(try process.answer() == "done") }
    }
    #expect(try value.read() == .integer(Int64(processes.count * times)))
    try shell("[ ! -e ../../../../precious ] || [ $(cat ../../../../precious) = precious ]")
  }

  @Test("is taken over from a stopped process as any other")
  func stoppedHolder() throws {
    let holder = try Participant(scene.directory.path)
    for _ in 0..<3 { #expect(try holder.ask("set k 5") == "done") }
    #expect(try holder.ask("once k 1") == "holding")
    try holder.send(.stop)
    try holder.waitUntilStopped()
    try value.replace(with: 6)
    try holder.send(.continue)
    #expect(try holder.ask("go").hasPrefix("error leaseLost"))
    #expect(try value.read() == 6)
    #expect(try holder.ask("add k 1") == "done")
    #expect(try value.read() == 7)
  }

  @Test("is one of a few, and is closed a second later")
  func bounded() throws {
    for number in 0..<40 {
      try value.container.value("\(number)").replace(with: 1)
    }
    #expect((1...16).contains(root.keptLeases.count))
    try eventually("all are closed") { root.keptLeases.count == 0 }
  }

  @Test("is closed at once if nothing would close it a second later")
  func unattended() throws {
    for _ in 0..<3 { try value.replace(with: 1) }
    try eventually("all are closed") { root.followUps.isDone && root.keptLeases.count == 0 }
    let keptLease = try #require(value.store.file.keptLease)
    var lease: Lease? = try scene.request(keeping: keptLease).run()
    lease?.keepOpen(as: keptLease)
    lease = nil
    #expect(root.keptLeases.count == 0)
    #expect(try keptLease.take(term: .seconds(600)) == nil)
  }

  @Test("is not that of a container that was replaced")
  func replacedContainer() throws {
    let path = scene.directory.path + "/c"
    try makeDirectory(path)
    let container = try SharedContainer(path: path)
    let value = container.value("k")
    try value.replace(with: 1)
    try rename(path, at: Directory.current, to: path + "-old", at: Directory.current)
    try makeDirectory(path)
    _ = try container.root.refreshed(container.root.lastHandle)
    try value.replace(with: 2)
    #expect(try SharedContainer(path: path).value("k").read() == 2)
    #expect(try SharedContainer(path: path + "-old").value("k").read() == 1)
  }
}
