import Foundation
import Testing
import WormholeSystem
import WormholeTestSupport

@testable import WormholeCinemaTime

@Suite("The QR codes of the films", .blocking)
struct QRCodeTests {
  private static let reader = ["/usr/bin/zbarimg", "/usr/local/bin/zbarimg"]
    .first { FileManager.default.isExecutableFile(atPath: $0) }

  @Test(
    "are read by an independent program", .enabled(if: reader != nil),
    arguments: Movie.all)
  func decoded(movie: Movie) throws {
    let symbol = try #require(QRSymbol(movie.ticket, level: .quartile))
    let directory = try TemporaryDirectory()
    defer { withExtendedLifetime(directory) {} }
    let file = URL(fileURLWithPath: directory.path + "/code.png")
    try Data(PNG.bytes(of: symbol, scale: 4)).write(to: file)
    let process = try LineProcess(
      try #require(Self.reader), ["--nodbus", "--quiet", "--raw", file.path],
      environment: Program.environment)
    #expect(try process.line(until: .now + .seconds(20)) == movie.ticket)
  }

  @Test("are the files that the watch shows", arguments: Movie.all)
  func shown(movie: Movie) throws {
    let symbol = try #require(QRSymbol(movie.ticket, level: .quartile))
    #expect(PNG.symbolRows(in: PNG.bytes(of: symbol, scale: 4)) == symbol.rows)
  }
}
