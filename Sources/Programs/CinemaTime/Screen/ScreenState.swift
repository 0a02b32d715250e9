/// The content of a side's screen and the effect of its keys. Pure, so that tests need no terminal.
struct ScreenState: Equatable {
  /// A view.
  enum Page: Equatable {
    /// The tickets.
    case tickets
    /// The films without a ticket, by time.
    case films
    /// One film, and whether the purchase must be confirmed.
    case details(Movie, isConfirming: Bool)
  }

  /// The action that a key requests.
  enum Action: Equatable {
    case buy(Movie)
    case delete(Movie)
    /// Open here what is open on the other side.
    case goOn
    case suspend
    case quit
  }

  let isPhone: Bool
  var page = Page.tickets
  var selection = 0
  var tickets: [Movie] = []
  /// In the order of the programme.
  var films: [Movie] = []
  /// Whether the other side runs.
  var isOtherReachable = false
  /// The show on the watch's face.
  var nextShow: Movie?
  /// The last event.
  var message = ""
  /// The QR code of the shown film, if it has a ticket and the code is here.
  var code: [[Bool]]?

  /// The films of the shown list.
  var list: [Movie] {
    switch page {
    case .tickets: tickets
    case .films: films
    case .details: []
    }
  }

  /// The film that is shown alone.
  var movie: Movie? {
    guard case .details(let movie, _) = page else { return nil }
    return movie
  }

  func isPurchased(_ movie: Movie) -> Bool { tickets.contains(movie) }

  /// Updates the lists after a change; the selection stays on the screen.
  mutating func update(tickets: [Movie], films: [Movie]) {
    self.tickets = tickets
    self.films = films
    selection = max(0, min(selection, list.count - 1))
  }

  mutating func handle(_ key: ScreenKey) -> Action? {
    switch key {
    case .quit: return .quit
    case .suspend: return .suspend
    case .letter("c"): return .goOn
    default: break
    }
    if case .details(let movie, let isConfirming) = page {
      return handle(key, on: movie, isConfirming)
    }
    return handleInList(key)
  }

  private mutating func handleInList(_ key: ScreenKey) -> Action? {
    switch key {
    case .up: selection = max(0, selection - 1)
    case .down: selection = max(0, min(list.count - 1, selection + 1))
    case .letter("t"), .letter("f"):
      page = key == .letter("t") ? .tickets : .films
      selection = 0
    case .enter, .letter("b"), .letter("d"):
      guard list.indices.contains(selection) else { return nil }
      let movie = list[selection]
      if key == .letter("d") { return isPurchased(movie) ? .delete(movie) : nil }
      page = .details(movie, isConfirming: key == .letter("b") && !isPurchased(movie))
    default: break
    }
    return nil
  }

  private mutating func handle(_ key: ScreenKey, on movie: Movie, _ isConfirming: Bool) -> Action? {
    switch (key, isConfirming) {
    case (.letter("y"), true), (.enter, true):
      page = .details(movie, isConfirming: false)
      return .buy(movie)
    case (_, true): page = .details(movie, isConfirming: false)
    case (.letter("b"), false), (.enter, false):
      if !isPurchased(movie) { page = .details(movie, isConfirming: true) }
    case (.letter("d"), false):
      guard isPurchased(movie) else { return nil }
      page = .tickets
      selection = 0
      return .delete(movie)
    case (.letter("t"), false), (.letter("f"), false), (.back, false):
      page = key == .letter("f") || (key == .back && !isPurchased(movie)) ? .films : .tickets
      selection = list.firstIndex(of: movie) ?? 0
    default: break
    }
    return nil
  }
}
