import WormholeWorkshop

/// A line of text in one look.
struct StyledLine: Equatable {
  var text: String
  var style = CellStyle.plain

  init(_ text: String, _ style: CellStyle = .plain) {
    self.text = text
    self.style = style
  }

  /// Returns a text in as many lines as it needs. Words that are wider, mostly paths, continue on the next line.
  static func wrapped(_ text: String, _ style: CellStyle = .plain, columns: Int) -> [StyledLine] {
    TextWrapping.wrap(text, columns: max(1, columns), indent: 0)
      .split(separator: "\n", omittingEmptySubsequences: false)
      .map { StyledLine(String($0), style) }
  }
}
