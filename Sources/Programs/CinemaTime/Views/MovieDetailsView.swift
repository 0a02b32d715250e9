/// One film: its details, or the bought ticket, or the question whether to buy it.
struct MovieDetailsView {
  let movie: Movie
  let isPurchased: Bool
  let isConfirming: Bool
  /// The ticket's QR code, if it is here.
  let code: [[Bool]]?

  func lines(_ context: ViewContext) -> [String] {
    let head = [
      context.styled(context.fitted(" \(movie.title)"), "1"), context.fitted(" \(movie.time)"),
    ]
    if isConfirming { return head + PurchaseTicketView(movie: movie).lines(context) }
    guard isPurchased else { return head + MovieInfoView(movie: movie).lines(context) }
    let picture = QRCodeView(code: code).lines(context)
    // If there is no room for both, the code is more important.
    return head.count + picture.count <= context.rows ? head + picture : picture
  }
}

/// The details of a film on the phone, and the few that the watch shows.
struct MovieInfoView {
  let movie: Movie

  func lines(_ context: ViewContext) -> [String] {
    guard context.isPhone else { return [""] + context.wrapped("by \(movie.director)") }
    let people = "Directed by \(movie.director), with \(movie.actors.joined(separator: ", "))."
    return context.wrapped(people) + [""] + context.wrapped(movie.synopsis)
  }
}

/// A question before a ticket is bought.
struct PurchaseTicketView {
  let movie: Movie

  func lines(_ context: ViewContext) -> [String] {
    ["", context.fitted(" Buy a ticket for \(movie.time)?")]
  }
}

/// A ticket's QR code, or a placeholder until the watch has it.
struct QRCodeView {
  let code: [[Bool]]?

  func lines(_ context: ViewContext) -> [String] {
    guard let code else { return ["", context.fitted(" " + HalfBlocks.placeholder)] }
    let drawn = HalfBlocks.lines(code)
    guard drawn.count <= context.rows, drawn[0].count <= context.columns else {
      return ["", " Make the terminal larger", " to see the QR code."].map(context.fitted)
    }
    // Light on dark, whatever the terminal's own colours are.
    return drawn.map { context.styled($0, "97;40") }
  }
}
