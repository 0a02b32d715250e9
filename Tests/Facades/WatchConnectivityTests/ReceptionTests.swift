import Dispatch
import Foundation
import Synchronization
import Testing
import Wormhole
import WormholePeers
import WormholeSystem
import WormholeTestSupport

@testable import WatchConnectivity

@Suite("The reception of transfers", .blocking)
struct ReceptionTests {
  @Test("goes on once it can be opened again, however often that fails before")
  func errors() async throws {
    let directory = try TemporaryDirectory()
    let container = try directory.container()
    let session = WCSession(nil)
    let setup = try SessionSetup(
      role: .watch, container: container, watchName: "watch", replyTimeout: .seconds(60))
    let link = try await SessionLink(session, setup)
    let peer = try PeerSession("other", in: container)
    _ = try await PeerSession("sender", in: container).enqueue(7, to: "other")

    let openings = Atomic(0)
    let delivered = Mutex<[PropertyListValue]>([])
    let reception = try await Reception<PeerMessage>(
      session,
      { _ in
        let (number, _) = openings.add(1, ordering: .relaxed)
        guard ![1, 2].contains(number) else {
          throw WormholeError(.inputOutput, "receive", reason: "the disk does not answer")
        }
        return try await peer.receiveMessages()
      },
      deliver: { _, message in
        let isFirst = delivered.withLock { values in
          values.append(message.value)
          return values.count == 1
        }
        return isFirst ? .leftForDelegate : .ended(failure: nil)
      })
    reception.start(link)
    try await eventuallyAsync("the first delivery is left") { delivered.withLock(\.count) == 1 }
    session.queue.async { reception.restart() }
    try await eventuallyAsync("it is delivered again", within: .seconds(60)) {
      delivered.withLock(\.count) == 2
    }
    #expect(delivered.withLock { $0 } == [7, 7])
    #expect(openings.load(ordering: .relaxed) == 4)
    reception.end()
    link.end()
  }

  @Test("of a file that cannot be put before the delegate is tried again, and reported once")
  func delayed() throws {
    let directory = try TemporaryDirectory()
    let container = try directory.container()
    let receiver = try PeerSession("watch", in: container).receiveMessages()
    try PeerSession("phone", in: container).enqueue(7, to: "watch")
    let events = Mutex<[String]>([])
    let attempts = Mutex(0)
    let before = Diagnostics.onEvent
    Diagnostics.onEvent = { event in
      before?(event)
      events.withLock { $0.append("\(event)") }
    }
    defer { Diagnostics.onEvent = before }
    let error = WormholeError(.noSpace, "put the file", reason: "the disk of this test is full")
    let handler: @Sendable (PeerMessage) -> PeerReceiver<PeerMessage>.Outcome = { _ in
      let number = attempts.withLock { attempts in
        attempts += 1
        return attempts
      }
      return number < 4 ? .delayed(error) : .ended(failure: nil)
    }
    receiver.offer(
      on: DispatchQueue(label: "delayed"), failure: { Issue.record($0) }, handler)
    try eventually("the fourth attempt is the last") { try receiver.isIdle() }
    #expect(attempts.withLock { $0 } == 4)
    #expect(events.withLock { $0.count { $0.contains("disk of this test") } } == 1)
    receiver.close()
  }
}

#if DEBUG
  extension ReceptionTests {
    @Test(
      "of a file that can have no second name ends", arguments: [EPERM, EOPNOTSUPP, EXDEV, EMLINK])
    func unlinkable(number: Int32) throws {
      let temporary = try TemporaryDirectory()
      let directory = ContainerDirectory("own/inbox", in: try temporary.container())
      try directory.make()
      let plan = Faults.Plan { call, _ in
        call == .linkat ? .fail(Errno(rawValue: number)) : .proceed
      }
      let error = #expect(throws: WormholeError.self) {
        try Faults.$plan.withValue(plan) { try directory.link("/etc/hostname", as: "file") }
      }
      #expect(try !ContainerDirectory.mayLinkLater(after: #require(error)))
    }

    @Test("by a phone keeps the directory of a watch that is paired while others are removed")
    func sweep() throws {
      for step in 0..<200 {
        let directory = try TemporaryDirectory()
        let setup = try SessionSetup(
          role: .phone, container: try directory.container(), watchName: "watch",
          replyTimeout: .seconds(60))
        try setup.phonePairing.pair(.init(name: "watch"))
        let old = try WatchDirectory.url(of: "old", in: setup)
        let plan = Faults.Plan.acting(before: step) {
          try setup.phonePairing.pair(.init(name: "new"))
          _ = try WatchDirectory.url(of: "new", in: setup)
        }
        try Faults.$plan.withValue(plan) { try WatchDirectory.sweep(setup) }
        #expect(!FileManager.default.fileExists(atPath: old.path), "step \(step)")
        guard try setup.phonePairing.state()["new"] != nil else { return }
        let new = old.deletingLastPathComponent().appending(path: "new").path
        #expect(FileManager.default.fileExists(atPath: new), "step \(step)")
      }
      Issue.record("the sweep never ends")
    }
  }
#endif
