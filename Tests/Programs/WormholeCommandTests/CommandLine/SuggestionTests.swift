import Testing
import WormholeTestSupport

@testable import WormholeCommand

@Suite("A suggestion", .blocking) struct SuggestionTests {
  @Test(
    "Each insertion, deletion, replacement and exchange of neighbours is one edit",
    arguments: [
      ("", "", 0), ("abc", "abc", 0), ("", "abc", 3), ("abc", "", 3), ("abc", "axc", 1),
      ("abc", "ac", 1), ("ac", "abc", 1), ("abc", "bac", 1), ("abcd", "badc", 2),
      ("kitten", "sitting", 3), ("saturday", "sunday", 3),
    ])
  func distances(a: String, b: String, edits: Int) {
    #expect(Suggestion.distance(Array(a.utf8), Array(b.utf8)) == edits)
    #expect(Suggestion.distance(Array(b.utf8), Array(a.utf8)) == edits)
  }

  @Test("The nearest word is offered if it is near, the first of equals")
  func nearest() {
    #expect(Suggestion.nearest(to: "statu", among: ["send", "status", "start"]) == "status")
    #expect(Suggestion.nearest(to: "gat", among: ["get", "gas"]) == "get")
    #expect(Suggestion.nearest(to: "foo", among: ["demo", "read"]) == nil)
    #expect(Suggestion.nearest(to: "x", among: []) == nil)
    // It appeared after it was looked for.
    #expect(Suggestion.nearest(to: "group.a", among: ["group.a", "group.b"]) == "group.b")
  }

  @Test("for words of other programs lead to commands that exist")
  func commands() throws {
    for (command, _) in Suggestion.commands where !command.hasPrefix("-") {
      var description = CommandDescription.root
      for word in Suggestion.commandPath(command.split(separator: " ").map(String.init)) {
        description = try #require(description.subcommand(named: word), "\(command)")
        #expect(description.name == word, "\(command)")
      }
      #expect(description.run != nil, "\(command)")
    }
  }
}
