import Testing
import WormholeTestSupport

@Suite("wormhole status --watch", .blocking) struct StatusWatchTests {
  @Test(
    "status --watch prints a status for what happens, as text or as lines of JSON", .bothEngines)
  func watching() throws {
    let outcome = try Session().shell(
      """
      sees() { says "$T/heard" "$1"; }
      wormhole send tickets 1
      start status --watch --json >"$T/heard"
      sees '"identifier":"tickets"'
      wormhole send film 2; sees '"identifier":"film"'
      kill $pid; finish 2>"$T/null"
      grep -cv '^{.*}$' "$T/heard"
      start status --watch --count 2 >"$T/heard"
      sees tickets; wormhole send third 3; finish; echo $?; grep -c '^VALUE' "$T/heard"
      wormhole status --watch --timeout 0 >"$T/heard" 2>"$T/said"; echo $?
      wormhole status --count 1 2>"$T/said"; echo $?
      """, within: .seconds(60))
    #expect(outcome.output == "0\n0\n2\n124\n64\n", "\(outcome)")
  }

  @Test("At a terminal it fits the screen, and says how much is left out")
  func screen() throws {
    let outcome = try Session().shell(
      """
      for i in 1 2 3 4 5 6 7 8 9 10 11 12; do wormhole send tickets-$i 1; done
      script -qfec 'stty cols 80 rows 12; wormhole status --watch --count 1' /dev/null >"$T/heard"
      wc -l <"$T/heard"; grep -c 'more lines' "$T/heard"
      """)
    // One line says that it listens.
    #expect(outcome.output == "12\n1\n", "\(outcome)")
  }

  @Test("A line that a narrow terminal breaks counts as several")
  func narrow() throws {
    let outcome = try Session().shell(
      """
      for i in 1 2 3 4 5 6; do wormhole send tickets-$i 1; done
      script -qfec 'stty cols 20 rows 12; wormhole status --watch --count 1' /dev/null >"$T/heard"
      tr -d '\\r' <"$T/heard" | sed 's/^.*2J//' | sed 1d |
        awk '{ rows += length ? int((length + 19) / 20) : 1 } END { print (rows > 6) (rows < 12) }'
      """)
    #expect(outcome.output == "11\n", "\(outcome)")
  }
}
