import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import WormholeCommand

@Suite("Output for people fits their terminal", .blocking)
struct LayoutTests {
  private static let widths = [40, 80, 200]

  @Test("The help of every command fits, down to 40 columns", arguments: widths)
  func help(columns: Int) {
    for path in CommandDescription.root.paths() {
      let text = HelpText(path: path, columns: columns).rendered
      // An example is copied, so it stays in one line.
      let examples = CommandExamples.lines(of: path).map { "  " + $0 }
      let long = text.split(separator: "\n").map(String.init).filter { line in
        line.count > columns && (columns >= 80 || !examples.contains(line))
      }
      #expect(long.isEmpty, "\(path.map(\.name)): \(long)")
    }
  }

  private static let rows = [
    ["phone", "reachable", "process 4711 (phoned) is active and runs"],
    ["a name of \(String(repeating: "x", count: 60))", "gone", "-"],
  ]

  @Test("A long table has ten thousand rows in memory, and the names of ls -l come in parts")
  func long() {
    var table = LongTable(["NAME"], columns: nil)
    let texts = (1...20_001).map { table.add(["\($0)"]) }
    #expect(texts.indices.filter { !texts[$0].isEmpty } == [9_999, 19_999])
    #expect(texts[19_999].hasPrefix("NAME\n10001\n10002\n"))
    #expect(table.take() == "NAME\n20001\n" && table.take().isEmpty)

    let listed = [(LiveNames.value, "b"), (.value, "a"), (.queue, "b"), (.log, "c")]
    let parts = KnownUnderName.parts(of: listed.map { (kind: $0, name: $1) }, size: 2)
    #expect(parts.map { $0.map(\.name) } == [["a", "b", "b"], ["c"]])
  }

  @Test("A table that does not fit is broken into lines or paragraphs, without losing anything")
  func table() {
    let head = ["PEER", "STATE", "WHY"]
    let natural = TextTable(head, [Self.rows[0]], columns: nil).rendered
    #expect(TextTable(head, [Self.rows[0]], columns: 80).rendered == natural)
    #expect(
      TextTable(head, [Self.rows[0]], columns: 40).rendered == """
        PEER   STATE      WHY
        phone  reachable  process 4711 (phoned)
                          is active and runs

        """)
    #expect(
      TextTable(head, [Self.rows[0]], columns: 36).rendered == """
        PEER
        phone
          STATE  reachable
          WHY    process 4711 (phoned) is
                 active and runs

        """)
    for columns in 10...120 {
      let text = TextTable(head, Self.rows, columns: columns).rendered
      #expect(text.split(separator: "\n").allSatisfy { $0.count <= columns }, "\(columns)\n\(text)")
      #expect(text.filter { $0 == "x" }.count == 60)
    }
    #expect(TextTable(head, [], columns: 40).rendered == "")
  }

  private static let scene = """
    wormhole send tickets 1; wormhole send "a much longer name for a message, with words" 2
    wormhole defaults write volume 7; wormhole notify set doors 18446744073709551615
    wormhole peer send watch 1 --from phone >"$T/id"
    wormhole queue put jobs '{"film":"Metropolis"}' --key film >"$T/id"
    start peer serve phone -- cat
    mkdir "$C/values/tickets/lease/broken-1"

    """

  /// Runs a command at a terminal of some width; the terminal ends lines with CR LF.
  private static func at(_ columns: Int, _ command: String) -> String {
    "script -qfec 'stty cols \(columns) rows 24; wormhole \(command)' /dev/null | tr -d '\\r'"
  }

  @Test(
    "At a terminal every line fits, except paths and commands, which are copied", arguments: widths)
  func terminal(columns: Int) throws {
    let session = try Session()
    let commands = [
      "status", "peer list", "doctor", "help listen", "queue list", "queue list jobs",
      "presence list", "ls -l tickets jobs",
    ]
    let outcome = try session.shell(
      Self.scene + commands.map { Self.at(columns, $0) }.joined(separator: "\n")
        + "\nkill $pid; finish")
    let lines = outcome.output.split(separator: "\n", omittingEmptySubsequences: false)
    // The other tests may use up the user's inotify instances, which 'doctor' reports.
    let copied = [
      session.container, "/proc/sys/fs/inotify/", "sysctl fs.inotify.", "  wormhole listen",
    ]
    let long = lines.filter { line in
      line.count > columns && !copied.contains { line.contains($0) }
    }
    #expect(long.isEmpty, "\(outcome)")
    for word in ["tickets", "DEFAULTS", "phone", "1 note", "OVERVIEW"] {
      #expect(outcome.output.contains(word), "\(word) in \(outcome)")
    }
  }

  @Test("Without a terminal, a row is one line, whatever COLUMNS says")
  func piped() throws {
    let outcome = try Session().shell(
      Self.scene + """
        wormhole peer list | cat >"$T/a"; COLUMNS=40 wormhole peer list | cat >"$T/b"
        cmp "$T/a" "$T/b" && grep -c 'active and runs$' "$T/a"; kill $pid; finish
        """)
    #expect(outcome.output == "1\n", "\(outcome)")
  }

  @Test("At a terminal, and only there, a message says once that standard input is read")
  func waiting() throws {
    let session = try Session()
    let outcome = try session.shell(
      """
      printf '7\\n\\004' | script -qfec 'wormhole send seats' /dev/null \
        | grep -c 'reading standard input from the terminal; Ctrl-D ends it'
      wormhole read seats; echo 8 | wormhole send seats; wormhole read seats
      """)
    #expect(outcome.output == "1\n7\n8\n", "\(outcome)")
    #expect(outcome.errors == "", "\(outcome)")
  }
}
