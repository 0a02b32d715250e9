/// A film in a list: its time and title, and on the phone its director.
struct MovieRow {
  let movie: Movie
  let isSelected: Bool

  func line(_ context: ViewContext) -> String {
    let line = "\(isSelected ? ">" : " ") \(movie.time) \(movie.title)"
    let more = context.isPhone ? ", \(movie.director)" : ""
    let fitted = context.fitted(line + more)
    return isSelected ? context.styled(fitted, "1") : fitted
  }
}

/// A list of films: as many as fit, always including the selected one.
struct MovieListView {
  let movies: [Movie]
  let selection: Int
  /// Shown instead of an empty list.
  var placeholder = " You have seen them all."

  func lines(_ context: ViewContext) -> [String] {
    guard !movies.isEmpty else { return ["", context.fitted(placeholder)] }
    let room = max(1, context.rows - 1)
    let first = max(0, min(selection - room / 2, movies.count - room))
    return [""]
      + movies.enumerated().dropFirst(first).prefix(room).map { index, movie in
        MovieRow(movie: movie, isSelected: index == selection).line(context)
      }
  }
}

/// The tickets, and on the watch also the content of its face.
struct PurchasedTicketsListView {
  let tickets: [Movie]
  let selection: Int
  let nextShow: Movie?

  func lines(_ context: ViewContext) -> [String] {
    var face: [String] = []
    if !context.isPhone, let nextShow {
      face = [context.fitted(" Next: \(nextShow.time) \(nextShow.title)")]
    }
    let list = MovieListView(
      movies: tickets, selection: selection, placeholder: " No tickets yet.")
    let below = ViewContext(
      isPhone: context.isPhone, columns: context.columns, rows: context.rows - face.count,
      hasColour: context.hasColour)
    return face + list.lines(below)
  }
}
