import Testing
import WormholeTestSupport

/// The recipe without Swift: a program that changes a database, and one that waits for its commits.
@Suite("The recipe \"SQLite and other processes\"", .blocking)
struct SQLiteRecipeTests {
  private static let page = "Sources/Core/Wormhole/Wormhole.docc/Recipes.md"

  @Test("tells a waiting process of each commit, and that process sees the row")
  func commits() throws {
    let blocks = try Readme.blocks(ofPage: Self.page)
    let program = try #require(blocks.first { $0.language == "python" }?.text)
    let follower = try #require(blocks.first { $0.language == "sh" }?.text.split(separator: "\n"))
    #expect(follower.count == 1)
    let outcome = try Session().shell(
      """
      cat >sell.py <<'END'
      \(program)
      END
      cat >show <<'END'
      #!/usr/bin/env python3
      import sqlite3
      rows = sqlite3.connect("cinema.db").execute("select seat from sales order by seat")
      print("seats", *(seat for seat, in rows))
      END
      chmod +x show
      \(follower[0]) >"$T/heard" 2>"$T/said" & follower=$!
      says "$T/said" listening
      python3 sell.py 7; hears 'seats 7'
      python3 sell.py 8; hears 'seats 7 8'
      kill $follower; wait $follower
      cat "$T/heard"
      """)
    #expect(outcome.output == "seats 7\nseats 7 8\n", "\(outcome)")
  }
}
