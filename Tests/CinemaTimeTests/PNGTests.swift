import FoundationEssentials
import Testing
import WormholeTestSupport

@testable import WormholeCinemaTime

@Suite("PNG files", .blocking)
struct PNGTests {
  // The largest at a scale of 4 needs more than one block of bytes.
  @Test(
    "are read back as their symbol",
    arguments: [(1, 1), (2, 1), (3, 1), (4, 1), (8, 1), (1, 40), (4, 40)])
  func roundTrip(scale: Int, version: Int) throws {
    let bytes = [UInt8](repeating: 0x42, count: version == 1 ? 3 : 1_273)
    let symbol = try #require(QRSymbol(bytes, level: .high))
    let file = PNG.bytes(of: symbol, scale: scale)
    #expect(PNG.symbolRows(in: file) == symbol.rows)
  }

  @Test("that were cut off or changed are read as nil, without a crash")
  func damage() throws {
    let symbol = try #require(QRSymbol("The General @ 17:00", level: .quartile))
    let file = PNG.bytes(of: symbol, scale: 2)
    for length in 0..<file.count {
      #expect(PNG.symbolRows(in: Array(file.prefix(length))) == nil, "\(length) bytes")
    }
    for index in file.indices {
      var changed = file
      changed[index] ^= 0xFF
      #expect(PNG.symbolRows(in: changed) == nil, "byte \(index)")
    }
    #expect(PNG.symbolRows(in: []) == nil)
  }

  // The check values of the two sums: of "123456789" and "Wikipedia", from their catalogues.
  @Test("end their chunks with the checksums of the standards")
  func sums() {
    #expect(PNG.crc(Array("123456789".utf8)) == 0xCBF4_3926)
    #expect(PNG.adler(Array("Wikipedia".utf8)) == 0x11E6_0398)
  }

  @Test("have the size that they declare")
  func size() throws {
    let symbol = try #require(QRSymbol("x", level: .low))
    let file = PNG.bytes(of: symbol, scale: 4)
    #expect(file[16..<24].elementsEqual([0, 0, 0, 116, 0, 0, 0, 116]))
  }
}
