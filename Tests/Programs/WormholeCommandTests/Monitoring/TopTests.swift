import Testing
import WormholeTestSupport

@testable import WormholeCommand
@testable import WormholeInspection

@Suite("What wormhole top counts and draws", .blocking) struct TopTests {
  private func line(
    _ name: String, _ kind: MonitorLine.Kind = .message, _ change: ContainerEvent.Change = .changed
  ) -> MonitorLine {
    var event = ContainerEvent(.value, change, of: name)
    event.processID = 4_711
    return MonitorLine(kind, name, event: event)
  }

  @Test("A rate is that of the last ten seconds; before, of the time that has passed")
  func rates() {
    var activity = Activity()
    for second in 0..<4 { activity.note(line("a"), at: second) }
    #expect(activity.rate(at: 4) == 1)
    #expect(activity.rate(at: 8) == 0.5)
    // In the ten seconds before 11 are the seconds 2 to 11.
    #expect(activity.rate(at: 11) == 0.2)
    #expect(activity.rate(at: 13) == 0)
    #expect(activity.total == 4)
    activity.note(line("a"), at: 100)
    #expect(activity.rows(at: 100).map(\.total) == [5])
    #expect(activity.rate(at: 100) == 0.1)
  }

  @Test("The busiest name comes first, then the one with more events, then by name")
  func order() {
    var activity = Activity()
    for _ in 0..<5 { activity.note(line("old"), at: 0) }
    for name in ["b", "a", "c", "c"] { activity.note(line(name), at: 60) }
    activity.note(line("a", .queue), at: 60)
    let rows = activity.rows(at: 60)
    #expect(rows.map(\.subject.name).first == "c" && rows.map(\.subject.name).last == "old")
    #expect(rows.count == 5)
    #expect(rows.filter { $0.subject.name == "a" }.count == 2)
  }

  @Test("Names that were quiet for longest are forgotten when there are too many")
  func manyNames() {
    var activity = Activity()
    for number in 0..<3_000 { activity.note(line("\(number)"), at: number / 100) }
    #expect(activity.rows(at: 30).count <= 1_000)
    #expect(activity.rows(at: 30).contains { $0.subject.name == "2999" })
    #expect(activity.total == 3_000)
  }

  /// A container in which there is more than any screen shows.
  private func drawing(columns: Int, rows: Int, hasColour: Bool = false) -> TopDrawing {
    var report = ContainerReport(path: "/a/rather/long/path/of/a/container")
    report.names.queues = (0..<30).map { number in
      var queue = ContainerReport.NamedQueue(name: "queue-\(number)", path: "/q")
      queue.waiting = number
      queue.failed = 1
      return queue
    }
    var activity = Activity()
    for number in 0..<30 {
      activity.note(line("a long name with words and a line\nbreak, \(number)"), at: 1)
    }
    return TopDrawing(
      activity: activity, second: 2, report: report, peers: [], columns: columns, rows: rows,
      hasColour: hasColour)
  }

  @Test(
    "It has exactly the rows of the terminal, and no line is wider",
    arguments: [
      (40, 16), (80, 24), (200, 50), (20, 5), (8, 3), (40, 100),
    ])
  func fits(columns: Int, rows: Int) {
    let lines = drawing(columns: columns, rows: rows).lines
    #expect(lines.count == rows)
    #expect(lines.allSatisfy { $0.count < columns && !$0.contains { $0.isNewline } }, "\(lines)")
    #expect(lines.last?.hasPrefix("q quit") == (columns > 8) || columns == 8)
  }

  @Test("The busiest names and the fullest queue are seen, and how much is not")
  func content() {
    let lines = drawing(columns: 80, rows: 24).lines
    #expect(lines[0].contains("/container") && lines[0].contains("15/s, 30 events"))
    #expect(lines[1].hasPrefix("RATE  EVENTS  KIND"))
    #expect(lines[2].contains("a long name with words"))
    let queues = lines.drop { !$0.hasPrefix("QUEUE") }
    #expect(queues.dropFirst().first?.hasPrefix("queue-29  29") == true, "\(lines)")
    #expect(lines.filter { $0.hasPrefix("… and ") }.count == 2, "\(lines)")
    #expect(!lines.joined().contains("\u{1B}"))
    #expect(drawing(columns: 80, rows: 24, hasColour: true).lines[0].hasPrefix("\u{1B}[7m"))
  }

  @Test("What went wrong takes the place of the keys")
  func problem() {
    var drawing = drawing(columns: 80, rows: 24)
    drawing.problem = "cannot look through the container"
    #expect(drawing.lines.last == "cannot look through the container")
  }
}

@Suite("wormhole top and status --watch", .blocking) struct TopCommandTests {
  @Test("The screen shows what happens; 'q' ends it, and gives the terminal back", .bothEngines)
  func screen() throws {
    let outcome = try Session().shell(
      """
      sees() { says "$T/screen" "$1"; }
      wormhole send tickets 1; wormhole queue put jobs 1 >"$T/null"
      mkfifo "$T/keys"
      TERM=xterm NO_COLOR=1 script -qfec 'stty cols 80 rows 24; stty -g; wormhole top; echo "status $?"
        stty -g' /dev/null <"$T/keys" >"$T/screen" & terminal=$!
      exec 4>"$T/keys"
      sees '0 events'; sees 'jobs   1'
      wormhole send tickets 2; sees 'tickets'; sees 'changed by'
      printf q >&4; wait $terminal; exec 4>&-
      tr -d '\\r' <"$T/screen" >"$T/text"
      test "$(head -1 "$T/text")" = "$(tail -1 "$T/text")"; echo $?
      grep -c 'status 0' "$T/text"
      # The alternate screen is left, and the cursor is shown.
      grep -cF "$(printf '\\033[?25h\\033[?1049l')" "$T/text"
      wormhole read tickets; wormhole queue peek jobs
      """, within: .seconds(60))
    #expect(outcome.output == "0\n1\n1\n2\n1\n", "\(outcome)")
  }

  @Test("Without a terminal, or with a dumb one, it refuses with a sentence")
  func refusals() throws {
    let outcome = try Session().shell(
      """
      wormhole send tickets 1
      wormhole top 2>"$T/said"; echo $?; grep -c "it needs a terminal; 'wormhole monitor'" "$T/said"
      TERM=dumb script -qfec 'wormhole top' /dev/null | grep -c "TERM is 'dumb'"
      """)
    #expect(outcome.output == "64\n1\n1\n", "\(outcome)")
  }

  @Test(
    "status --watch prints a status for what happens, as text or as lines of JSON", .bothEngines)
  func watching() throws {
    let outcome = try Session().shell(
      """
      sees() { says "$T/heard" "$1"; }
      wormhole send tickets 1
      start status --watch --json >"$T/heard"
      sees '"identifier":"tickets"'
      wormhole send film 2; sees '"identifier":"film"'
      kill $pid; finish 2>"$T/null"
      grep -cv '^{.*}$' "$T/heard"
      start status --watch --count 2 >"$T/heard"
      sees tickets; wormhole send third 3; finish; echo $?; grep -c '^MESSAGE' "$T/heard"
      wormhole status --watch --timeout 0 >"$T/heard" 2>"$T/said"; echo $?
      wormhole status --count 1 2>"$T/said"; echo $?
      """, within: .seconds(60))
    #expect(outcome.output == "0\n0\n2\n124\n64\n", "\(outcome)")
  }
}
