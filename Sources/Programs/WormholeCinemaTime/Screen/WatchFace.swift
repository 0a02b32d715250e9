import Foundation
import WormholeTerminals

/// The watch's face: the time, and the next show as a complication.
extension ScreenDrawing {
  mutating func drawFace(_ area: Canvas.Area) {
    let next = state.nextShow
    let complication = [
      StyledLine(next?.title ?? "No tickets yet", next == nil ? .plain : .title),
      next.map { StyledLine("\($0.time), \(state.time.wait(untilHour: $0.hour))", .time) }
        ?? StyledLine("Enter: the films", .faint),
    ]
    let time = state.time.text
    let large = ClockDigits.large(time)
    let clock = area.rows >= 12 && large.fits(in: area) ? large : ClockDigits.small(time)
    let isBox = area.rows >= 9 && area.columns >= 28
    var place = area
    place.row += max(0, area.rows - clock.count - (isBox ? 5 : 2)) / 2
    canvas.put(clock.map { StyledLine($0, .title) }, in: place, isCentred: true)
    place.row += clock.count
    place.rows = area.row + area.rows - place.row
    if isBox {
      place = Canvas.Area(
        row: place.row + 1, column: area.column + (area.columns - 28) / 2, rows: 4, columns: 28)
      canvas.frame(place, .faint)
      place = place.inset(rows: 1, columns: 2)
    }
    canvas.put(complication, in: place, isCentred: true)
  }
}

/// A clock's digits, made of blocks.
enum ClockDigits {
  /// Five rows of three dots each; the colon has one column.
  private static let dots: [Character: [String]] = [
    "0": ["###", "# #", "# #", "# #", "###"],
    "1": [" # ", "## ", " # ", " # ", "###"],
    "2": ["###", "  #", "###", "#  ", "###"],
    "3": ["###", "  #", "###", "  #", "###"],
    "4": ["# #", "# #", "###", "  #", "  #"],
    "5": ["###", "#  ", "###", "  #", "###"],
    "6": ["###", "#  ", "###", "# #", "###"],
    "7": ["###", "  #", "  #", "  #", "  #"],
    "8": ["###", "# #", "###", "# #", "###"],
    "9": ["###", "# #", "###", "  #", "###"],
    ":": [" ", "#", " ", "#", " "],
  ]

  /// The dots of a time, row by row.
  private static func rows(_ time: String) -> [[Bool]] {
    (0..<5).map { row in
      time.compactMap { dots[$0]?[row] }.joined(separator: " ").map { $0 == "#" }
    }
  }

  /// Two characters for each dot, so that it is a square.
  static func large(_ time: String) -> [String] {
    rows(time).map { row in row.map { $0 ? "██" : "  " }.joined() }
  }

  /// Two dots, one above the other, for each character.
  static func small(_ time: String) -> [String] { HalfBlocks.lines(rows(time)) }
}
