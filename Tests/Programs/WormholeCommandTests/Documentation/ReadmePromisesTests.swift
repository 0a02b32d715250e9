import Foundation
import Testing
import WormholeTestSupport

/// The bold sentences below "What it promises" in the README: each has tests, and the exceptions that it names.
@Suite("The README's promises", .blocking)
struct ReadmePromisesTests {
  /// A bold sentence, and what the README says after it.
  struct Promise {
    let sentence: String
    let exceptions: [String]
  }

  private static let pages = "Sources/Core/Wormhole/Wormhole.docc/"

  @Test("stand in one paragraph, each once")
  func paragraph() throws {
    let promises = try Self.promises()
    #expect(promises.count == 5)
    #expect(Set(promises.map(\.sentence)).count == promises.count)
  }

  @Test("each have tests that exist")
  func tests() throws {
    let rows = try Self.rows()
    #expect(Set(rows.map(\.promise)) == Set(try Self.promises().map(\.sentence)))
    let folder = Readme.root.appending(path: "Tests").path
    let files = try FileManager.default.subpathsOfDirectory(atPath: folder)
    for row in rows {
      let isThere = try files.filter { $0.hasSuffix("/\(row.suite).swift") }.contains { path in
        Self.hasTest(row.test, in: try Readme.text("Tests/" + path))
      }
      #expect(isThere, "\(row.suite) has no test «\(row.test)»")
    }
  }

  @Test("each have in Limits as many exceptions as in the README")
  func exceptions() throws {
    let page = try Readme.text(Self.pages + "Limits.md")
    let part = try #require(Self.section("Exceptions to the promises", of: page))
    let sections = part.components(separatedBy: "\n### ").dropFirst()
    var explained: [String: Int] = [:]
    for section in sections {
      let paragraphs = section.components(separatedBy: "\n\n").filter { !$0.isEmpty }
      let (title, exceptions) = (paragraphs[0], paragraphs.dropFirst())
      for exception in exceptions where !exception.hasPrefix("**") {
        Issue.record("an exception begins with its bold title: \(exception)")
      }
      explained[title] = exceptions.count
    }
    let named = try Self.promises().filter { !$0.exceptions.isEmpty }
    let counts = named.map { ($0.sentence, $0.exceptions.count) }
    #expect(explained == Dictionary(uniqueKeysWithValues: counts))
  }

  @Test("are searched by detectors that detect")
  func detects() {
    let source = """
      @Test(
        "is so",
        arguments: [1])
      @Test("is whole") func whole() {}
      """
    #expect(Self.hasTest("is so", in: source) && Self.hasTest("is whole", in: source))
    #expect(!Self.hasTest("is", in: source) && !Self.hasTest("so", in: source))
    let promises = Self.promises(in: "**A.** Exceptions: b c; d. **E.** **F.** Exception: G. H; I.")
    #expect(promises.map(\.sentence) == ["A", "E", "F"])
    #expect(promises.map(\.exceptions) == [["b c", "d"], [], ["G"]])
    let page = "## A\n\na\n\n## B\n\nb\n\n### C\n\nc\n\n## D\n"
    #expect(Self.section("B", of: page) == "\n\nb\n\n### C\n\nc\n")
  }

  /// The promises of the paragraph, without the dots at their ends.
  private static func promises() throws -> [Promise] {
    let part = try #require(section("What it promises", of: Readme.text("README.md")))
    let paragraphs = part.components(separatedBy: "\n\n").filter { !$0.isEmpty }
    #expect(paragraphs.count == 1)
    return promises(in: paragraphs[0].replacing("\n", with: " "))
  }

  private static func promises(in text: String) -> [Promise] {
    // Every second piece is bold.
    let pieces = text.components(separatedBy: "**")
    return stride(from: 1, to: pieces.count - 1, by: 2).map { index in
      let sentence = pieces[index]
      if !sentence.hasSuffix(".") { Issue.record("no sentence: \(sentence)") }
      let said = pieces[index + 1].firstMatch(of: #/Exceptions?: ([^.]*)\./#)
      let exceptions = said.map { String($0.output.1).components(separatedBy: "; ") }
      return Promise(sentence: String(sentence.dropLast()), exceptions: exceptions ?? [])
    }
  }

  /// The rows of the table; a row without a promise is of the one above.
  private static func rows() throws -> [(promise: String, suite: String, test: String)] {
    let page = try Readme.text(pages + "HowItIsTested.md")
    let part = try #require(section("The promises of the README", of: page))
    var promise = ""
    return part.split(separator: "\n").filter { $0.hasPrefix("| ") }.dropFirst().map { line in
      let cells = line.split(separator: "|", omittingEmptySubsequences: false).map {
        $0.trimmingCharacters(in: .whitespaces)
      }
      if !cells[1].isEmpty { promise = cells[1] }
      return (promise, cells[2].replacing("`", with: ""), cells[3])
    }
  }

  /// Returns what is below a heading of the second level.
  private static func section(_ title: String, of page: String) -> String? {
    let parts = ("\n" + page).components(separatedBy: "\n## ")
    return parts.first { $0.hasPrefix(title + "\n") }.map { String($0.drop { $0 != "\n" }) }
  }

  /// Returns whether a source has a test with exactly this title.
  private static func hasTest(_ title: String, in source: String) -> Bool {
    source.matches(of: #/@Test\(\s*"([^"]*)"/#).contains { $0.output.1 == title }
  }
}
