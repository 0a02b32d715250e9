import Testing
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole

@Suite("A lease's declaration", .blocking)
struct LeaseDeclarationTests {
  @Test("is a name with the holder, its start, and its term")
  func roundTrip() throws {
    let declaration = LeaseDeclaration(term: .milliseconds(2_500))
    let read = try #require(LeaseDeclaration(FileName(bytes: Array(declaration.name.utf8))))
    #expect(read == declaration)
    #expect(read.identity == .current)
    #expect(read.term == .milliseconds(2_500))
    #expect(try #require(read.age) < .seconds(60))
  }

  @Test(
    "of any bytes is bounded or refused",
    arguments: [
      "", "clean", "x", "x-1-2-3-4-5", "x-1-2-3-4-5-6-7", "y-1-2-3-4-5-6", "x-zz-2-3-4-5-6",
      "x--2-3-4-5-6", "x-ffffffffffffffff-2-3-4-5-6", "xx-1-2-3-4-5-6",
    ])
  func nonsense(name: String) {
    #expect(LeaseDeclaration(FileName(bytes: Array(name.utf8))) == nil)
  }

  /// An hour of it counts, unless the holder is seen (ObservedTests).
  @Test("with an absurd term or beginning is read")
  func absurd() throws {
    let identity = ProcessIdentity.current
    let prefix =
      "x-" + String(identity.processID, radix: 16) + "-" + String(identity.startTicks, radix: 16)
      + "-" + String(identity.namespace, radix: 16) + "-"
    let endless = try #require(
      LeaseDeclaration(FileName(bytes: Array((prefix + "0-ffffffffffffffff-a").utf8))))
    #expect(endless.term == LeaseDeclaration.whileRunning)
    let future = try #require(
      LeaseDeclaration(FileName(bytes: Array((prefix + "ffffffffffffffff-5-a").utf8))))
    #expect(future.age == nil, "then only the observation counts")
  }
}
