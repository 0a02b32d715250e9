import Testing
import WormholeTestSupport

@testable import WormholeEtcd

@Suite("The time in an answer's header", .blocking) struct HTTPDateTests {
  @Test("is read to the second, and anything else is none")
  func table() {
    let cases: [(String, Int64?)] = [
      ("Thu, 01 Jan 1970 00:00:00 GMT", 0), (" Sun, 06 Nov 1994 08:49:37 GMT\r\n", 784_111_777),
      ("Thu, 29 Feb 2024 23:59:59 GMT", 1_709_251_199),
      ("Fri, 01 Mar 2024 00:00:00 GMT", 1_709_251_200),
      ("Sat, 31 Dec 2022 23:59:59 GMT", 1_672_531_199),
      ("Sun, 22 Nov 2026 05:03:40 GMT", 1_795_323_820), ("", nil), ("now", nil),
      ("Sun, 06 Nov 1994 08:49:37", nil), ("Sun, 06 Now 1994 08:49:37 GMT", nil),
      ("Sun, 06 Nov 1994 24:49:37 GMT", nil), ("Sun, 99 Nov 1994 08:49:37 GMT", nil),
      ("Sun, 06 Nov -994 08:49:37 GMT", nil), ("Sun, 06 Nov 1994 08:49 GMT", nil),
      ("Sun, 06 Nov 99999999999999999999 08:49:37 GMT", nil),
    ]
    for (text, seconds) in cases { #expect(HTTPDate.seconds(text) == seconds, "\(text)") }
  }
}
