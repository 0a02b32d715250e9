import Foundation
import Wormhole

/// The QR codes of tickets. Only the phone makes them; the watch receives and keeps them as files.
enum QRCode {
  /// Returns the watch's file for the code of a film: `<id>.png` in its documents.
  static func url(for id: Int) -> URL { documents.appendingPathComponent("\(id).png") }

  /// The watch's own directory, which lies in the group beside the container.
  static var documents: URL {
    Cinema.container.url.appendingPathComponent("cinematime/\(Cinema.watchName)")
  }

  /// Returns the tickets whose codes the watch does not have.
  static func missing(_ movies: [Movie]) -> [Int] {
    movies.map(\.id).filter { !FileManager.default.fileExists(atPath: url(for: $0).path) }
  }

  /// Writes a code to a temporary file, to be sent.
  static func writeTemporary(_ movie: Movie) throws -> URL {
    // Both sides could make codes, but only the phone does, because only iOS has Core Image.
    guard Cinema.isPhone, let symbol = symbol(movie) else { throw CocoaError(.featureUnsupported) }
    let url = FileManager.default.temporaryDirectory
      .appendingPathComponent("cinematime-\(UUID().uuidString).png")
    try file(symbol).write(to: url)
    return url
  }

  static func removeTemporary(_ url: URL) {
    do {
      try FileManager.default.removeItem(at: url)
    } catch {
      // The transfer has ended twice, or the system has cleaned up.
      return
    }
  }

  /// Moves a received file to the watch's documents before it disappears.
  static func take(_ file: URL, for id: Int) throws {
    try FileManager.default.createDirectory(at: documents, withIntermediateDirectories: true)
    let mine = url(for: id)
    if FileManager.default.fileExists(atPath: mine.path) {
      try FileManager.default.removeItem(at: mine)
    }
    try FileManager.default.moveItem(at: file, to: mine)
  }

  /// On the watch: removes the codes of tickets that were given back.
  static func removeFiles(except movies: [Movie]) {
    guard !Cinema.isPhone else { return }
    let wanted = Set(movies.map { "\($0.id).png" })
    do {
      let manager = FileManager.default
      guard manager.fileExists(atPath: documents.path) else { return }
      for name in try manager.contentsOfDirectory(atPath: documents.path)
      where name.hasSuffix(".png") && !wanted.contains(name) {
        try manager.removeItem(at: documents.appendingPathComponent(name))
      }
    } catch {
      Cinema.log(.notRemoved(error.localizedDescription))
    }
  }

  /// Returns the code of a ticket for the screen, or nil until the watch has it.
  static func symbolRows(_ movie: Movie) -> [[Bool]]? {
    guard let symbol = symbol(movie) else { return nil }
    // Absent until it arrives; a file with another content is shown as absent, too.
    let isHere =
      Cinema.isPhone
      || FileManager.default.contents(atPath: url(for: movie.id).path) == file(symbol)
    return isHere ? symbol.rows : nil
  }

  private static func symbol(_ movie: Movie) -> QRSymbol? {
    QRSymbol(movie.ticket, level: .quartile)
  }

  private static func file(_ symbol: QRSymbol) -> Data { Data(PNG.bytes(of: symbol, scale: 4)) }
}
