/// A key at a terminal in raw mode.
enum ScreenKey: Equatable {
  case up, down
  /// Right or `l`: like enter, but it confirms nothing.
  case forward
  case enter, back, tab, help, quit
  /// Control-C, which ends the program everywhere.
  case interrupt
  /// Control-Z, which gives the terminal back to the shell.
  case suspend
  case letter(Character)
}

/// The keys in the bytes that a terminal sends, which may come in pieces.
struct KeyReader {
  /// As in vi, less and many others.
  private static let characters: [Character: ScreenKey] = [
    "k": .up, "j": .down, "h": .back, "l": .forward, "?": .help, "q": .quit, "\u{03}": .interrupt,
    "\u{1A}": .suspend, "\u{04}": .quit, "\t": .tab, "\n": .enter, "\r": .enter, "\u{08}": .back,
    "\u{7F}": .back,
  ]

  /// By the character that ends a sequence.
  private static let sequences: [Character: ScreenKey] = [
    "A": .up, "B": .down, "C": .forward, "D": .back, "P": .help, "Z": .tab,
  ]

  /// The beginning of a sequence. A lone escape byte is one, too, until nothing follows it.
  private var unfinished: [UInt8] = []

  var isWaiting: Bool { !unfinished.isEmpty }

  /// Returns the keys that are complete; unknown ones are skipped.
  mutating func keys(in bytes: [UInt8]) -> [ScreenKey] {
    var keys: [ScreenKey?] = []
    var rest = (unfinished + bytes)[...]
    unfinished = []
    while let byte = rest.popFirst() {
      guard byte == 0x1B else {
        let character = Character(UnicodeScalar(byte))
        let letter = (0x20..<0x7F).contains(byte) ? ScreenKey.letter(character) : nil
        keys.append(Self.characters[character] ?? letter)
        continue
      }
      // ESC alone is a key unless "[" or "O", numbers, and a final character follow.
      guard let next = rest.first, [UInt8(ascii: "["), UInt8(ascii: "O")].contains(next) else {
        if rest.isEmpty { unfinished = [byte] } else { keys.append(.back) }
        continue
      }
      guard let final = rest.dropFirst().firstIndex(where: { (0x40...0x7E).contains($0) }) else {
        unfinished = [byte] + rest
        break
      }
      keys.append(Self.sequences[Character(UnicodeScalar(rest[final]))])
      rest = rest[(final + 1)...]
    }
    return keys.compactMap { $0 }
  }

  /// Returns the keys of what was unfinished, because nothing follows: an escape byte alone is a key.
  mutating func finish() -> [ScreenKey] {
    defer { unfinished = [] }
    return unfinished == [0x1B] ? [.back] : []
  }
}
