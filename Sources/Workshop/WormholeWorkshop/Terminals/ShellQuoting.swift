extension String {
  /// The text as one word of a shell's command line.
  package var quotedForShell: String {
    let isPlain = utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        true
      default: "-_./:@%+=,".utf8.contains(byte)
      }
    }
    return isPlain && !isEmpty ? self : inSingleQuotes
  }

  /// The text in the quotes that every shell takes literally.
  package var inSingleQuotes: String { "'" + replacing("'", with: "'\\''") + "'" }
}
