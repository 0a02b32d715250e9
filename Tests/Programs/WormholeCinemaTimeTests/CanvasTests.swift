import Testing
import WormholeTerminals
import WormholeTestSupport

@Suite("A canvas", .blocking)
struct CanvasTests {
  private let bar = CellStyle("44", withoutColours: "7")

  @Test("cuts what is outside, and what exceeds its room, with an ellipsis")
  func cutting() {
    var canvas = Canvas(rows: 2, columns: 6)
    canvas.put("Metropolis", row: 0, column: 2)
    canvas.put("Metropolis", row: 1, column: 0, room: 3)
    canvas.put("below", row: 2, column: 0)
    canvas.put("left", row: 0, column: -1)
    canvas.put("right", row: 0, column: 6)
    #expect(canvas.lines(in: .characters) == ["  Met…", "Me…"])
    #expect("abc".cut(to: 3) == "abc" && "abc".cut(to: 2) == "a…" && "abc".cut(to: 0).isEmpty)
  }

  @Test("gives wide characters two columns, and never half of one")
  func wide() {
    var canvas = Canvas(rows: 1, columns: 5)
    canvas.put("映画館", row: 0, column: 0)
    #expect(canvas.lines(in: .characters) == ["映画…"])
    #expect("映画館".cut(to: 4) == "映…" && "映画館".terminalColumns == 6)
  }

  @Test("draws no character that controls the terminal")
  func control() {
    var canvas = Canvas(rows: 1, columns: 9)
    canvas.put("a\u{1B}[31mb\nc", row: 0, column: 0)
    #expect(canvas.lines(in: .characters) == ["a [31mb c"])
  }

  @Test("writes a look once for all characters that have it, and none that its palette lacks")
  func palettes() {
    var canvas = Canvas(rows: 1, columns: 8)
    canvas.put("ab", bar, row: 0, column: 0)
    canvas.put("c", CellStyle("31"), row: 0, column: 3)
    canvas.fill(.init(row: 0, column: 4, rows: 1, columns: 2), bar)
    #expect(
      canvas.lines(in: .colours) == [
        "\u{1B}[44mab\u{1B}[0m \u{1B}[31mc\u{1B}[0m\u{1B}[44m  \u{1B}[0m"
      ])
    #expect(canvas.lines(in: .emphasis) == ["\u{1B}[7mab\u{1B}[0m c\u{1B}[7m  \u{1B}[0m"])
    #expect(canvas.lines(in: .characters) == ["ab c"])
  }

  @Test("erases the rest of a line, but not behind its last column")
  func output() {
    var canvas = Canvas(rows: 2, columns: 3)
    canvas.put("abc", row: 0, column: 0)
    canvas.put("d", row: 1, column: 0)
    #expect(canvas.output(in: .colours) == "\u{1B}[Habc\r\nd\u{1B}[K")
  }

  @Test("frames an area, which may be outside")
  func frame() {
    var canvas = Canvas(rows: 3, columns: 4)
    canvas.frame(.init(row: 0, column: 0, rows: 3, columns: 4), .plain)
    #expect(canvas.lines(in: .characters) == ["╭──╮", "│  │", "╰──╯"])
    canvas.frame(.init(row: 0, column: 0, rows: 1, columns: 1), .plain)
    canvas.fill(.init(row: -1, column: 2, rows: 9, columns: 9), .plain, with: "x")
    #expect(canvas.lines(in: .characters) == ["╭─xx", "│ xx", "╰─xx"])
  }

  @Test("has colours only on a terminal that can and a user who wants them")
  func wanted() {
    func palette(_ isTerminal: Bool, _ variables: [String: String]) -> Palette {
      Palette.wanted(isTerminal: isTerminal) { variables[$0] }
    }
    #expect(palette(true, ["TERM": "xterm"]) == .colours)
    #expect(palette(true, ["TERM": "xterm", "NO_COLOR": ""]) == .colours)
    #expect(palette(true, ["TERM": "xterm", "NO_COLOR": "1"]) == .emphasis)
    #expect(palette(true, ["TERM": "dumb"]) == .characters)
    #expect(palette(true, ["TERM": "dumb", "NO_COLOR": "1"]) == .characters)
    #expect(palette(false, ["TERM": "xterm"]) == .characters)
  }
}
