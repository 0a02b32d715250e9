import FoundationEssentials
import Testing
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import WormholeFiles

/// COORDINATION_UPDATES sets the number of updates of each process, instead of the few of an
/// ordinary run.
@Suite("Many processes that change one JSON file", .blocking)
struct LostUpdateTests {
  private static let processes = 8
  private static let updates =
    Program.environment("COORDINATION_UPDATES").flatMap { Int($0) } ?? 20

  /// The fate of one of the processes, after a number of its updates.
  private struct Trouble {
    let process: Int
    let update: Int
    let signal: Signal
  }

  // each process               this process
  // reads, adds one, publishes
  //                            stops two of them and kills one, each after one of its updates
  //                            continues the two when others have made updates since
  @Test("lose no update while two of them are stopped and one is killed")
  func noneLost() throws {
    let scene = try RaceScene()
    let counter = SharedCounter()
    try JSONEncoder().encode(counter).write(to: scene.url("counter.json"))
    let seed = TestSeed.next("COORDINATION_SEED")
    var generator = seed.generator
    let all = Array(0..<Self.processes)
    let troubled = all.shuffled(using: &generator).prefix(3)
    let troubles = zip(troubled, [Signal.stop, .stop, .kill]).map {
      Trouble(
        process: $0, update: Int.random(in: 1..<Self.updates, using: &generator), signal: $1)
    }
    let participants = try all.map { _ in try scene.participant() }
    for (number, participant) in participants.enumerated() {
      try participant.tell("count \(scene.path("counter.json")) p\(number) \(Self.updates)")
    }
    let acknowledged = try follow(participants, troubles, scene.path("counter.json"))
    let victim = try #require(troubles.last?.process)

    let end = try SharedCounter.read(scene.path("counter.json"))
    #expect(end.isWhole, "\(seed)")
    for number in all where number != victim {
      #expect(end.each["p\(number)"] == Self.updates, "\(seed)")
    }
    // It may have died between its publication and its answer.
    let counted = end.each["p\(victim)"] ?? 0
    #expect([acknowledged, acknowledged + 1].contains(counted), "\(seed)")
    // A later access has removed the killed one's remains, or this one does.
    try FileCoordinator().coordinate(writingItemAt: scene.url("counter.json")) { _ in }
    // What a stopped one had written when another took its access over is kept; it has counted again.
    let kept = try scene.names().filter { $0.hasPrefix("counter.json.conflict-") }
    #expect(kept.count <= 2, "\(seed) \(kept)")
    for copy in kept {
      #expect(try SharedCounter.read(scene.path(copy)).isWhole, "\(seed) \(copy)")
      try removeFile(scene.path(copy), at: Directory.current)
    }
    try scene.expectOnly(["counter.json"], "\(seed)")
  }

  /// Follows the processes to their end.
  ///
  /// - Returns: The number of updates that the killed one answered.
  private func follow(_ participants: [Participant], _ troubles: [Trouble], _ path: String) throws
    -> Int
  {
    var counts = participants.map { _ in 0 }
    var stopped: [(participant: Participant, total: Int)] = []
    var running = Set(participants.indices)
    var acknowledged = 0
    var turn = 0
    while !running.isEmpty {
      let number = turn % participants.count
      turn += 1
      let total = stopped.isEmpty ? 0 : try SharedCounter.read(path).total
      let resumed = stopped.filter { total > $0.total + 5 || running.count == stopped.count }
      for (participant, _) in resumed { try participant.send(.continue) }
      stopped.removeAll { entry in resumed.contains { $0.participant === entry.participant } }
      guard running.contains(number),
        !stopped.contains(where: { $0.participant === participants[number] })
      else { continue }
      let answer = try participants[number].answer(within: .seconds(120))
      guard let count = Int(answer) else {
        #expect(answer == "done", "process \(number)")
        running.remove(number)
        continue
      }
      counts[number] = count
      for trouble in troubles where trouble.process == number && trouble.update == count {
        try participants[number].send(trouble.signal)
        if trouble.signal == .stop {
          try participants[number].waitUntilStopped()
          stopped.append((participants[number], try SharedCounter.read(path).total))
        } else {
          #expect(try participants[number].wait(within: .seconds(30)) == .killed(signal: 9))
          acknowledged = try lastAnswer(participants[number]) ?? count
          running.remove(number)
        }
      }
    }
    return acknowledged
  }

  // The answers from before its death that were not read yet.
  private func lastAnswer(_ participant: Participant) throws -> Int? {
    var last: Int?
    do {
      while true { last = Int(try participant.answer()) ?? last }
    } catch is Participant.Failure {
      return last
    }
  }
}
