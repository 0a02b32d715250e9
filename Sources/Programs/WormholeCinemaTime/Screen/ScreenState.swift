/// The content of a side's screen and the effect of its keys. Pure, so that tests need no terminal.
struct ScreenState: Equatable {
  /// A view.
  enum Page: Hashable {
    /// The watch's face.
    case face
    /// The programme, by time.
    case films
    /// The films with a ticket.
    case tickets
    /// One film, or its ticket.
    case film(Movie)
    /// The question whether to buy a ticket, beside the page below.
    case confirmation(Movie)
    case help
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

  /// How much of a page fits on the screen, in lines.
  struct Extent: Equatable {
    var shown = 1
    var total = 1

    var limit: Int { max(0, total - shown) }
  }

  let isPhone: Bool
  /// The name of this side, which tells one window from another: "phone", "watch", "watch left".
  let name: String
  /// The command that starts the other side.
  let otherCommand: String
  /// The pages that are open, from the first one to the visible one.
  private(set) var opened: [Page] = []
  private var selections: [Page: Int] = [:]
  private(set) var scroll = 0
  private var extent = Extent()
  private(set) var tickets: [Movie] = []
  /// The programme, by time.
  private(set) var films: [Movie] = []
  /// Whether the other side runs.
  var isOtherReachable = false
  /// The show on the watch's face.
  var nextShow: Movie?
  var time = TimeOfDay(hour: 0, minute: 0)
  /// The last event.
  var message: Message?
  /// Why the other side cannot be reached, and what helps.
  var obstacle: String?
  /// The film that is open on the other side.
  var offer: Invitation?
  /// The QR code of the shown film, if it has a ticket and the code is here.
  var code: [String]?

  /// A film that is open on another side, and the name of that side.
  struct Invitation: Equatable {
    let title: String
    let side: String
  }

  /// The offer, unless that film is open here, too.
  var invitation: Invitation? { offer?.title == movie?.title ? nil : offer }

  init(isPhone: Bool, watchName: String = "watch", otherCommand: String? = nil) {
    self.isPhone = isPhone
    self.otherCommand = otherCommand ?? "cinematime \(isPhone ? "watch" : "phone")"
    name = isPhone ? "phone" : watchName == "watch" ? watchName : "watch \(watchName)"
  }

  // MARK: What is shown

  private var root: Page { isPhone ? .films : .face }

  var page: Page { opened.last ?? root }

  /// The page that a question or the help covers; the page itself if nothing covers it.
  var pageBelow: Page {
    ([root] + opened).last {
      if case .confirmation = $0 { return false }
      return $0 != .help
    } ?? root
  }

  /// The list that is shown, or that the shown film was chosen from; nil on the watch's face.
  var listPage: Page? { ([root] + opened).last { $0 == .films || $0 == .tickets } }

  /// The films of that list.
  var list: [Movie] {
    switch listPage {
    case .films: films
    case .tickets: tickets
    default: []
    }
  }

  var selection: Int { listPage.flatMap { selections[$0] } ?? 0 }

  private var selected: Movie? { list.indices.contains(selection) ? list[selection] : nil }

  /// The film that is shown alone.
  var movie: Movie? {
    guard case .film(let movie) = pageBelow else { return nil }
    return movie
  }

  /// The film that `b` and `d` are about.
  var subject: Movie? {
    switch pageBelow {
    case .films, .tickets: selected
    default: movie
    }
  }

  func isPurchased(_ movie: Movie) -> Bool { tickets.contains(movie) }

  /// What is in the way, unless the way is free meanwhile.
  var visibleObstacle: String? { isOtherReachable ? nil : obstacle }

  /// Whether a part of the page is outside the screen.
  var isCut: Bool { extent.limit > 0 }

  // MARK: Changes

  /// Updates the lists after a change. The selected film stays selected, or the one that takes its place.
  mutating func update(tickets: [Movie], films: [Movie] = Movie.all) {
    let before = (films: selectedFilm(in: .films), tickets: selectedFilm(in: .tickets))
    self.tickets = tickets
    self.films = films
    for (page, list, film) in [
      (Page.films, films, before.films), (Page.tickets, tickets, before.tickets),
    ] {
      let place = film.flatMap { list.firstIndex(of: $0) } ?? selections[page] ?? 0
      selections[page] = max(0, min(place, list.count - 1))
    }
    // Somebody else was faster.
    if case .confirmation(let movie) = page, isPurchased(movie) { opened.removeLast() }
  }

  private func selectedFilm(in page: Page) -> Movie? {
    let list = page == .films ? films : tickets
    return selections[page].flatMap { list.indices.contains($0) ? list[$0] : nil }
  }

  /// Notes how much of the page fits on the screen, which decides how far it scrolls.
  mutating func fit(_ extent: Extent) {
    self.extent = extent
    scroll = min(scroll, extent.limit)
  }

  /// Shows a film, above the list or the face that was shown.
  mutating func open(_ movie: Movie) {
    opened = opened.filter { $0 == .films || $0 == .tickets } + [.film(movie)]
    scroll = 0
  }

  private mutating func push(_ page: Page) {
    opened.append(page)
    scroll = 0
  }

  private mutating func goBack() {
    switch opened.popLast() {
    case nil: message = .notice("This is the first page. Press q to quit.")
    case .confirmation: message = .notice("Not bought.")
    default: break
    }
    scroll = 0
  }

  private mutating func show(list page: Page) {
    opened = page == root ? [] : [page]
    scroll = 0
  }

  // MARK: Keys

  mutating func handle(_ key: ScreenKey) -> Action? {
    message = nil
    switch key {
    case .interrupt: return .quit
    case .suspend: return .suspend
    case .letter("c"): return .goOn
    case .help: page == .help ? goBack() : push(.help)
    case .back: goBack()
    case .quit:
      // As in a pager, the help is left and not the program.
      guard page == .help else { return .quit }
      goBack()
    default: return handleOnPage(key)
    }
    return nil
  }

  private mutating func handleOnPage(_ key: ScreenKey) -> Action? {
    if case .confirmation(let movie) = page { return answer(key, movie) }
    if let distance = distance(key) {
      move(by: distance)
      return nil
    }
    guard page != .help else { return nil }
    switch key {
    case .enter, .forward: enter()
    case .tab: show(list: listPage == .films ? .tickets : .films)
    case .letter("f"): show(list: .films)
    case .letter("t"): show(list: .tickets)
    case .letter("b"): ask()
    case .letter("d"): return giveBack()
    default: break
    }
    return nil
  }

  private mutating func answer(_ key: ScreenKey, _ movie: Movie) -> Action? {
    switch key {
    case .letter("y"), .enter:
      open(movie)
      return .buy(movie)
    case .letter("n"): goBack()
    default: break
    }
    return nil
  }

  /// Returns the number of lines that a key moves by; nil if it is for something else.
  private func distance(_ key: ScreenKey) -> Int? {
    let page = max(1, extent.shown - 1)
    return switch key {
    case .up: -1
    case .down: 1
    case .pageUp: -page
    case .pageDown: page
    case .first: -Self.everything
    case .last: Self.everything
    default: nil
    }
  }

  /// More lines than any page has.
  private static let everything = 1_000_000

  private mutating func move(by distance: Int) {
    if let list = listPage, list == page {
      selections[list] = max(0, min(self.list.count - 1, selection + distance))
    } else {
      // The drawing knows where the text ends, and has it noted.
      scroll = max(0, scroll + distance)
    }
  }

  private mutating func enter() {
    if page == .face { return show(list: .films) }
    if let movie, !isPurchased(movie) { return ask() }
    if let selected, page == listPage { push(.film(selected)) }
  }

  private mutating func ask() {
    guard let subject else { return }
    guard !isPurchased(subject) else {
      message = .notice("You have a ticket for “\(subject.title)” already.")
      return
    }
    push(.confirmation(subject))
  }

  private mutating func giveBack() -> Action? {
    guard let subject else { return nil }
    guard isPurchased(subject) else {
      message = .notice("You have no ticket for “\(subject.title)”.")
      return nil
    }
    if movie != nil { goBack() }
    return .delete(subject)
  }
}
