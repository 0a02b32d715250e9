import FoundationEssentials
import Testing
import WormholeTestSupport

@testable import WormholeCinemaTime

@Suite("QR symbols", .blocking)
struct QRSymbolTests {
  @Test("are, module by module, those of another encoder", arguments: GoldenSymbol.all)
  func golden(golden: GoldenSymbol) throws {
    let symbol = try #require(QRSymbol(golden.text, level: golden.level))
    #expect(symbol.version == golden.version)
    #expect(symbol.hexadecimalRows == golden.rows)
  }

  @Test("are compared in every version, and for every film")
  func coverage() {
    #expect(Set(GoldenSymbol.all.map(\.version)) == Set(1...40))
    #expect(GoldenSymbol.all.count { !$0.isRepeated } == 9)
    for level in QRCorrectionLevel.allCases {
      #expect(GoldenSymbol.all.contains { $0.level == level && $0.version > 30 })
    }
  }

  // ISO/IEC 18004:2015, table 7: data capacity of version 40 in byte mode.
  @Test(
    "hold the capacity of the standard, and not a byte more",
    arguments: [(QRCorrectionLevel.low, 2953), (.medium, 2331), (.quartile, 1663), (.high, 1273)])
  func capacity(level: QRCorrectionLevel, bytes: Int) {
    #expect(QRSymbol(Array(repeating: 0x41, count: bytes), level: level)?.version == 40)
    #expect(QRSymbol(Array(repeating: 0x41, count: bytes + 1), level: level) == nil)
  }

  // ISO/IEC 18004:2015, table E.1.
  @Test(
    "have their alignment patterns where the standard places them",
    arguments: [
      (1, []), (2, [6, 18]), (7, [6, 22, 38]), (14, [6, 26, 46, 66]),
      (32, [6, 34, 60, 86, 112, 138]),
      (36, [6, 24, 50, 76, 102, 128, 154]), (40, [6, 30, 58, 86, 114, 142, 170]),
    ])
  func alignment(version: Int, centres: [Int]) {
    #expect(QRVersion(number: version).alignmentCentres == centres)
  }

  // ISO/IEC 18004:2015, C.2 (level M, mask 101) and D.2 (version 7).
  @Test("have the format and version information of the standard's examples")
  func information() {
    #expect(QRInformation.format(.medium, QRMask(number: 5)) == 0b100_0000_1100_1110)
    #expect(QRInformation.version(7) == 0b00_0111_1100_1001_0100)
  }

  @Test("may be empty")
  func empty() throws {
    #expect(try #require(QRSymbol("", level: .high)).version == 1)
  }
}

/// A symbol that another encoder has made: see Fixtures/qr-codes.
struct GoldenSymbol: Sendable, CustomTestStringConvertible {
  let level: QRCorrectionLevel
  let version: Int
  let text: String
  let isRepeated: Bool
  let rows: [String]

  var testDescription: String { "\(version)-\(level.rawValue)" }

  private static let sentence =
    "A ticket for The General @ 17:00, row 7, seat 12; bring your own locomotive. "

  static let all: [GoldenSymbol] = {
    let fixtures = URL(filePath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    do {
      let content = try String(
        contentsOf: fixtures.appending(path: "Fixtures/qr-codes/symbols.txt"), encoding: .utf8)
      return content.split(separator: "\n\n").map(read)
    } catch {
      preconditionFailure("the fixture belongs to the sources: \(error)")
    }
  }()

  private static func read(_ block: Substring) -> GoldenSymbol {
    let lines = block.split(separator: "\n").map(String.init)
    let head = lines[0].split(separator: " ", maxSplits: 3).map(String.init)
    guard head.count == 4, let level = QRCorrectionLevel(rawValue: head[0]),
      let version = Int(head[1]), let length = Int(head[2])
    else { preconditionFailure("no symbol: \(lines[0])") }
    let repeated = String(repeating: sentence, count: 50).prefix(length)
    return GoldenSymbol(
      level: level, version: version, text: head[3] == "*" ? String(repeated) : head[3],
      isRepeated: head[3] == "*", rows: Array(lines.dropFirst()))
  }
}

extension QRSymbol {
  fileprivate var hexadecimalRows: [String] {
    rows.map { row in
      stride(from: 0, to: row.count, by: 4).map { start in
        let digit = (start..<(start + 4)).reduce(0) { digit, column in
          digit << 1 | (column < row.count && row[column] ? 1 : 0)
        }
        return String(digit, radix: 16)
      }.joined()
    }
  }
}
