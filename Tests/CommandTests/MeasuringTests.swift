import Testing
import WormholePropertyLists
import WormholeTestSupport
import WormholeWorkshop

@testable import WormholeCommand

@Suite("wormhole bench and latency", .blocking)
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

  @Test("latency counts its messages and removes its name", .bothEngines)
  func latency() throws {
    let outcome = try Session().shell(
      """
      wormhole latency --count 5 --every 0 --json
      # After the last one it does not pause.
      wormhole latency --count 1 --every 600 | grep -c 'µs (1 message)$'
      wormhole latency --count 3 --every 0 | grep -c '^all: min .* µs (3 messages)$'
      wormhole status --json | grep -c latency
      """)
    let lines = outcome.output.split(separator: "\n")
    try #require(lines.count >= 4, "\(outcome.errors)")
    let all = try JSONReader.read(Array(lines[lines.count - 4].utf8))
    #expect(all["of"] == "all")
    #expect(all["messages"] == 5)
    let times = try ["min", "median", "p99", "max"].map {
      try #require(all[$0 + "Nanoseconds"]?.int64Value)
    }
    #expect(times == times.sorted() && times[0] > 0)
    #expect(lines.suffix(3) == ["1", "1", "0"])
  }

  @Test("latency ends at its timeout, and when it is told to, with what it has measured")
  func ends() throws {
    let outcome = try Session().shell(
      """
      wormhole latency --timeout 0.2 --every 0.05 | tail -1
      wormhole latency --every 30 >"$T/line" & pid=$!
      until wormhole status --json | grep -q latency; do sleep 0.01; done
      kill -TERM $pid; wait $pid; echo $?
      cat "$T/line"
      """)
    let lines = outcome.output.split(separator: "\n")
    try #require(lines.count == 3, "\(outcome.output) \(outcome.errors)")
    #expect(lines[0].hasPrefix("all: min "))
    #expect(lines[1] == "0")
    #expect(lines[2].hasSuffix("(1 message)"))
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
