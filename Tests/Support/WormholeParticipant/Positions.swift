import WormholeDefaultsClients

/// The client of NSUbiquitousKeyValueStore: `turn BOOK`, one page further each time; `page BOOK`,
/// `close BOOK`, `exceed`, `books`, `posted`.
final class Positions {
  // The client is of Swift 5 and not Sendable; this program's commands come one after the other.
  nonisolated(unsafe) static let shared = Positions()
  private let positions = ReadingPositions()

  func perform(_ word: String, _ book: String?) -> String {
    let book = book ?? ""
    switch word {
    case "turn": positions.turn(book, to: positions.page(of: book) + 1)
    case "close": positions.close(book)
    case "exceed": positions.exceed()
    case "books": return positions.books.joined(separator: ",")
    case "posted": return positions.posted
    default: break
    }
    return "\(positions.page(of: book)) \(positions.isRead(book))"
  }
}
