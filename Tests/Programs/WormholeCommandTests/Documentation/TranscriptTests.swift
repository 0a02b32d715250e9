import Foundation
import Testing
import WormholeTestSupport

/// `Fixtures/transcripts`: a user's input and the program's output.
///
/// ```
/// $ a line for the shell
/// what it prints; <*> stands for anything within a line, CONTAINER for the container's path
/// ! what it says on standard error
/// ? its status, if that is not 0
/// # a remark
/// ```
@Suite("The program behaves as its transcripts show", .blocking)
struct TranscriptTests {
  private struct Step {
    let line: Int
    let command: String
    var output: [String] = []
    var errors: [String] = []
    var status: Int32 = 0
  }

  private static let folder = URL(filePath: Checkout.path("Fixtures/transcripts"))

  static let names: [String] = {
    do {
      return try FileManager.default.contentsOfDirectory(atPath: folder.path)
        .filter { $0.hasSuffix(".txt") }.sorted()
    } catch {
      preconditionFailure("the transcripts are part of the repository: \(error)")
    }
  }()

  @Test("Transcript", arguments: names)
  func transcript(_ name: String) throws {
    let text = try String(contentsOf: Self.folder.appending(path: name), encoding: .utf8)
    let session = try Session()
    for step in Self.steps(text) {
      let outcome = try session.shell(step.command)
      let place = "\(name):\(step.line): \(step.command)"
      let output = Self.lines(outcome.output.withoutInotifyWarning, session)
      let errors = Self.lines(outcome.errors, session)
      let seen = "printed \(output), said \(errors), in\n\(session.listing)"
      #expect(outcome.status == step.status, "\(place)\n\(seen)")
      #expect(Self.matches(output, step.output), "\(place)\n\(seen)")
      #expect(Self.matches(errors, step.errors), "\(place)\n\(seen)")
    }
  }

  @Test("Every command has a transcript")
  func coverage() throws {
    let wanted = [
      "send", "read", "listen", "remove", "update", "notify", "defaults", "status", "doctor",
      "demo", "lock", "watch", "peer", "log", "queue", "presence", "ls",
    ]
    #expect(Self.names.map { $0.dropLast(4) }.sorted().map(String.init) == wanted.sorted())
  }

  @Test("Lines are compared exactly, except for <*>")
  func comparison() {
    #expect(Self.matches(["a 12 b"], ["a <*> b"]))
    #expect(Self.matches(["a"], ["a<*>"]))
    #expect(!Self.matches(["a 12 c"], ["a <*> b"]))
    #expect(!Self.matches(["xa b"], ["a <*>b"]))
    #expect(!Self.matches(["ab"], ["ab<*>b"]))
    #expect(!Self.matches(["a", "b"], ["a"]))
  }

  private static func steps(_ text: String) -> [Step] {
    var steps: [Step] = []
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
    {
      if line.hasPrefix("$ ") {
        steps.append(Step(line: index + 1, command: String(line.dropFirst(2))))
      } else if line.hasPrefix("#") || (line.isEmpty && steps.isEmpty) {
        continue
      } else if let last = steps.indices.last {
        if line.hasPrefix("! ") {
          steps[last].errors.append(String(line.dropFirst(2)))
        } else if line.hasPrefix("? ") {
          steps[last].status = Int32(line.dropFirst(2)) ?? -1
        } else {
          steps[last].output.append(String(line))
        }
      }
    }
    // An empty line between two steps is not part of the output.
    for index in steps.indices where steps[index].output.last?.isEmpty == true {
      steps[index].output.removeLast()
    }
    return steps
  }

  private static func lines(_ text: String, _ session: Session) -> [String] {
    var lines = text.replacing(session.container, with: "CONTAINER")
      .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    if lines.last == "" { lines.removeLast() }
    return lines
  }

  private static func matches(_ lines: [String], _ expected: [String]) -> Bool {
    lines.count == expected.count && zip(lines, expected).allSatisfy { matches($0, $1[...]) }
  }

  private static func matches(_ line: String, _ pattern: Substring) -> Bool {
    let parts = pattern.split(separator: "<*>", omittingEmptySubsequences: false)
    guard parts.count > 1, let first = parts.first, let last = parts.last else {
      return line == pattern
    }
    guard line.count >= first.count + last.count, line.hasPrefix(first), line.hasSuffix(last)
    else { return false }
    var rest = line.dropFirst(first.count).dropLast(last.count)
    for part in parts.dropFirst().dropLast() {
      guard let range = rest.firstRange(of: part) else { return false }
      rest = rest[range.upperBound...]
    }
    return true
  }
}
