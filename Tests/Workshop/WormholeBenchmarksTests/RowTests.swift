import Testing
import WormholeTerminals
import WormholeTestSupport
import WormholeWorkshop

@Suite("A row of measurements", .blocking)
struct RowTests {
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
