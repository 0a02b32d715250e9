import TestScopes
import Testing

@testable import CinemaTime

@Suite("The screen", .blocking)
struct ScreenTests {
  private static let films = Movie.all
  private static let ticket = Movie.all[2]

  private func state(isPhone: Bool = true) -> ScreenState {
    var state = ScreenState(isPhone: isPhone)
    state.update(
      tickets: [Self.ticket], films: Self.films.filter { $0 != Self.ticket })
    return state
  }

  private func press(_ keys: String, _ state: inout ScreenState) -> [ScreenState.Action] {
    ScreenKey.keys(in: Array(keys.utf8)).compactMap { state.handle($0) }
  }

  @Test("buys the chosen film once its purchase is confirmed")
  func buying() {
    var state = state()
    #expect(press("fjb", &state).isEmpty)
    #expect(state.page == .details(Self.films[1], isConfirming: true))
    #expect(press("y", &state) == [.buy(Self.films[1])])
    #expect(state.page == .details(Self.films[1], isConfirming: false))
  }

  @Test("buys nothing when the purchase is not confirmed")
  func declining() {
    var state = state()
    #expect(press("fbn", &state).isEmpty)
    #expect(press("b\u{1B}", &state).isEmpty)
    #expect(press("d", &state).isEmpty)
  }

  @Test("gives back the ticket that is chosen or shown")
  func deleting() {
    var state = state()
    #expect(press("d", &state) == [.delete(Self.ticket)])
    #expect(press("\rd", &state) == [.delete(Self.ticket)])
    #expect(state.page == .tickets)
  }

  @Test("goes on with what is open on the other side, from any page")
  func goingOn() {
    var state = state()
    #expect(press("c", &state) == [.goOn])
    #expect(press("fbc", &state) == [.goOn])
  }

  @Test("keeps the selection inside a list that gets shorter, and empty")
  func shrinking() {
    var state = state()
    _ = press("fjjjjjjjjjjjj", &state)
    #expect(state.selection == 7)
    state.update(tickets: Self.films, films: [])
    #expect(state.selection == 0)
    #expect(press("jk\rbd", &state).isEmpty)
  }

  @Test("shows a long message completely, below a smaller view")
  func longMessage() {
    var state = self.state(isPhone: false)
    let path = "/" + String(repeating: "d", count: 50)
    state.message = "this watch is not paired: wormhole --container \(path)"
    let drawing = ScreenDrawing(state, columns: 40, rows: 12, hasColour: false)
    #expect(drawing.lines.count == 12 && drawing.lines.allSatisfy { $0.count <= 40 })
    #expect(drawing.lines.joined().contains(path))
    #expect(drawing.lines.joined().contains("this watch is not paired: wormhole"))
  }

  @Test("reads arrows, and skips unknown keys")
  func keys() {
    #expect(ScreenKey.keys(in: Array("\u{1B}[A\u{1B}[B\u{1B}OA".utf8)) == [.up, .down, .up])
    #expect(ScreenKey.keys(in: Array("\u{1B}[1;5C\u{1B}[15~q".utf8)) == [.quit])
    #expect(ScreenKey.keys(in: [0x1B]) == [.back])
    #expect(ScreenKey.keys(in: [0x03]) == [.quit])
    #expect(ScreenKey.keys(in: [0xC3, 0xA9, 0x00]).isEmpty)
  }

  @Test(
    "fits any terminal, on each page",
    arguments: [(80, 24), (40, 24), (24, 10), (10, 4), (200, 60)], [true, false])
  func size(size: (columns: Int, rows: Int), isPhone: Bool) throws {
    var state = state(isPhone: isPhone)
    state.nextShow = Self.ticket
    let code = QRCodeSample.rows
    let pages: [ScreenState.Page] =
      [.tickets, .films]
      + Self.films.flatMap {
        [.details($0, isConfirming: false), .details($0, isConfirming: true)]
      }
    for page in pages {
      state.page = page
      state.code = state.movie == Self.ticket ? code : nil
      let lines = ScreenDrawing(
        state, columns: size.columns, rows: size.rows, hasColour: false
      ).lines
      #expect(lines.count <= max(size.rows, 4))
      #expect(lines.allSatisfy { $0.count <= size.columns && !$0.contains("\u{1B}") })
    }
  }

  @Test("shows details on a phone that a watch omits")
  func detail() {
    func text(_ isPhone: Bool) -> String {
      var state = state(isPhone: isPhone)
      state.page = .details(Self.films[4], isConfirming: false)
      return ScreenDrawing(state, columns: 80, rows: 24, hasColour: false).lines
        .joined(separator: "\n")
    }
    #expect(text(true).contains("Buster Keaton") && text(true).contains("locomotive"))
    #expect(text(false).contains("Clyde Bruckman") && !text(false).contains("Buster Keaton"))
  }

  @Test("shows the whole QR code at 80 by 24, and a placeholder until it is there")
  func code() {
    var state = self.state(isPhone: false)
    state.page = .details(Self.ticket, isConfirming: false)
    #expect(
      ScreenDrawing(state, columns: 80, rows: 24, hasColour: false).lines
        .contains { $0.contains(HalfBlocks.placeholder) })
    state.code = QRCodeSample.rows
    let lines = ScreenDrawing(state, columns: 80, rows: 24, hasColour: false).lines
    for line in HalfBlocks.lines(QRCodeSample.rows) { #expect(lines.contains(line)) }
  }

  @Test("has colours only if they are wanted")
  func colours() {
    let lines = ScreenDrawing(state(), columns: 80, rows: 24, hasColour: true).lines
    #expect(lines[0].contains("\u{1B}[7m"))
  }
}

/// As large as the largest of the nine tickets: version 3.
enum QRCodeSample {
  static let rows = (0..<29).map { row in (0..<29).map { (row * $0) % 3 == 0 } }
}

@Suite("Half blocks", .blocking)
struct HalfBlocksTests {
  @Test("show two rows of modules in a line, with a light margin of two")
  func drawing() {
    let lines = HalfBlocks.lines([[true, false], [true, true]])
    #expect(lines == ["██████", "██ ▀██", "██████"])
  }
}
