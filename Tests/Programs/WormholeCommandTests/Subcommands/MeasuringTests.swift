import Testing
import WormholePropertyLists
import WormholeTestSupport
import WormholeWorkshop

@testable import WormholeCommand

@Suite("wormhole bench", .blocking)
struct MeasuringTests {
  @Test("bench prints each row with its floor, and leaves nothing")
  func bench() throws {
    let outcome = try Session().shell(
      """
      wormhole bench --quick --json "$T/place" 2>"$T/said"; echo $?
      mkdir "$T/place"
      wormhole bench --quick --json "$T/place"
      ls -A "$T/place"
      """, within: .seconds(120))
    #expect(outcome.status == 0, "\(outcome.errors)")
    let lines = outcome.output.split(separator: "\n")
    #expect(lines.first == "74", "there is no such directory")
    let rows = try lines.dropFirst().map { try JSONReader.read(Array($0.utf8)) }
    #expect(rows.count == 12)
    #expect(rows.contains { $0["nanoseconds"] != $0["floorNanoseconds"] })
    for row in rows {
      // Whatever is measured, and however fast: a time, a floor, and their ratio between its bounds.
      let ratio = try #require(row["ratio"]?.doubleValue)
      #expect(try #require(row["nanoseconds"]?.int64Value) > 0)
      #expect(try #require(row["floorNanoseconds"]?.int64Value) > 0)
      #expect(try #require(row["ratioLow"]?.doubleValue) <= ratio)
      #expect(try #require(row["ratioHigh"]?.doubleValue) >= ratio)
    }
  }

  @Test(
    "numbers have the digits that were asked for",
    arguments: [
      (1.005, 1, "1.0"), (0.05, 1, "0.1"), (12.0, 0, "12"), (2.449, 2, "2.45"), (0.004, 2, "0.00"),
      (-1.25, 1, "-1.3"), (-0.01, 1, "0.0"), (99.96, 1, "100.0"), (1e16, 1, "1e+16"),
    ])
  func digits(number: Double, count: Int, text: String) {
    #expect(fixed(number, count) == text)
  }
}
