import NSFileCoordination
import Testing
import WormholeFoundationClients
import WormholeSystem
import WormholeTestSupport

/// COORDINATION_UPDATES sets the number of edits of each thread, instead of the few of an ordinary run.
@Suite("A text that three programs edit through NSFileCoordinator", .blocking)
struct SharedTextTests {
  private static let edits = Program.environment("COORDINATION_UPDATES").flatMap { Int($0) } ?? 12
  private static let processes = 3

  /// One of the processes, and how far each of its two threads is.
  private struct Editor {
    var participant: Participant
    var done = [0, 0]
    /// The versions that it has merged since its last start.
    var merged = 0
    var isStopped = false
    var isOver = false
  }

  let directory: TemporaryDirectory
  private var url: URL { URL(fileURLWithPath: directory.path + "/text.txt") }

  init() throws {
    directory = try TemporaryDirectory()
    // Presenters register in it, and not in the user's own.
    _ = try directory.container()
  }

  private func start(_ number: Int, after done: [Int]) throws -> Participant {
    let participant = try Participant(directory.path)
    try participant.tell("edit \(url.path) p\(number) \(done[0]) \(done[1]) \(Self.edits)")
    return participant
  }

  // each process               this process
  // two threads add lines
  //                            stops or kills one of them, after one of its answers
  //                            continues it, or starts it again, when the others have answered
  @Test(
    "loses no line while they are stopped and killed, and every conflict is listed and resolved")
  func noneLost() throws {
    let seed = TestSeed.next("COORDINATION_SEED")
    var generator = seed.generator
    try "".write(to: url, atomically: true, encoding: .utf8)
    var editors = try (0..<Self.processes).map {
      Editor(participant: try start($0, after: [0, 0]))
    }
    var (troubles, merged) = (0, 0)
    while editors.contains(where: { !$0.isOver }) {
      let running = editors.indices.filter { !editors[$0].isOver && !editors[$0].isStopped }
      guard let number = running.randomElement(using: &generator) else {
        try resume(&editors)
        continue
      }
      let answer = try editors[number].participant.answer(within: .seconds(120))
      let words = answer.split(separator: " ").compactMap { Int($0) }
      guard words.count == 3 else {
        #expect(answer == "done", "\(seed)")
        merged += editors[number].merged
        editors[number].isOver = true
        continue
      }
      (editors[number].done[words[0]], editors[number].merged) = (words[1], words[2])
      switch Int.random(in: 0..<20, using: &generator) {
      case 0: try resume(&editors)
      case 1:
        try editors[number].participant.send(.stop)
        try editors[number].participant.waitUntilStopped()
        editors[number].isStopped = true
        troubles += 1
      case 2:
        try editors[number].participant.send(.kill)
        _ = try editors[number].participant.wait(within: .seconds(30))
        editors[number].participant = try start(number, after: editors[number].done)
        merged += editors[number].merged
        editors[number].merged = 0
        troubles += 1
      default: break
      }
    }
    let text = SharedText(url)
    let left = NSFileVersion.unresolvedConflictVersionsOfItem(at: url)?.count
    text.merge()
    text.close()
    #expect(NSFileVersion.unresolvedConflictVersionsOfItem(at: url)?.isEmpty == true, "\(seed)")
    let lines = text.lines()
    let expected = (0..<Self.processes).flatMap { number in
      (0..<2).flatMap { thread in (1...Self.edits).map { "p\(number).\(thread).\($0)" } }
    }
    #expect(lines.sorted() == expected.sorted(), "\(seed)")
    print(
      "\(lines.count) lines, \(troubles) stops and kills, \(merged) versions merged, "
        + "\(left ?? 0) left at the end")
  }

  private func resume(_ editors: inout [Editor]) throws {
    for number in editors.indices where editors[number].isStopped {
      try editors[number].participant.send(.continue)
      editors[number].isStopped = false
    }
  }
}
