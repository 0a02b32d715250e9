import Foundation
import Testing
import WormholeTestSupport

@testable import WormholeCommand

@Suite("Dates as ISO 8601", .blocking) struct ISO8601Tests {
  @Test(
    "Known moments have their calendar date",
    arguments: [
      ("1970-01-01T00:00:00Z", 0.0), ("2000-02-29T12:00:00Z", 951_825_600),
      ("2001-09-09T01:46:40Z", 1_000_000_000), ("1900-03-01T00:00:00Z", -2_203_891_200),
      ("2038-01-19T03:14:08Z", 2_147_483_648), ("9999-12-31T23:59:59Z", 253_402_300_799),
      ("0000-01-01T00:00:00Z", -62_167_219_200),
    ])
  func knownMoments(text: String, seconds: Double) {
    let date = Date(timeIntervalSince1970: seconds)
    #expect(ISO8601.text(date) == text)
    #expect(ISO8601.date(text) == date)
  }

  @Test("Foundation's own formatter agrees on random days of 8000 years")
  func foundationAgrees() {
    // From 1583 on, because Foundation's calendar is the Julian one before.
    var generator = TestSeed.next("WORMHOLE_TEST_SEED").generator
    for _ in 0..<300 {
      let seconds = Double(Int.random(in: -13_000_000_000...250_000_000_000, using: &generator))
      let date = Date(timeIntervalSinceReferenceDate: seconds)
      #expect(ISO8601.text(date) == date.ISO8601Format())
    }
  }

  @Test("The year before 0 and the year after 9999 have no text")
  func outside() {
    #expect(ISO8601.text(Date(timeIntervalSince1970: 253_402_300_800)) == nil)
    #expect(ISO8601.text(Date(timeIntervalSince1970: -62_167_219_201)) == nil)
    #expect(ISO8601.text(Date(timeIntervalSinceReferenceDate: .infinity)) == nil)
    #expect(ISO8601.text(Date(timeIntervalSinceReferenceDate: 1e300)) == nil)
  }

  @Test("A fraction has as many digits as the date needs, even before 2001")
  func fractions() {
    #expect(
      ISO8601.text(Date(timeIntervalSinceReferenceDate: 0.1)) == "2001-01-01T00:00:00.1Z")
    #expect(
      ISO8601.text(Date(timeIntervalSinceReferenceDate: -0.1)) == "2000-12-31T23:59:59.9Z")
    #expect(
      ISO8601.text(Date(timeIntervalSinceReferenceDate: 1.5e-7))
        == "2001-01-01T00:00:00.00000015Z")
    #expect(
      ISO8601.date("2000-12-31T23:59:59.9000Z") == Date(timeIntervalSinceReferenceDate: -0.1))
  }

  @Test(
    "A text that is not a date is refused",
    arguments: [
      "", "2001-01-01", "2001-01-01T00:00Z", "2001-01-01T00:00:00", "2001-13-01T00:00:00Z",
      "2001-00-01T00:00:00Z", "2001-01-00T00:00:00Z", "2001-02-29T00:00:00Z",
      "1900-02-29T00:00:00Z", "2001-04-31T00:00:00Z", "2001-01-01T24:00:00Z",
      "2001-01-01T00:60:00Z", "2001-01-01T00:00:60Z", "2001-01-01T00:00:00.Z",
      "2001-01-01T00:00:00ZZ", "2001-01-01T00:00:00+1:00", "+2001-01-01T00:00:00Z",
      "2001-01-01 00:00:00Z", "٢٠٠١-01-01T00:00:00Z",
    ])
  func refusals(text: String) {
    #expect(ISO8601.date(text) == nil)
  }
}
