import Testing
import WormholeTerminals
import WormholeTestSupport

@testable import WormholeCinemaTime

/// What holds of every screen, whatever it looks like.
@Suite("Each screen", .blocking)
struct ScreenDrawingTests {
  private static let sizes =
    ScreenScene.sizes
    + [(10, 4), (1, 1), (24, 10), (30, 12), (64, 16), (100, 30), (200, 60)].map {
      ScreenScene.Size(columns: $0.0, rows: $0.1)
    }

  @Test("fills its terminal and is not wider", arguments: ScreenScene.allCases)
  func size(_ scene: ScreenScene) {
    for size in Self.sizes {
      let lines = scene.lines(size)
      #expect(lines.count == size.rows, "\(size)")
      for line in lines { #expect(line.count <= size.columns, "\(size): \(line)") }
    }
  }

  @Test(
    "names the most important key of its page in the last lines", arguments: ScreenScene.allCases)
  func footer(_ scene: ScreenScene) {
    let key =
      switch scene {
      case .first, .tickets, .face, .emptyFace, .watchFilms: "Enter open"
      // The film behind the selection has no ticket.
      case .film: "b buy"
      case .films, .obstacle: "Enter open"
      case .noTickets: "f films"
      case .confirmation: "y buy  n no"
      case .ticket, .watchTicket, .missingCode: "d give back"
      case .help: "Esc close"
      }
    for size in Self.sizes where size.columns >= 20 {
      let foot = scene.lines(size).suffix(2)
      #expect(foot.contains { $0.contains(key) }, "\(size): \(foot)")
      if scene != .help { #expect(foot.contains { $0.contains("? help") }, "\(size): \(foot)") }
      for line in foot where line.contains("? help") { #expect(!line.contains("…")) }
    }
  }

  @Test(
    "names its side in the first line, or in the second below a strap",
    arguments: ScreenScene.allCases)
  func name(_ scene: ScreenScene) {
    let name = scene.isPhone ? "phone" : "watch"
    for size in Self.sizes where size.columns >= 20 {
      let lines = scene.lines(size)
      let head = lines[0].contains("▒") ? lines[1] : lines[0]
      #expect(head.contains(name), "\(size): \(head)")
    }
  }

  @Test("of a second watch has its name")
  func secondWatch() {
    var state = ScreenState(isPhone: false, watchName: "left")
    let lines = ScreenDrawing.draw(&state, columns: 40, rows: 16).lines(in: .characters)
    #expect(lines[0].contains(" watch left ") && lines[0].contains("○ phone away"))
  }

  @Test("of a list shows the selection, wherever it is", arguments: sizes)
  func selection(_ size: ScreenScene.Size) {
    guard size.columns >= 20 else { return }
    for isPhone in [true, false] {
      var state = ScreenState(isPhone: isPhone)
      state.update(tickets: [])
      _ = state.press("f")
      for movie in Movie.all {
        let canvas = ScreenDrawing.draw(&state, columns: size.columns, rows: size.rows)
        let marked = canvas.lines(in: .characters).filter { $0.contains("> ") }
        #expect(marked.count == 1 && marked[0].contains("> \(movie.time) \(movie.title.prefix(4))"))
        // In colour the whole line is a bar, and the only one.
        let bars = canvas.lines(in: .colours).filter { $0.contains("\u{1B}[1;97;44m") }
        #expect(bars.count == 1 && bars[0].contains(movie.time))
        _ = state.press("j")
      }
    }
  }

  @Test("scrolls to the end of its text", arguments: [(40, 20), (20, 8), (24, 10), (80, 10)])
  func scrolling(_ size: (columns: Int, rows: Int)) throws {
    var state = ScreenScene.film.state(.init(columns: size.columns, rows: size.rows))
    var seen = ""
    for _ in 0..<60 {
      let canvas = ScreenDrawing.draw(&state, columns: size.columns, rows: size.rows)
      seen += canvas.lines(in: .characters).joined(separator: " ")
      _ = state.press("j")
    }
    let movie = try #require(state.movie)
    for word in (movie.synopsis + " " + movie.director).split(separator: " ") {
      #expect(seen.contains(word), "\(word)")
    }
    let end = ScreenDrawing.draw(&state, columns: size.columns, rows: size.rows)
    // However far a key went at the end, one press leads away from it; unless all of the text is visible.
    _ = state.press("k")
    let isMoved =
      ScreenDrawing.draw(&state, columns: size.columns, rows: size.rows).lines(in: .characters)
      != end.lines(in: .characters)
    #expect(isMoved == (size.rows < 20))
  }

  @Test(
    "has no colours without colours, and only characters on a dumb terminal",
    arguments: ScreenScene.allCases)
  func palettes(_ scene: ScreenScene) {
    for size in ScreenScene.sizes {
      let looks = { (palette: Palette) in
        Set(
          scene.lines(size, palette).joined().matches(of: /\u{1B}\[([0-9;]*)m/).map {
            String($0.output.1)
          })
      }
      #expect(!looks(.colours).isEmpty)
      // The QR code is black and white on every terminal; all else is bold or inverse.
      #expect(looks(.emphasis).isSubset(of: ["0", "1", "7", "97;40"]))
      #expect(scene.lines(size, .characters).allSatisfy { !$0.contains("\u{1B}") })
    }
  }

  @Test("of a film keeps it visible beside the question whether to buy it")
  func confirmation() {
    for size in Self.sizes where size.columns >= 20 {
      let text = words(ScreenScene.confirmation.lines(size))
      #expect(text.contains("Buy a ticket for") && text.contains("The Flying Deuces"), "\(text)")
    }
    let wide = ScreenScene.confirmation.lines(.init(columns: 80, rows: 24)).joined(separator: " ")
    #expect(wide.contains("Foreign Legion"))
  }

  @Test("shows a long message completely, below a smaller page")
  func longMessage() {
    var state = ScreenState(isPhone: false)
    let path = "/" + String(repeating: "d", count: 50)
    state.obstacle = "This watch is not paired: wormhole --container \(path)"
    let lines = ScreenDrawing.draw(&state, columns: 40, rows: 12).lines(in: .characters)
    let text = lines.map { $0.replacing(" ", with: "") }.joined()
    #expect(lines.count == 12 && lines.allSatisfy { $0.count <= 40 })
    #expect(text.contains(path) && text.contains("Thiswatchisnotpaired:wormhole"))
  }

  @Test("hides an obstacle that is out of the way, and shows it again after an event")
  func obstacle() {
    var state = ScreenScene.obstacle.state(.init(columns: 80, rows: 24))
    func text() -> String {
      var copy = state
      return ScreenDrawing.draw(&copy, columns: 80, rows: 24).lines(in: .characters).joined()
    }
    #expect(text().contains("✗ No watch is paired"))
    state.message = .success("Bought “The General” at 17:00.")
    #expect(text().contains("✓ Bought") && !text().contains("No watch is paired"))
    _ = state.press("j")
    #expect(!text().contains("✓ Bought") && text().contains("✗ No watch is paired"))
    state.isOtherReachable = true
    #expect(!text().contains("No watch is paired"))
  }

  @Test("shows an obstacle in the help completely, because a small screen cuts the message")
  func obstacleInHelp() {
    var state = ScreenScene.obstacle.state(.init(columns: 20, rows: 8))
    _ = state.press("?")
    var seen = ""
    for _ in 0..<20 {
      seen += ScreenDrawing.draw(&state, columns: 20, rows: 8).lines(in: .characters).joined()
      _ = state.press("j")
    }
    #expect(seen.contains("│ peer pairing") && seen.contains("│ NAME "), "\(seen)")
  }

  @Test("shows details on a phone that a watch omits")
  func detail() {
    func text(_ isPhone: Bool) -> String {
      var state = ScreenState(isPhone: isPhone)
      state.open(Movie.all[4])
      return ScreenDrawing.draw(&state, columns: 80, rows: 24).lines(in: .characters)
        .joined(separator: "\n")
    }
    #expect(text(true).contains("Buster Keaton") && text(true).contains("locomotive"))
    #expect(text(false).contains("Clyde Bruckman") && text(false).contains("Buster Keaton"))
  }

  @Test(
    "of a ticket shows the whole QR code where it fits, else says what to do",
    arguments: [
      (80, 24, true), (40, 20, true), (32, 19, true), (30, 19, false), (40, 18, false),
    ])
  func code(columns: Int, rows: Int, fits: Bool) {
    for isPhone in [true, false] {
      var state = ScreenState(isPhone: isPhone)
      state.update(tickets: [Movie.all[2]])
      state.open(Movie.all[2])
      let sample = QRCode(Movie.all[2].ticket)?.lines ?? []
      state.code = sample
      let lines = ScreenDrawing.draw(&state, columns: columns, rows: rows).lines(in: .characters)
      let isThere = sample.allSatisfy { code in
        lines.contains { $0.contains(code) }
      }
      #expect(isThere == fits)
      #expect(words(lines).contains("terminal larger") == !fits)
      state.code = nil
      let waiting = ScreenDrawing.draw(&state, columns: 80, rows: 24).lines(in: .characters)
      #expect(words(waiting).contains(TicketCodes.placeholder))
    }
  }

  /// The words on a screen, without the frame between them.
  private func words(_ lines: [String]) -> String {
    lines.joined(separator: " ").split { " │▌█".contains($0) }.joined(separator: " ")
  }
}

@Suite("The command line", .blocking)
struct LaunchOptionsTests {
  @Test("of the other side names the container, unless it is the usual one")
  func command() throws {
    func command(_ arguments: [String], _ environment: [String: String] = [:]) throws -> String {
      try LaunchOptions(arguments, environment: environment).otherCommand
    }
    #expect(try command(["phone"]) == "cinematime watch")
    #expect(try command(["watch", "--name", "left"]) == "cinematime phone")
    #expect(try command(["phone", "--group", "group.a"]) == "cinematime --group group.a watch")
    #expect(
      try command(["watch"], ["WORMHOLE_CONTAINER": "/tmp/it's"])
        == #"cinematime --container '/tmp/it'\''s' phone"#)
  }

  @Test("is refused with what the program does not know")
  func refusal() {
    for arguments in [
      ["sing"], ["phone", "--name"], ["--group", "group.a", "--container", "/tmp"],
    ] {
      #expect(throws: Misuse.self) { try LaunchOptions(arguments, environment: [:]) }
    }
  }
}

@Suite("The watch's face", .blocking)
struct WatchFaceTests {
  @Test("shows when the next show begins")
  func waiting() {
    let now = TimeOfDay(hour: 14, minute: 42)
    let words = [14, 15, 16, 17, 13].map { now.wait(untilHour: $0) }
    #expect(words == ["now", "in 18 min", "in 1 h 18 min", "in 2 h 18 min", "tomorrow"])
    #expect(TimeOfDay(hour: 14, minute: 0).wait(untilHour: 15) == "in 1 h")
    #expect(TimeOfDay(hour: 14, minute: 0).wait(untilHour: 14) == "now")
    #expect(TimeOfDay(hour: 14, minute: 59).wait(untilHour: 14) == "now")
  }

  @Test("draws each digit in its own way, at both sizes")
  func digits() {
    let large = ClockDigits.large("10:47")
    // By hand: 1 and 7 end in a stem, 0 is closed, 4 has an open top.
    #expect(
      large == [
        "  ██    ██████      ██  ██  ██████",
        "████    ██  ██  ██  ██  ██      ██",
        "  ██    ██  ██      ██████      ██",
        "  ██    ██  ██  ██      ██      ██",
        "██████  ██████          ██      ██",
      ])
    #expect(large.allSatisfy { $0.count == 34 })
    #expect(
      ClockDigits.small("10:47") == ["▄█  █▀█ ▄ █ █ ▀▀█", " █  █ █ ▄ ▀▀█   █", "▀▀▀ ▀▀▀     ▀   ▀"])
    #expect(Set((0...9).map { ClockDigits.large("\($0)") }).count == 10)
  }
}
