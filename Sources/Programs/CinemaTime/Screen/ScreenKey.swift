/// A key at a terminal in raw mode.
enum ScreenKey: Equatable {
  case up, down, enter, back, suspend, quit
  case letter(Character)

  /// Returns the keys in the input; unknown ones are skipped.
  static func keys(in bytes: [UInt8]) -> [ScreenKey] {
    var keys: [ScreenKey] = []
    var rest = bytes[...]
    while let byte = rest.popFirst() {
      switch byte {
      case 0x1B:
        // An arrow is ESC, "[" or "O", and a letter; ESC alone goes back.
        guard let next = rest.first, [UInt8(ascii: "["), UInt8(ascii: "O")].contains(next) else {
          keys.append(.back)
          continue
        }
        rest = rest.dropFirst()
        let final = rest.firstIndex { (0x40...0x7E).contains($0) } ?? rest.endIndex
        if final < rest.endIndex {
          if rest[final] == UInt8(ascii: "A") { keys.append(.up) }
          if rest[final] == UInt8(ascii: "B") { keys.append(.down) }
          rest = rest[(final + 1)...]
        } else {
          rest = []
        }
      case 0x03, 0x04: keys.append(.quit)
      case 0x1A: keys.append(.suspend)
      case 0x0A, 0x0D: keys.append(.enter)
      case 0x08, 0x7F: keys.append(.back)
      case 0x20..<0x7F: keys.append(key(for: Character(UnicodeScalar(byte))))
      default: continue
      }
    }
    return keys
  }

  private static func key(for character: Character) -> ScreenKey {
    switch character {
    case "k": .up
    case "j": .down
    case "q": .quit
    default: .letter(character)
    }
  }
}
