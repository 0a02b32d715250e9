import WormholeSystem

/// The names of this program.
///
/// It has two, because on Debian magic-wormhole owns `wormhole` and its manual page. Help, errors
/// and advice use the name by which the program was called, so that they can be typed unchanged.
enum ProgramName {
  static let standard = "wormhole"
  /// A name that no other program has.
  static let second = "wormholectl"

  /// The manual page about the format, which has one name.
  static let format = "wormhole-format"

  /// The name by which this process was called.
  static let called = name(in: Program.rawArguments.first ?? [])

  /// Returns the name in the first word of a command line; the standard one for any other
  /// program's, as in a test.
  static func name(in word: [UInt8]) -> String {
    let last = word.split(separator: UInt8(ascii: "/")).last.map { Array($0) } ?? []
    return last == Array(second.utf8) ? second : standard
  }
}
