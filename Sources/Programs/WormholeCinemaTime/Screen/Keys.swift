import WormholeTerminals

typealias KeyHint = (key: String, word: String)

extension ScreenState {
  /// The page's keys, by importance.
  var keys: [KeyHint] {
    let help = KeyHint("?", "help")
    let stop: [KeyHint] =
      isOtherSuspended
      ? [("z", "continue \(otherSide)")] : isOtherReachable ? [("z", "suspend \(otherSide)")] : []
    let rest: [KeyHint] = (opened.isEmpty ? [] : [("Esc", "back")]) + [("q", "quit")] + stop
    let change: [KeyHint] =
      subject.map { isPurchased($0) ? [("d", "give back")] : [("b", "buy")] } ?? []
    let other: KeyHint = page == .films ? ("t", "tickets") : ("f", "films")
    return switch page {
    case .face: [("Enter", "open"), help] + [("t", "tickets")] + rest
    case .films, .tickets:
      // Without a film, the other list is the only way.
      list.isEmpty
        ? [other, help] + rest
        : [("Enter", "open"), help] + change + [other] + rest + [("↑↓", "choose")]
    case .film: change + [help] + rest
    case .confirmation: [("y", "buy"), ("n", "no"), help]
    case .help: [("Esc", "close")]
    }
  }

  /// The page with all keys, after the obstacle, because a small screen cuts its message.
  func help(columns: Int) -> [StyledLine] {
    let table = Self.allKeys.flatMap { keys, meaning in
      let (above, lead) = columns >= 34 ? ("", keys.padded(to: 15)) : (keys + "\n", "  ")
      return (above + TextWrapping.wrap(meaning, columns: columns, after: lead))
        .split(separator: "\n").map { StyledLine(String($0)) }
    }
    let obstacle = visibleObstacle.map {
      StyledLine.wrapped("✗ \($0)", .bad, columns: columns) + [StyledLine("")]
    }
    let about =
      "Both sides share the tickets. To see the other side, run this in another terminal: "
      + otherCommand
    return (obstacle ?? []) + [StyledLine("Keys", .title)] + table + [StyledLine("")]
      + StyledLine.wrapped(about, .faint, columns: columns)
  }

  private static let allKeys: [(keys: String, meaning: String)] = [
    ("↑ k  ↓ j", "choose, or scroll the text"),
    ("Enter → l", "open"),
    ("Esc ← h", "back; Backspace, too"),
    ("f  t  Tab", "the films, the tickets, the other list"),
    ("b", "buy a ticket; y confirms it"),
    ("d", "give the ticket back"),
    ("z", "suspend the other side, or continue it"),
    ("Ctrl-Z", "suspend this side; fg continues it"),
    ("?", "this help"),
    ("q", "quit"),
  ]
}
