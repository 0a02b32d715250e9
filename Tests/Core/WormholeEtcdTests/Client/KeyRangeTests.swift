import Testing
import WormholeTestSupport

@testable import WormholeEtcd

@Suite("Ranges of keys", .blocking)
struct KeyRangeTests {
  @Test("of a prefix end before the first key that does not have it")
  func prefixes() {
    #expect(KeyRange.prefix(Array("a/".utf8)).end == Array("a0".utf8))
    #expect(KeyRange.prefix([1, 255, 255]).end == [2])
    #expect(KeyRange.prefix([255]).end == [0])
    #expect(KeyRange.prefix([]) == KeyRange.range(from: [0], to: [0]))
    #expect(KeyRange.prefix([7]).after([7, 3]) == KeyRange.range(from: [7, 3, 0], to: [8]))
  }
}
