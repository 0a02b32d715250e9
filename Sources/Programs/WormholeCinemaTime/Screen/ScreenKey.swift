/// A key at a terminal in raw mode.
enum ScreenKey: Equatable {
  case up, down, pageUp, pageDown, first, last
  /// Right or `l`: like enter, but it confirms nothing.
  case forward
  case enter, back, tab, help, suspend, quit
  /// Control-C, which ends the program everywhere.
  case interrupt
  case letter(Character)
}

/// The keys in the bytes that a terminal sends, which may come in pieces.
struct KeyReader {
  /// As in vi, less and many others.
  private static let characters: [Character: ScreenKey] = [
    "k": .up, "j": .down, "g": .first, "G": .last, "h": .back, "l": .forward, " ": .pageDown,
    "?": .help, "q": .quit, "\u{03}": .interrupt, "\u{04}": .quit, "\t": .tab, "\u{1A}": .suspend,
    "\n": .enter, "\r": .enter, "\u{08}": .back, "\u{7F}": .back,
  ]

  /// What follows ESC and "[" or "O": a letter, or a number of the VT220 without its modifier.
  private static let sequences: [String: ScreenKey] = [
    "A": .up, "B": .down, "C": .forward, "D": .back, "H": .first, "F": .last, "P": .help,
    "Z": .tab, "1~": .first, "7~": .first, "4~": .last, "8~": .last, "5~": .pageUp,
    "6~": .pageDown, "11~": .help,
  ]

  /// The beginning of a sequence. A lone escape byte is one, too, until nothing follows it.
  private var unfinished: [UInt8] = []

  var isWaiting: Bool { !unfinished.isEmpty }

  /// Returns the keys that are complete; unknown ones are skipped.
  mutating func keys(in bytes: [UInt8]) -> [ScreenKey] {
    var keys: [ScreenKey] = []
    var rest = (unfinished + bytes)[...]
    unfinished = []
    while let byte = rest.first {
      guard byte == 0x1B else {
        rest = rest.dropFirst()
        let character = Character(UnicodeScalar(byte))
        let letter = (0x20..<0x7F).contains(byte) ? ScreenKey.letter(character) : nil
        keys += [Self.characters[character] ?? letter].compactMap { $0 }
        continue
      }
      guard let sequence = Self.sequence(in: rest) else {
        unfinished = Array(rest)
        return keys
      }
      rest = rest.dropFirst(sequence.count)
      keys += [Self.key(of: sequence)].compactMap { $0 }
    }
    return keys
  }

  /// Returns the keys of what was unfinished, because nothing follows: an escape byte alone is a key.
  mutating func finish() -> [ScreenKey] {
    defer { unfinished = [] }
    return unfinished == [0x1B] ? [.back] : []
  }

  /// Returns the sequence at the beginning: ESC, "[" or "O", numbers, and a final character; or ESC
  /// alone, if something else follows. Nil if the sequence is not complete.
  private static func sequence(in bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
    let rest = bytes.dropFirst()
    guard let next = rest.first else { return nil }
    guard [UInt8(ascii: "["), UInt8(ascii: "O")].contains(next) else { return bytes.prefix(1) }
    let final = rest.dropFirst().firstIndex { (0x40...0x7E).contains($0) }
    return final.map { bytes[...$0] }
  }

  private static func key(of sequence: ArraySlice<UInt8>) -> ScreenKey? {
    guard sequence.count > 1 else { return .back }
    let parts = String(decoding: sequence.dropFirst(2), as: UTF8.self)
    guard parts.hasSuffix("~") else { return sequences[String(parts.suffix(1))] }
    return sequences[parts.prefix { $0 != ";" && $0 != "~" } + "~"]
  }
}
