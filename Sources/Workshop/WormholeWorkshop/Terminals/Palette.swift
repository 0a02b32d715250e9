import WormholeSystem

/// The palettes of terminals.
package enum Palette: Sendable, CaseIterable {
  /// Colours, and the emphasis that goes with them.
  case colours
  /// Bold and inverse, but no colours.
  case emphasis
  /// Characters only.
  case characters

  /// Returns the palette of a program's output: colours on a terminal; emphasis if NO_COLOR is set and
  /// not empty (https://no-color.org); characters on a dumb terminal and into a file.
  package static func wanted(
    isTerminal: Bool = Program.isTerminal(1),
    variable: (String) -> String? = { Program.environment($0) }
  ) -> Palette {
    guard isTerminal, variable("TERM") != "dumb" else { return .characters }
    return (variable("NO_COLOR") ?? "").isEmpty ? .colours : .emphasis
  }
}

/// The look of a character, as numbers of the terminal's "select graphic rendition": "1;32".
package struct CellStyle: Hashable, Sendable {
  private let colours: String
  private let emphasis: String

  package static let plain = CellStyle("")

  /// - Parameters:
  ///   - colours: The look with colours.
  ///   - emphasis: The look without colours.
  package init(_ colours: String, withoutColours emphasis: String = "") {
    self.colours = colours
    self.emphasis = emphasis
  }

  func rendition(in palette: Palette) -> String {
    switch palette {
    case .colours: colours
    case .emphasis: emphasis
    case .characters: ""
    }
  }
}
