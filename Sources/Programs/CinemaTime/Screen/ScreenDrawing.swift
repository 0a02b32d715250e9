import Terminals

/// A screen as lines of text: a title, the view, the last event, and the keys.
struct ScreenDrawing {
  private let state: ScreenState
  private let context: ViewContext
  private let message: [String]

  /// A watch is narrow, however wide the terminal is.
  private static let watchColumns = 40
  private static let phoneColumns = 100
  /// The title, the message and the keys.
  private static let frameRows = 3

  init(_ state: ScreenState, columns: Int, rows: Int, hasColour: Bool) {
    self.state = state
    let columns = min(max(columns, 10), state.isPhone ? Self.phoneColumns : Self.watchColumns)
    let rows = max(rows, Self.frameRows + 1) - Self.frameRows
    // The reason and the remedy are shown in full; half of the view remains.
    let lines = Self.lines(of: state.message, columns: columns)
    message = lines.isEmpty ? [""] : Array(lines.prefix(rows / 2 + 1))
    context = ViewContext(
      isPhone: state.isPhone, columns: columns, rows: rows - (message.count - 1),
      hasColour: hasColour)
  }

  /// The lines, at most as many and as wide as the terminal.
  var lines: [String] {
    let view = view.prefix(context.rows)
    let empty = Array(repeating: "", count: context.rows - view.count)
    return [context.styled(context.fitted(title), "7")] + view + empty
      + message.map { context.styled(context.fitted($0), "2") }
      + [context.styled(context.fitted(keys), "1")]
  }

  /// Words that are wider than the screen, mostly paths, continue on the next line.
  private static func lines(of message: String, columns: Int) -> [String] {
    TextWrapping.wrap(message, columns: columns, indent: 0).split(separator: "\n").flatMap { line in
      stride(from: 0, to: line.count, by: columns).map {
        String(line.dropFirst($0).prefix(columns))
      }
    }
  }

  private var view: [String] {
    switch state.page {
    case .tickets:
      PurchasedTicketsListView(
        tickets: state.tickets, selection: state.selection, nextShow: state.nextShow
      ).lines(context)
    case .films: MovieListView(movies: state.films, selection: state.selection).lines(context)
    case .details(let movie, let isConfirming):
      MovieDetailsView(
        movie: movie, isPurchased: state.isPurchased(movie), isConfirming: isConfirming,
        code: state.code
      ).lines(context)
    }
  }

  private var title: String {
    let side = state.isPhone ? "CinemaTime" : "CinemaTime watch"
    let other = state.isPhone ? "watch" : "phone"
    let status = "\(other) \(state.isOtherReachable ? "in reach" : "away")"
    let gap = max(1, context.columns - side.count - status.count - 2)
    return " \(side)" + String(repeating: " ", count: gap) + "\(status) "
  }

  private var keys: String {
    let isNarrow = context.columns < 56
    return switch state.page {
    case .details(_, true): "y buy  any other key: no"
    case .details(let movie, false):
      (state.isPurchased(movie) ? "d give back  " : "b buy  ") + "t tickets  f films  q quit"
    case .tickets where isNarrow: "enter show  d back  f films  q quit"
    case .tickets: "j/k choose  enter show  d give back  f films  q quit"
    case .films where isNarrow: "enter show  b buy  t tickets  q quit"
    case .films: "j/k choose  enter show  b buy  t tickets  q quit"
    }
  }
}
