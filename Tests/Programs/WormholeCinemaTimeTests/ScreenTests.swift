import Testing
import WormholeTestSupport

@testable import WormholeCinemaTime

@Suite("The screen", .blocking)
struct ScreenTests {
  private static let films = Movie.all
  private static let ticket = films[2]

  private func state(isPhone: Bool = true) -> ScreenState {
    var state = ScreenState(isPhone: isPhone)
    state.update(tickets: [Self.ticket])
    return state
  }

  @Test("begins with the films on a phone, and with the face on a watch")
  func beginning() {
    #expect(state().page == .films && state().list == Self.films)
    var watch = state(isPhone: false)
    #expect(watch.page == .face && watch.list.isEmpty)
    _ = watch.press("\r")
    #expect(watch.page == .films && watch.list == Self.films)
  }

  @Test("buys the chosen film once its purchase is confirmed, and shows its ticket")
  func buying() {
    for confirmation in ["y", "\r"] {
      var state = state()
      #expect(state.press("jb").isEmpty)
      #expect(state.page == .confirmation(Self.films[1]) && state.pageBelow == .films)
      #expect(state.press(confirmation) == [.buy(Self.films[1])])
      #expect(state.page == .film(Self.films[1]))
    }
    // From the film's own page.
    var state = state()
    #expect(state.press("j\rb").isEmpty)
    #expect(state.pageBelow == .film(Self.films[1]))
    #expect(state.press("y") == [.buy(Self.films[1])])
    #expect(state.opened == [.film(Self.films[1])])
  }

  @Test("buys nothing when the purchase is not confirmed")
  func declining() {
    for key in ["n", "\u{1B}", "h", "\u{7F}", "\u{1B}[D"] {
      var state = state()
      #expect(state.press("b" + key).isEmpty)
      #expect(state.page == .films && state.message == .notice("Not bought."))
    }
    // Only the keys that it names mean yes: neither the arrow that opens nor any other.
    var state = state()
    #expect(state.press("bl\u{1B}[Cx jbdft").isEmpty)
    #expect(state.page == .confirmation(Self.films[0]))
  }

  @Test("takes the question back when the other side is faster")
  func overtaken() {
    var state = state()
    _ = state.press("b")
    state.update(tickets: [Self.films[0]])
    #expect(state.page == .films && state.message == nil)
    #expect(state.press("y").isEmpty)
  }

  @Test("gives back the ticket that is chosen or shown")
  func deleting() {
    var state = state()
    #expect(state.press("td") == [.delete(Self.ticket)])
    #expect(state.press("\rd") == [.delete(Self.ticket)])
    #expect(state.page == .tickets)
    #expect(state.press("fjjd") == [.delete(Self.ticket)])
  }

  @Test("says why a key does nothing")
  func refusing() {
    var state = state()
    #expect(state.press("d").isEmpty)
    #expect(state.message == .notice("You have no ticket for “Angel On My Shoulder”."))
    #expect(state.press("jjb").isEmpty)
    #expect(state.page == .films)
    #expect(state.message == .notice("You have a ticket for “Africa Screams” already."))
    #expect(state.press("h").isEmpty)
    #expect(state.message == .notice("This is the first page. Press q to quit."))
    #expect(state.press("j").isEmpty && state.message == nil)
  }

  @Test(
    "goes back from every page, by each key for it",
    arguments: ["\u{1B}", "h", "\u{7F}", "\u{1B}[D"])
  func goingBack(key: String) {
    for isPhone in [true, false] {
      var state = state(isPhone: isPhone)
      let first = state.page
      _ = state.press("t\r?" + key)
      #expect(state.page == .film(Self.ticket))
      _ = state.press(key)
      #expect(state.page == .tickets)
      _ = state.press(key)
      #expect(state.page == first)
      _ = state.press(key)
      #expect(state.page == first)
    }
  }

  @Test("chooses by line, from the first to the last")
  func choosing() {
    var state = state()
    for (keys, selection) in [
      ("j", 1), ("\u{1B}[B", 2), ("k", 1), ("\u{1B}[A", 0), ("k", 0), ("jjjjjjjjj", 8), ("j", 8),
    ] {
      _ = state.press(keys)
      #expect(state.selection == selection, "\(keys)")
    }
  }

  @Test("changes between the lists, and remembers what was chosen in each")
  func lists() {
    var state = state()
    _ = state.press("jjj\t")
    #expect(state.page == .tickets && state.selection == 0)
    _ = state.press("\t")
    #expect(state.page == .films && state.selection == 3)
    _ = state.press("t")
    #expect(state.page == .tickets)
    _ = state.press("f")
    #expect(state.page == .films && state.opened.isEmpty)
  }

  @Test("keeps the selection inside a list that gets shorter, and empty")
  func shrinking() {
    var state = state()
    state.update(tickets: Self.films)
    _ = state.press("tjjjjjjjjjjjj")
    #expect(state.selection == 8)
    state.update(tickets: Array(Self.films.prefix(8)))
    #expect(state.selection == 7)
    state.update(tickets: [])
    #expect(state.selection == 0)
    #expect(state.press("jk\rbd").isEmpty)
    #expect(state.page == .tickets)
  }

  @Test("keeps the chosen film chosen when the other side buys one before it")
  func stayingChosen() {
    var state = state()
    _ = state.press("t")
    state.update(tickets: [Self.films[0], Self.ticket])
    #expect(state.selection == 1)
    #expect(state.press("d") == [.delete(Self.ticket)])
  }

  @Test("shows the help over any page, which q leaves, as in a pager")
  func help() {
    var state = state()
    #expect(state.press("\r?q").isEmpty)
    #expect(state.page == .film(Self.films[0]))
    #expect(state.press("??").isEmpty)
    #expect(state.page == .film(Self.films[0]))
    #expect(state.press("?\u{03}") == [.quit])
    #expect(state.press("bdy").isEmpty)
    #expect(state.page == .help)
    #expect(state.press("qq") == [.quit])
  }

  @Test("opens a film above the list that was shown, and goes back to the list from it")
  func opening() {
    var state = state()
    _ = state.press("t\r?")
    state.open(Self.films[5])
    #expect(state.opened == [.tickets, .film(Self.films[5])])
    _ = state.press("h")
    #expect(state.page == .tickets)
  }
}

@Suite("Words for people", .blocking)
struct MessageTests {
  @Test("say who changed the tickets, and how")
  func changes() {
    func message(_ bought: [Movie], _ givenBack: [Movie]) -> Message? {
      TicketOffice.message(about: givenBack, becoming: bought, by: nil)
    }
    let films = Array(Movie.all.prefix(3))
    #expect(
      message([films[0]], []) == .success("Another program bought “Angel On My Shoulder”."))
    #expect(message(films, []) == .success("Another program changed 3 tickets."))
    #expect(
      message([], [films[0]]) == .success("Another program gave back “Angel On My Shoulder”."))
    #expect(message(films, films) == nil)
  }
}
