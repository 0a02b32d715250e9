import Testing
import WormholeTestSupport

@testable import Wormhole

@Suite("An identifier's directory name", .blocking)
struct EncodedNameTests {
  @Test(
    "is one safe path component, and as readable as possible",
    arguments: [
      ("tickets", "tickets"), ("group.com.example", "group.com.example"), ("", "%"),
      (".", "%2E"), ("..", "%2E."), ("../../x", "%2E.%2F..%2Fx"), ("a/b", "a%2Fb"),
      ("100%", "100%25"), ("a b", "a%20b"), ("nul\0", "nul%00"), ("é", "%C3%A9"),
      ("e\u{301}", "e%CC%81"), ("%", "%25"), ("%2E", "%252E"),
    ])
  func isSafe(identifier: String, component: String) {
    #expect(EncodedName(identifier).component == component)
    #expect(EncodedName.decode(Array(component.utf8)) == .identifier(identifier))
  }

  @Test("differs if the bytes differ, even if Swift strings are equal")
  func isInjective() {
    let composed = "\u{e9}"
    let decomposed = "e\u{301}"
    #expect(composed == decomposed)
    #expect(EncodedName(composed).component != EncodedName(decomposed).component)
  }

  @Test("restores every identifier, byte for byte, and none is shared")
  func roundTrips() throws {
    let seed = TestSeed.next("ENCODED_NAME_SEED")
    var random = seed.generator
    var seen: [String: [UInt8]] = [:]
    for _ in 0..<2_000 {
      let identifier = randomIdentifier(using: &random)
      let name = EncodedName(identifier)
      let bytes = Array(identifier.utf8)
      #expect(name.component.utf8.count <= 255, "\(seed)")
      #expect(!name.component.contains("/") && !name.component.hasPrefix("."), "\(seed)")
      if let earlier = seen[name.component] { #expect(earlier == bytes, "\(seed)") }
      seen[name.component] = bytes
      guard name.longIdentifier == nil else { continue }
      guard case .identifier(let back) = EncodedName.decode(Array(name.component.utf8)) else {
        Issue.record("not decoded: \(name.component) \(seed)")
        continue
      }
      #expect(Array(back.utf8) == bytes, "\(seed)")
    }
  }

  private func randomIdentifier(using random: inout SeededGenerator) -> String {
    var scalars = String.UnicodeScalarView()
    for _ in 0..<Int.random(in: 0...90, using: &random) {
      let plane: ClosedRange<UInt32> =
        Bool.random(using: &random) ? 0...0x7F : 0...0x10FFFF
      if let scalar = Unicode.Scalar(UInt32.random(in: plane, using: &random)) {
        scalars.append(scalar)
      }
    }
    return String(scalars)
  }

  @Test("of more than 255 bytes keeps its beginning and differs by its digest")
  func longNames() {
    let long = String(repeating: "x", count: 255)
    let longer = long + "y"
    let other = long + "z"
    #expect(EncodedName(long).component == long)
    #expect(EncodedName(longer).component.utf8.count < 255)
    #expect(EncodedName(longer).longIdentifier == longer)
    #expect(EncodedName(longer).component != EncodedName(other).component)
    #expect(EncodedName.decode(Array(EncodedName(longer).component.utf8)) == .long)
  }

  @Test(
    "that is not canonical belongs to no identifier",
    arguments: ["%2e", "%61", "a%", "%4", ".hidden", "a b", "%FF", "%.", "%.xyz", "é"])
  func foreignNames(name: String) {
    #expect(EncodedName.decode(Array(name.utf8)) == .foreign)
  }

  @Test(
    "uses SHA-256 according to FIPS 180-4 and NIST's example values",
    arguments: [
      ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
      ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
      (
        "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
      ),
      (
        String(repeating: "a", count: 1_000_000),
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
      ),
    ])
  func digests(message: String, digest: String) {
    #expect(SHA256.hexDigest(of: Array(message.utf8)) == digest)
  }
}
