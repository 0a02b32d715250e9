import Foundation
import TestSupport
import Testing

@Suite("The README's section on peers")
struct ReadmePeersTests {
  /// The lines of the section's blocks of Swift.
  private var lines: [String] {
    get throws {
      let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
      let readme = try String(contentsOf: root.appendingPathComponent("README.md"), encoding: .utf8)
      let section = readme.components(separatedBy: "\n## Peers\n").dropFirst().first ?? ""
      let blocks = (section.components(separatedBy: "\n## ").first ?? "")
        .components(separatedBy: "```swift\n").dropFirst()
      return blocks.flatMap { block in
        (block.components(separatedBy: "```").first ?? "").split(separator: "\n").map(trimmed)
      }
    }
  }

  private func trimmed(_ line: some StringProtocol) -> String {
    line.trimmingCharacters(in: .whitespaces)
      // The README's reader may not have turned on what our settings ask for.
      .replacingOccurrences(of: "error: Error?", with: "error: (any Error)?")
  }

  @Test("shows code that compiles: each line of it is one of ReadmePeersCode")
  func compiles() throws {
    let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("ReadmePeersCode.swift")
    let compiled = Set(
      try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map(trimmed))
    let lines = try lines
    #expect(lines.count > 30)
    for line in lines where !compiled.contains(line) {
      Issue.record("README.md shows a line that no test compiles: \(line)")
    }
  }

  @Test("shows code that works", .timeLimit(.minutes(1)))
  func works() async throws {
    let directory = try TemporaryDirectory()
    try await ReadmePeersCode.session(directory.container())
  }
}
