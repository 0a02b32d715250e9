import Foundation
import Wormhole

/// The QR codes of tickets, as files of text. Only the phone makes them, because on Apple's
/// platforms only iOS has Core Image; the watch receives them, keeps them, and shows their content.
enum TicketCodes {
  /// Shown until the watch has a code.
  static let placeholder = "(x) its QR code comes from the phone"

  /// The watch's own directory, which lies in the group beside the container.
  private static var documents: URL {
    Cinema.container.url.appendingPathComponent("cinematime/\(Cinema.watchName)")
  }

  private static func file(of id: Int) -> URL { documents.appendingPathComponent("\(id).txt") }

  /// Returns the lines of a ticket's code, or nil until the watch has it.
  static func lines(of movie: Movie) -> [String]? {
    guard !Cinema.isPhone else { return QRCode(movie.ticket)?.lines }
    return FileManager.default.contents(atPath: file(of: movie.id).path).map {
      String(decoding: $0, as: UTF8.self).split(separator: "\n").map(String.init)
    }
  }

  static func missing(_ movies: [Movie]) -> [Int] {
    movies.map(\.id).filter { !FileManager.default.fileExists(atPath: file(of: $0).path) }
  }

  /// On the phone: writes a code to a temporary file, to be sent.
  static func writeTemporary(_ movie: Movie) throws -> URL {
    guard let lines = lines(of: movie) else { throw CocoaError(.featureUnsupported) }
    let url = FileManager.default.temporaryDirectory
      .appendingPathComponent("cinematime-\(UUID().uuidString).txt")
    try Data((lines.joined(separator: "\n") + "\n").utf8).write(to: url)
    return url
  }

  /// On the watch: moves a received file to the documents before it disappears.
  static func take(_ received: URL, for id: Int) throws {
    try FileManager.default.createDirectory(at: documents, withIntermediateDirectories: true)
    remove(file(of: id))
    try FileManager.default.moveItem(at: received, to: file(of: id))
  }

  /// On the watch: removes the codes of tickets that were given back.
  static func removeFiles(except movies: [Movie]) {
    guard !Cinema.isPhone else { return }
    for movie in Movie.all where !movies.contains(movie) { remove(file(of: movie.id)) }
  }

  static func remove(_ file: URL) {
    guard FileManager.default.fileExists(atPath: file.path) else { return }
    do {
      try FileManager.default.removeItem(at: file)
    } catch {
      Cinema.log(failure: "a QR code was not removed: \(error.localizedDescription)")
    }
  }
}
