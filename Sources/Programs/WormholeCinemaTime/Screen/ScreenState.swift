/// The content of a side's screen and the effect of its keys. Pure, so that tests need no terminal.
struct ScreenState: Equatable {
  enum Page: Hashable {
    case face
    /// The program, by time.
    case films
    /// The films with a ticket.
    case tickets
    /// One film, or its ticket.
    case film(Movie)
    /// The question whether to buy a ticket, beside the page below.
    case confirmation(Movie)
    case help
  }

  enum Action: Equatable {
    case buy(Movie)
    case delete(Movie)
    case suspend
    /// Suspends the other side, or continues it.
    case suspendOther
    case quit
  }

  let isPhone: Bool
  /// The name of this side, which distinguishes windows: "phone", "watch", "watch left".
  let name: String
  let otherCommand: String
  /// The open pages, from the first one to the visible one.
  private(set) var opened: [Page] = [] { didSet { scroll = 0 } }
  private var selections: [Page: Int] = [:]
  private(set) var scroll = 0
  private(set) var tickets: [Movie] = []
  var isOtherReachable = false
  var isOtherSuspended = false
  var nextShow: Movie?
  var time = TimeOfDay(hour: 0, minute: 0)
  var message: Message?
  /// Why the other side cannot be reached, and the remedy.
  var obstacle: String?
  /// The QR code of the shown film, if it has a ticket and the code is here.
  var code: [String]?

  init(isPhone: Bool, watchName: String = "watch", otherCommand: String? = nil) {
    self.isPhone = isPhone
    self.otherCommand = otherCommand ?? "cinematime \(isPhone ? "watch" : "phone")"
    name = isPhone ? "phone" : watchName == "watch" ? watchName : "watch \(watchName)"
  }

  // MARK: Visible content

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

  var list: [Movie] { listPage == .films ? Movie.all : listPage == .tickets ? tickets : [] }

  var selection: Int { listPage.flatMap { selections[$0] } ?? 0 }

  private var selected: Movie? { list.indices.contains(selection) ? list[selection] : nil }

  /// The film that is shown alone.
  var movie: Movie? {
    guard case .film(let movie) = pageBelow else { return nil }
    return movie
  }

  /// The film that `b` and `d` are about.
  var subject: Movie? { pageBelow == listPage ? selected : movie }

  func isPurchased(_ movie: Movie) -> Bool { tickets.contains(movie) }

  var otherSide: String { isPhone ? "watch" : "phone" }

  /// The obstacle, unless the other side has become reachable.
  var visibleObstacle: String? { isOtherReachable ? nil : obstacle }

  /// The code, unless something covers it.
  var visibleCode: [String]? { page == pageBelow ? code : nil }

  // MARK: Changes

  /// Updates the tickets. The selected one stays selected, or the one that takes its place.
  mutating func update(tickets now: [Movie]) {
    let place = selections[.tickets] ?? 0
    let film = tickets.indices.contains(place) ? tickets[place] : nil
    tickets = now
    selections[.tickets] = max(0, film.flatMap(now.firstIndex) ?? min(place, now.count - 1))
    // Another process was faster.
    if case .confirmation(let movie) = page, isPurchased(movie) { opened.removeLast() }
  }

  /// Notes how far the page scrolls, which its drawing knows.
  mutating func limit(scroll lines: Int) { scroll = min(scroll, lines) }

  /// Shows a film, above the list or the face that was shown.
  mutating func open(_ movie: Movie) {
    opened = opened.filter { $0 == .films || $0 == .tickets } + [.film(movie)]
  }

  private mutating func goBack() {
    switch opened.popLast() {
    case nil: message = .notice("This is the first page. Press q to quit.")
    case .confirmation: message = .notice("Not bought.")
    default: break
    }
  }

  private mutating func show(list page: Page) { opened = page == root ? [] : [page] }

  // MARK: Keys

  mutating func handle(_ key: ScreenKey) -> Action? {
    message = nil
    let page = page
    switch (key, page) {
    case (.interrupt, _): return .quit
    case (.suspend, _): return .suspend
    case (.letter("z"), _): return .suspendOther
    // As in a pager, this leaves the help, not the program.
    case (.quit, _) where page != .help: return .quit
    case (.help, _) where page != .help: opened.append(.help)
    case (.back, _), (.help, _), (.quit, _), (.letter("n"), .confirmation): goBack()
    case (.letter("y"), .confirmation(let movie)), (.enter, .confirmation(let movie)):
      open(movie)
      return .buy(movie)
    case (_, .confirmation): break
    case (.up, _): move(by: -1)
    case (.down, _): move(by: 1)
    case (_, .help): break
    case (.enter, .face), (.forward, .face), (.letter("f"), _): show(list: .films)
    case (.letter("t"), _): show(list: .tickets)
    case (.tab, _): show(list: listPage == .films ? .tickets : .films)
    case (.enter, .film(let movie)), (.forward, .film(let movie)):
      if !isPurchased(movie) { ask() }
    case (.enter, _), (.forward, _): if let selected { opened.append(.film(selected)) }
    case (.letter("b"), _): ask()
    case (.letter("d"), _): return giveBack()
    case (.letter, _): break
    }
    return nil
  }

  private mutating func move(by distance: Int) {
    if page == listPage {
      selections[page] = max(0, min(list.count - 1, selection + distance))
    } else {
      scroll = max(0, scroll + distance)
    }
  }

  private mutating func ask() {
    guard let subject else { return }
    guard !isPurchased(subject) else {
      message = .notice("You have a ticket for \(subject.quoted) already.")
      return
    }
    opened.append(.confirmation(subject))
  }

  private mutating func giveBack() -> Action? {
    guard let subject else { return nil }
    guard isPurchased(subject) else {
      message = .notice("You have no ticket for \(subject.quoted).")
      return nil
    }
    if movie != nil { goBack() }
    return .delete(subject)
  }
}
