import WormholeWorkshop

/// The division of a terminal: a frame with the side's name, the page in it, the message, and the keys.
///
/// A terminal with little room gets less decoration, so that the page keeps the most of it.
struct ScreenLayout {
  enum Decoration {
    /// A watch with a strap above and below.
    case strapped
    case framed
    /// Only a line with the name.
    case bar
  }

  private typealias Step = (decoration: Decoration, footerLines: Int)
  /// A room of some lines and columns.
  typealias Room = (rows: Int, columns: Int)

  let decoration: Decoration
  /// With its border; of a bar only the one line.
  let frame: Canvas.Area
  /// The page's area.
  let content: Canvas.Area
  let message: Canvas.Area
  let footer: [[KeyHint]]

  private static let phoneColumns = 100
  /// A watch is narrow, however wide the terminal is. The last column is the crown's.
  private static let watchColumns = 40
  /// So that a watch on a high terminal does not become a tower.
  private static let watchRows = 18
  private static let strapRows = 1

  /// - Parameters:
  ///   - wanted: The room that the page cannot do without, if the terminal has it at all.
  ///   - messageRows: At least one.
  init(columns: Int, rows: Int, isPhone: Bool, wanted: Room?, messageRows: Int, footer: Footer) {
    let footers = rows < 16 ? [1] : [2, 1]
    let decorations: [Decoration] = isPhone ? [.framed, .bar] : [.strapped, .framed, .bar]
    let layouts = decorations.flatMap { decoration in
      footers.map { lines in
        ScreenLayout(
          decoration, columns: columns, rows: rows, isPhone: isPhone, messageRows: messageRows,
          footer: footer.lines(columns: columns, maximum: lines))
      }
    }
    let usual = layouts.first(where: \.isRoomy) ?? layouts[layouts.count - 1]
    let suitable = wanted.flatMap { wanted in
      layouts.first {
        $0.isRoomy && $0.content.rows >= wanted.rows && $0.content.columns >= wanted.columns
      }
    }
    self = suitable ?? usual
  }

  private init(
    _ decoration: Decoration, columns: Int, rows: Int, isPhone: Bool, messageRows: Int,
    footer: [[KeyHint]]
  ) {
    self.decoration = decoration
    self.footer = footer
    message = Canvas.Area(
      row: rows - footer.count - messageRows, column: 1, rows: messageRows, columns: columns - 2)
    let used = min(columns, isPhone ? Self.phoneColumns : Self.watchColumns)
    let first = isPhone ? 0 : (columns - used) / 2
    guard decoration != .bar else {
      frame = Canvas.Area(row: 0, column: first, rows: 1, columns: used)
      content = Canvas.Area(row: 1, column: first, rows: message.row - 1, columns: used)
      return
    }
    let strap = decoration == .strapped ? Self.strapRows : 0
    let free = message.row - 2 * strap
    frame = Canvas.Area(
      row: strap, column: first, rows: isPhone ? free : min(free, Self.watchRows + 2),
      columns: isPhone ? used : used - 1)
    content = frame.inset(rows: 1, columns: 1)
  }

  /// Whether the page keeps enough room beside the decoration.
  private var isRoomy: Bool {
    switch decoration {
    case .strapped: content.rows >= 14 && content.columns >= 30
    case .framed: content.rows >= 6 && content.columns >= 22
    case .bar: true
    }
  }
}
