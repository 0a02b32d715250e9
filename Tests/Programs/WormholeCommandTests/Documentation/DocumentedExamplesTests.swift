import Foundation
import Testing
import WormholeTestSupport

/// The examples of the documentation, as a reader pastes them into a program.
@Suite("The examples of the documentation", .blocking)
struct DocumentedExamplesTests {
  /// What the compiler says of a constant that only shows a result.
  private static let allowed = ["was never used", "was never mutated", "was never read"]

  private static func check(_ examples: [DocumentedExample]) throws -> [Substring] {
    let directory = try TemporaryDirectory()
    let sources = examples.enumerated().map { ("example\($0)", $1.source($0)) }
    let outcome = try ReaderPackage(directory: directory.path)
      .check(Dictionary(uniqueKeysWithValues: sources))
    let said = outcome.said.split(separator: "\n").filter { line in
      line.contains(": error: ") || line.contains(": warning: ")
    }.filter { line in !allowed.contains { line.contains($0) } }
    // Otherwise the compiler itself failed, and what it said has no place.
    return outcome.isBuilt || !said.isEmpty ? said : outcome.said.split(separator: "\n")
  }

  @Test("compile, all of them in one run of the compiler")
  func compile() throws {
    let examples = try DocumentedExample.all.get().filter { !$0.isLeftOut }
    #expect(examples.count > 100)
    #expect(try DocumentedExample.all.get().count <= examples.count + 5)
    for line in try Self.check(examples) { Issue.record(Comment(rawValue: String(line))) }
  }

  @Test("are found with their lines, and one that is wrong is reported at its line")
  func wrong() throws {
    let examples = try DocumentedExample.all.get()
    let channel = "Sources/Core/Wormhole/Values/Channel.swift"
    let example = try #require(examples.first { $0.path == channel })
    let lines = try String(contentsOf: Readme.root.appending(path: channel), encoding: .utf8)
      .split(separator: "\n", omittingEmptySubsequences: false)
    let first = try #require(example.text.split(separator: "\n").first)
    #expect(lines[example.line - 1].hasSuffix(first))
    let wrong = DocumentedExample(
      path: "Page.md", line: 7, module: "Wormhole", text: "let text = \"\"\nlet count: Int = text\n"
    )
    let said = try Self.check([wrong])
    #expect(said.count == 1 && said[0].contains("Page.md:8:"), "\(said)")
  }
}
