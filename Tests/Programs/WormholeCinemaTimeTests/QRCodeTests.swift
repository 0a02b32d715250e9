import Foundation
import Testing
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import WormholeCinemaTime

@Suite("The QR codes of the films", .blocking)
struct QRCodeTests {
  private static let reader = ["/usr/bin/zbarimg", "/usr/local/bin/zbarimg"]
    .first { FileManager.default.isExecutableFile(atPath: $0) }

  @Test("are, module by module, those of another encoder", arguments: GoldenCode.all)
  func golden(golden: GoldenCode) throws {
    let code = try #require(QRCode(golden.text))
    #expect(code.rows.map(Self.hexadecimal) == golden.rows)
  }

  @Test("are compared for every film, and for texts of each extreme length")
  func coverage() {
    let texts = Set(GoldenCode.all.map(\.text))
    #expect(texts.isSuperset(of: Movie.all.map(\.ticket)))
    #expect(texts.map(\.utf8.count).min() == 1 && texts.map(\.utf8.count).max() == 32)
  }

  // ISO/IEC 18004:2015, table 7: data capacity of version 2-L in byte mode.
  @Test("hold the capacity of the standard, and not a byte more")
  func capacity() {
    #expect(QRCode(String(repeating: "A", count: 32)) != nil)
    #expect(QRCode(String(repeating: "A", count: 33)) == nil)
    #expect(QRCode("") != nil)
  }

  @Test(
    "are read by an independent program", .enabled(if: reader != nil),
    arguments: Movie.all)
  func decoded(movie: Movie) throws {
    let lines = try #require(QRCode(movie.ticket)).lines
    let directory = try TemporaryDirectory()
    defer { withExtendedLifetime(directory) {} }
    let file = URL(fileURLWithPath: directory.path + "/code.pbm")
    try Data(Self.image(of: lines, scale: 4).utf8).write(to: file)
    let process = try LineProcess(
      try #require(Self.reader), ["--nodbus", "--quiet", "--raw", file.path],
      environment: Program.environment)
    #expect(try process.line(until: soon) == movie.ticket)
  }

  /// Returns the text of a code as an image in the portable bitmap format, as a camera sees it on a terminal.
  private static func image(of lines: [String], scale: Int) -> String {
    let rows = lines.flatMap { line in
      ["▀", "▄"].map { half in
        line.flatMap { character in
          let isLight = character == "█" || String(character) == half
          return String(repeating: isLight ? "0" : "1", count: scale)
        }
      }
    }
    let pixels = rows.flatMap { Array(repeating: String($0), count: scale) }
    return "P1\n\(rows[0].count) \(pixels.count)\n" + pixels.joined(separator: "\n") + "\n"
  }

  private static func hexadecimal(_ row: [Bool]) -> String {
    stride(from: 0, to: row.count, by: 4).map { start in
      let digit = (start..<start + 4).reduce(0) { digit, column in
        digit << 1 | (column < row.count && row[column] ? 1 : 0)
      }
      return String(digit, radix: 16)
    }.joined()
  }
}

/// A code that another encoder has made: see Fixtures/qr-codes.
struct GoldenCode: Sendable, CustomTestStringConvertible {
  let text: String
  let rows: [String]

  var testDescription: String { text }

  static let all: [GoldenCode] = {
    do {
      let content = try String(
        contentsOfFile: Checkout.path("Fixtures/qr-codes/symbols.txt"), encoding: .utf8)
      return content.split(separator: "\n\n").map { block in
        let lines = block.split(separator: "\n").map(String.init)
        return GoldenCode(text: lines[0], rows: Array(lines.dropFirst()))
      }
    } catch {
      preconditionFailure("the fixture belongs to the sources: \(error)")
    }
  }()
}

@Suite("Half blocks", .blocking)
struct HalfBlocksTests {
  @Test("show two rows of dots in a line")
  func drawing() {
    let lines = HalfBlocks.lines([[true, false, true], [true, true, false], [false, true, true]])
    #expect(lines == ["█▄▀", " ▀▀"])
  }

  @Test("show a code with a light margin of two modules")
  func margin() throws {
    let lines = try #require(QRCode("?")).lines
    #expect(lines.count == 15 && lines.allSatisfy { $0.count == 29 })
    #expect(lines[0] == String(repeating: "█", count: 29))
    #expect(lines[1].hasPrefix("██ ▄▄▄▄▄ █") && lines[14].allSatisfy { $0 == "▀" })
  }
}
