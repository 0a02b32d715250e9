import Testing
import WormholePropertyLists
import WormholeTestSupport

@testable import WormholePeers

@Suite("The intention of a file", .blocking)
struct FileIntentionTests {
  @Test(
    "with any expiry can be read, because it lies where other processes write",
    arguments: [Double.nan, .infinity, -.infinity, -1, 1e300, .leastNonzeroMagnitude])
  func expiry(_ seconds: Double) throws {
    let intention = FileIntention(
      [
        "transfer": .string(String(repeating: "0", count: FileIntention.idLength)), "peer": "p",
        "source": "/f", "size": 1,
        "expiry": .real(seconds),
      ])
    let expiry = try #require(intention).options.expiry
    #expect(seconds.isNaN ? expiry == nil : expiry.map { $0 >= .zero } ?? false)
  }
}
