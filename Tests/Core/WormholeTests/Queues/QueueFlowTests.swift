import Dispatch
import Synchronization
import Testing
import Wormhole
import WormholePropertyLists
import WormholeTestSupport

@testable import WormholeSystem

#if DEBUG
  /// A sender and a consumer process that are killed again and again while messages flow, each time
  /// before a different one of the system calls for one message, so that all are covered.
  @Suite("While messages flow", .blocking)
  struct QueueFlowTests {
    enum Victims: String, CaseIterable {
      case sender, consumer, both
    }

    /// QUEUE_FLOW_MESSAGES=10000 sets the number of messages.
    private static let messages =
      Program.environment("QUEUE_FLOW_MESSAGES").flatMap { Int($0) } ?? 700

    @Test(
      "kill -9 at any step loses none, reorders none, and repeats only marked ones",
      arguments: Victims.allCases)
    func killed(victims: Victims) throws {
      let scene = try QueueScene()
      let flow = Flow(scene, Self.messages)
      let steps = try flow.steps()
      #expect(steps.sending > 5 && steps.consuming > 5)
      let kills = Mutex(0)
      let group = DispatchGroup()
      let consumerSteps = victims == .sender ? 0 : steps.consuming
      Blocking.queue().async(group: group) {
        do {
          let count = try flow.consume(dying: consumerSteps)
          kills.withLock { $0 += count }
        } catch {
          Issue.record(error, "consumer")
        }
      }
      let count = try flow.send(dying: victims == .consumer ? 0 : steps.sending)
      group.wait()
      kills.withLock { $0 += count }
      let hits = kills.withLock { $0 }
      print("\(victims.rawValue): \(Self.messages) messages, \(hits) processes killed")
      #expect(hits >= (victims == .both ? 10 : 5))
      try flow.check()
    }
  }

  private struct Flow {
    let scene: QueueScene
    /// The last number; each attempt to send has its own.
    let last: Int
    private var sent: String { scene.directory.path + "/sent" }
    private var handled: String { scene.directory.path + "/handled" }

    init(_ scene: QueueScene, _ messages: Int) {
      self.scene = scene
      last = messages - 1
    }

    /// Returns the number of system calls for one more message.
    func steps() throws -> (sending: Int, consuming: Int) {
      let trial = try QueueScene()
      let process = try trial.participant()
      let log = trial.directory.path + "/log"
      try trial.queue.sender("b").enqueue(0)
      let one = try process.calls(of: "queue-send q a 0 1 \(log)")
      let two = try process.calls(of: "queue-send q a 1 2 \(log)")
      let few = try process.calls(of: "queue-work q \(log)")
      try trial.queue.sender("b").enqueue(0)
      let none = try process.calls(of: "queue-work q \(log)")
      return (two - one, (few - none) / 3)
    }

    /// - Parameter steps: The number of deaths, each one call later within a message, spread over
    ///   all messages.
    /// - Returns: The number of kills.
    func send(dying steps: Int) throws -> Int {
      var kills = 0
      for step in 0..<steps {
        let first = try next()
        guard first < last else { break }
        let calls = (last / (steps + 1) + 2) * steps + step
        let command = "queue-send q a \(first) \(last - first) \(sent)"
        if try isKilled("die \(calls) \(command)") { kills += 1 }
      }
      let first = try next()
      let final = try scene.participant()
      #expect(try final.ask("queue-send q a \(first) \(max(last - first, 0)) \(sent)") == "done")
      #expect(try final.ask("queue-send q a \(last) 1 \(sent)") == "done")
      return kills
    }

    // The message that was being sent at the death may be stored or not, so another number is used.
    private func next() throws -> Int {
      try scene.logged(sent).last.flatMap { Int($0) }.map { $0 + 2 } ?? 0
    }

    func consume(dying steps: Int) throws -> Int {
      var kills = 0
      for step in 0..<steps {
        // Becoming the consumer also takes some calls: the first deaths are there.
        let calls = step == 0 ? 40 : (last / (steps + 1) / 2 + 20) * steps + step
        if try isKilled("die \(calls) queue-follow q \(last) \(handled)") { kills += 1 }
        guard try !isDone() else { return kills }
      }
      let final = try scene.participant()
      #expect(try final.ask("queue-follow q \(last) \(handled)") == "done")
      return kills
    }

    private func isDone() throws -> Bool {
      try scene.logged(handled).contains { $0.split(separator: " ").dropFirst().first == "\(last)" }
        && scene.leftovers().isEmpty
    }

    private func isKilled(_ command: String) throws -> Bool {
      try scene.participant().dies(of: command, within: .seconds(120))
    }

    func check() throws {
      let stored = try scene.logged(sent).compactMap { Int($0) }
      var seen: Set<Int> = []
      var order: [Int] = []
      for line in try scene.logged(handled) {
        let delivered = try #require(QueueScene.Delivered(line: line))
        if seen.insert(delivered.number).inserted {
          order.append(delivered.number)
        } else {
          #expect(delivered.isRedelivery, "\(delivered) came twice and is not marked")
        }
      }
      #expect(order == order.sorted(), "reordered")
      #expect(seen.isSuperset(of: stored), "lost: \(Set(stored).subtracting(seen).sorted())")
      #expect(seen.contains(last))
      // The next consumer sweeps the entries of the dead.
      #expect(try scene.drain().isEmpty)
      #expect(try scene.leftovers().isEmpty, "\(scene.directory.listing)")
    }
  }
#endif
