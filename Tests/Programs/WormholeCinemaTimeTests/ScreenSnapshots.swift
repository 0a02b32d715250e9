import Foundation
import Testing
import WormholeSystem
import WormholeTerminals
import WormholeTestSupport

@testable import WormholeCinemaTime

/// The snapshots of screens in `Fixtures/screens`, a file for each screen; its README says how to write them again.
enum ScreenSnapshots {
  private static let folder = URL(filePath: Checkout.path("Fixtures/screens"))

  /// Set to write the snapshots instead of comparing them.
  private static let isWriting = Program.environment("WORMHOLE_WRITE_SCREENS") == "1"

  struct Snapshot: Equatable {
    let name: String
    let lines: [String]
  }

  /// Returns the lines of one snapshot.
  static func lines(of screen: String, _ name: String) throws -> [String] {
    let found = try read(screen).first { $0.name == name }
    return try #require(found, "Fixtures/screens/\(screen).txt has no snapshot \(name)").lines
  }

  static func check(_ screen: String, _ snapshots: [Snapshot]) throws {
    guard !isWriting else { return try write(screen, snapshots) }
    let wanted = try read(screen)
    #expect(wanted.map(\.name) == snapshots.map(\.name))
    for (wanted, drawn) in zip(wanted, snapshots) {
      let text = drawn.lines.joined(separator: "\n")
      #expect(wanted.lines == drawn.lines, "\(screen), \(drawn.name), is now\n\(text)")
    }
  }

  private static func file(_ screen: String) -> URL { folder.appending(path: "\(screen).txt") }

  private static func write(_ screen: String, _ snapshots: [Snapshot]) throws {
    let text = snapshots.map { "== \($0.name)\n" + $0.lines.map { $0 + "\n" }.joined() }.joined()
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try Data(text.utf8).write(to: file(screen))
  }

  private static func read(_ screen: String) throws -> [Snapshot] {
    let text = try String(contentsOf: file(screen), encoding: .utf8)
    var snapshots: [Snapshot] = []
    for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
      if line.hasPrefix("== ") {
        snapshots.append(Snapshot(name: String(line.dropFirst(3)), lines: []))
      } else if let last = snapshots.popLast() {
        snapshots.append(Snapshot(name: last.name, lines: last.lines + [String(line)]))
      }
    }
    return snapshots
  }
}

@Suite("The screens look as their snapshots show", .blocking)
struct ScreenSnapshotTests {
  @Test("Screen", arguments: ScreenScene.allCases)
  func screen(_ scene: ScreenScene) throws {
    try ScreenSnapshots.check(
      scene.rawValue,
      ScreenScene.sizes.map { .init(name: $0.testDescription, lines: scene.lines($0)) })
  }

  @Test("with colours, without, and on a dumb terminal")
  func palettes() throws {
    let size = ScreenScene.Size(columns: 40, rows: 12)
    let snapshots = Palette.allCases.map { palette in
      let lines = ScreenScene.films.lines(size, palette)
        .map { $0.replacing("\u{1B}[", with: "␛[") }
      return ScreenSnapshots.Snapshot(name: "\(palette)", lines: lines)
    }
    try ScreenSnapshots.check("palettes", snapshots)
  }
}
