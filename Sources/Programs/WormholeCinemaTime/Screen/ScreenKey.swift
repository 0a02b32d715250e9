/// A key at a terminal in raw mode.
enum ScreenKey: Equatable {
  case up, down, pageUp, pageDown, first, last
  /// Right or `l`: like enter, but it confirms nothing.
  case forward
  case enter, back, tab, help, suspend, quit
  /// Control-C, which ends the program everywhere.
  case interrupt
  case letter(Character)

  /// Returns the key of a character, as in vi, less and many others.
  fileprivate init(_ character: Character) {
    self =
      switch character {
      case "k": .up
      case "j": .down
      case "g": .first
      case "G": .last
      case "h": .back
      case "l": .forward
      case " ": .pageDown
      case "?": .help
      case "q": .quit
      default: .letter(character)
      }
  }
}

/// The keys in the bytes that a terminal sends, which may come in pieces.
struct KeyReader {
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
        if let key = Self.key(of: byte) { keys.append(key) }
        continue
      }
      guard let sequence = Self.sequence(in: rest) else {
        unfinished = Array(rest)
        return keys
      }
      rest = rest.dropFirst(sequence.count)
      if let key = Self.key(of: sequence) { keys.append(key) }
    }
    return keys
  }

  /// Returns the keys of what was unfinished, because nothing follows: an escape byte alone is a key.
  mutating func finish() -> [ScreenKey] {
    defer { unfinished = [] }
    return unfinished == [0x1B] ? [.back] : []
  }

  private static func key(of byte: UInt8) -> ScreenKey? {
    switch byte {
    case 0x03: .interrupt
    case 0x04: .quit
    case 0x09: .tab
    case 0x1A: .suspend
    case 0x0A, 0x0D: .enter
    case 0x08, 0x7F: .back
    case 0x20..<0x7F: ScreenKey(Character(UnicodeScalar(byte)))
    default: nil
    }
  }

  /// Returns the sequence at the beginning: ESC, "[" or "O", numbers, and a final character; or ESC
  /// alone, if something else follows. Nil if the sequence is not complete.
  private static func sequence(in bytes: ArraySlice<UInt8>) -> [UInt8]? {
    let rest = bytes.dropFirst()
    guard let next = rest.first else { return nil }
    guard [UInt8(ascii: "["), UInt8(ascii: "O")].contains(next) else { return [0x1B] }
    let numbers = rest.dropFirst()
    guard let final = numbers.firstIndex(where: { (0x40...0x7E).contains($0) }) else { return nil }
    return Array(bytes[...final])
  }

  private static func key(of sequence: [UInt8]) -> ScreenKey? {
    guard sequence.count > 1, let final = sequence.last else { return .back }
    switch Character(UnicodeScalar(final)) {
    case "A": return .up
    case "B": return .down
    case "C": return .forward
    case "D": return .back
    case "H": return .first
    case "F": return .last
    case "P": return .help
    case "Z": return .tab
    case "~":
      return key(ofNumber: String(decoding: sequence.dropFirst(2).dropLast(), as: UTF8.self))
    default: return nil
    }
  }

  /// The keys of terminals in the manner of the VT220, perhaps with a modifier after ";".
  private static func key(ofNumber text: String) -> ScreenKey? {
    switch text.prefix(while: { $0 != ";" }) {
    case "1", "7": .first
    case "4", "8": .last
    case "5": .pageUp
    case "6": .pageDown
    case "11": .help
    default: nil
    }
  }
}
