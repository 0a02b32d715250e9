import WormholeWorkshop

/// The page with all keys.
enum KeyHelp {
  private static let keys: [(keys: String, meaning: String)] = [
    ("↑ k  ↓ j", "choose, or scroll the text"),
    ("PgUp PgDn", "a page up, a page down"),
    ("Home g  End G", "the first, the last"),
    ("Enter → l", "open"),
    ("Esc ← h", "back; Backspace, too"),
    ("f  t  Tab", "the films, the tickets, the other list"),
    ("b", "buy a ticket; y confirms it"),
    ("d", "give the ticket back"),
    ("c", "continue with the film that is open on the other side"),
    ("?", "this help"),
    ("q", "quit; Ctrl-Z suspends"),
  ]

  private static let keyColumns = 15

  /// Returns the keys; before them what is in the way, because a small screen cuts its message.
  static func lines(_ state: ScreenState, columns: Int) -> [StyledLine] {
    let about =
      "Both sides share the tickets. To see the other side, run this in another terminal: "
      + state.otherCommand
    let obstacle = state.visibleObstacle.map {
      StyledLine.wrapped("✗ \($0)", Look.bad, columns: columns) + [StyledLine("")]
    }
    let indent = columns >= 34 ? keyColumns : 2
    let table = keys.flatMap { entry -> [StyledLine] in
      let room = columns - indent
      let meaning = StyledLine.wrapped(entry.meaning, columns: room).map(\.text)
      let margin = String(repeating: " ", count: indent)
      let rest = meaning.map { StyledLine(margin + $0) }
      guard indent == keyColumns else { return [StyledLine(entry.keys, Look.key)] + rest }
      let lead = entry.keys.padding(to: indent)
      return [StyledLine(lead + (meaning.first ?? ""))] + rest.dropFirst()
    }
    return (obstacle ?? []) + [StyledLine("Keys", Look.title)] + table + [StyledLine("")]
      + StyledLine.wrapped(about, Look.faint, columns: columns)
  }
}

extension String {
  /// Returns the text with blanks up to a width.
  func padding(to columns: Int) -> String {
    self + String(repeating: " ", count: max(0, columns - count))
  }
}
