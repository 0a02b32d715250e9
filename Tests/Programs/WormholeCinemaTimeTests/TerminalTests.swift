import ConnectivityTesting
import Foundation
import Testing
import WatchConnectivity
import Wormhole
import WormholePeers
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import WormholeCinemaTime

/// The screens in real pseudo-terminals, made by script(1), like two windows.
@Suite("At a terminal", .blocking)
struct TerminalTests {
  private let cast: StoryCast

  let place: TemporaryDirectory

  init() throws {
    place = try TemporaryDirectory()
    cast = try StoryCast(
      .silent, program: BuiltProgram.path("cinematime"), in: URL(fileURLWithPath: place.path))
  }

  /// A side in a terminal of some size, whose output is read as it arrives.
  private final class Window {
    let process: LineProcess
    private(set) var seen = ""
    private var forgotten = ""
    private(set) var terminal: EmulatedTerminal

    init(
      _ role: String, _ directory: URL, columns: Int, rows: Int, variables: [String] = [],
      setUp: String = ""
    ) throws {
      terminal = EmulatedTerminal(columns: columns, rows: rows)
      let program = try BuiltProgram.path("cinematime")
      // The terminal's mode is printed before and after, for comparison.
      let line =
        "\(setUp)stty cols \(columns) rows \(rows); stty -g; "
        + "'\(program)' --container '\(directory.path)' \(role); echo \"status $?\"; stty -g; echo over"
      process = try LineProcess(
        "script", ["-qfec", line, "/dev/null"],
        // The side's temporary files lie beside its container, even if it is killed.
        environment: Program.environment(
          with: ["SHELL=/bin/sh", "TMPDIR=" + directory.deletingLastPathComponent().path]
            + (variables.contains { $0.hasPrefix("TERM=") } ? [] : ["TERM=xterm"]) + variables
        )
        .filter { variables.contains($0) || !$0.hasPrefix("NO_COLOR=") })
    }

    func press(_ keys: String) throws { try process.type(keys) }

    /// Reads until the screen shows a text, perhaps broken between words.
    func wait(for text: String) throws {
      let deadline = soon
      do {
        while !seen.contains(text), !unbroken.contains(text) { try read(until: deadline) }
      } catch {
        let screens = "last forgotten: \(forgotten)\nsince: \(unbroken)"
        throw LineProcess.Failure(description: "no \"\(text)\": \(error)\n\(screens)")
      }
    }

    private func read(until deadline: ContinuousClock.Instant) throws {
      let text = try process.text(until: deadline)
      seen += text
      terminal.take(text)
    }

    /// Reads until the screen is as a snapshot.
    func wait(forSnapshot screen: String, _ name: String) throws {
      let wanted = try ScreenSnapshots.lines(of: screen, name)
      let deadline = soon
      do {
        while terminal.text != wanted { try read(until: deadline) }
      } catch {
        let lines = terminal.text.joined(separator: "\n")
        throw LineProcess.Failure(description: "no \(screen) \(name): \(error)\n\(lines)")
      }
    }

    /// The output as one line, without the codes of the terminal.
    private var unbroken: String {
      seen.replacing(/\u{1B}\[[0-9;?]*[A-Za-z]/, with: "")
        .split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }

    /// Drops the output so far, but for the message of a later failure.
    func forget() {
      forgotten = unbroken
      seen = ""
    }
  }

  // The other side's death used to go unnoticed after it had been stopped during a send.
  @Test("shows that the other side is stopped, continued and killed, without a key press")
  func reach() throws {
    defer { cast.end() }
    let watch = try cast.start(.watch)
    let phone = try Window("phone", cast.directory, columns: 80, rows: 24)
    try phone.wait(for: "watch in reach")
    // It began with "away".
    phone.forget()
    // Twice without a key: during the greeting, sent messages reveal it; later only the look once a
    // second does.
    for keys in ["", "", "fby"] {
      try Program.send(.stop, to: watch.process.processID)
      try phone.press(keys)
      try phone.wait(for: "watch away")
      phone.forget()
      try Program.send(.continue, to: watch.process.processID)
      try phone.wait(for: "watch in reach")
      phone.forget()
    }
    try cast.kill(.watch)
    try phone.wait(for: "watch away")
    try phone.press("q")
    try phone.wait(for: "status 0")
  }

  @Test("suspends the other side with a key, which then blocks nobody, and continues it")
  func suspendsOther() throws {
    defer { cast.end() }
    let watch = try cast.start(.watch)
    let phone = try Window("phone", cast.directory, columns: 80, rows: 24)
    try phone.wait(for: "z suspend watch")
    phone.forget()
    try phone.press("z")
    try phone.wait(for: "The watch is stopped")
    try eventually("it is stopped") {
      ProcessStatus.of(watch.process.processID)?.isStopped == true
    }
    try phone.wait(for: "z continue watch")
    try phone.press("by")
    try phone.wait(for: "Bought")
    phone.forget()
    try phone.press("z")
    try phone.wait(for: "watch in reach")
    #expect(try watch.answer("tickets").isEmpty == false)
    try phone.press("q")
    try phone.wait(for: "status 0")
  }

  // It swallowed Control-Z, and after `fg` it read what was meant for the shell.
  @Test(
    "can be suspended with Control-Z, has given the terminal back then, and draws again after fg")
  func suspends() throws {
    defer { cast.end() }
    let phone = try Window(
      "phone; echo stopped; stty -g; read -r line; echo \"line $line\"; fg", cast.directory,
      columns: 80, rows: 24, setUp: "set -m; ")
    try phone.wait(for: "Angel On My Shoulder")
    let mode = try #require(phone.seen.split(separator: "\r\n").first)
    phone.forget()
    try phone.press("\u{1A}")
    try phone.wait(for: "stopped\r\n\(mode)\r\n")
    // The keys belong to the shell.
    try phone.press("fg\r")
    try phone.wait(for: "line fg\r\n")
    #expect(phone.seen.contains("\u{1B}[?1049l"))
    try phone.wait(for: "\u{1B}[?1049h")
    try phone.wait(for: "Angel On My Shoulder")
    try phone.press("q")
    try phone.wait(for: "status 0")
  }

  // Each of these used to be an ordinary screen that showed "away" for ever.
  @Test("shows why there is no session or reachable side, and the command that helps")
  func obstacles() throws {
    defer { cast.end() }
    let left = try Window("watch --name left", cast.directory, columns: 200, rows: 24)
    try left.wait(for: "This watch is not paired:")
    try left.wait(for: "peer pairing")
    let phone = try cast.start(.phone)
    let other = try Window("phone", cast.directory, columns: 100, rows: 24)
    try other.wait(for: "No session:")
    try other.wait(for: "process \(phone.process.processID)")
    let pairing = Pairing(of: "phone", in: try SharedContainer(url: cast.directory))
    try pairing.pair(.init(name: "watch"))
    try pairing.pair(.init(name: "left"))
    try left.wait(for: "The phone's watch is watch:")
    try left.wait(for: "--activate")
    left.forget()
    try pairing.activate("left")
    try left.wait(for: "phone in reach")
    let name = String(repeating: "x", count: 120)
    let long = try Window("watch --name \(name)", cast.directory, columns: 100, rows: 24)
    try long.wait(for: "No session:")
    for window in [left, other, long] {
      try window.press("q")
      try window.wait(for: "status 0")
    }
  }

  @Test("shows the snapshots of its screens in terminals with colours, without, and dumb")
  func snapshots() throws {
    defer { cast.end() }
    let watch = try Window(
      "watch", cast.directory, columns: 40, rows: 20, variables: ["TERM=dumb"])
    try watch.wait(for: "No tickets yet")
    let phone = try Window(
      "phone", cast.directory, columns: 80, rows: 24, variables: ["NO_COLOR=1"])
    try phone.wait(forSnapshot: "first", "80x24")
    try phone.press("?")
    try phone.wait(for: "Esc close")
    // An escape byte alone is a key.
    try phone.press("\u{1B}")
    try phone.wait(forSnapshot: "first", "80x24")
    try phone.press("jjby")
    try phone.wait(forSnapshot: "ticket", "80x24")
    try watch.wait(for: "✓ The phone bought “Africa Screams”.")
    // Any key is the answer to a message.
    try watch.press("t\r")
    try watch.wait(forSnapshot: "watchTicket", "40x20")
    try watch.press("q")
    try watch.wait(for: "status 0")
    let small = try Window("watch", cast.directory, columns: 20, rows: 8)
    try small.wait(for: "Enter open")
    try small.press("t\r")
    try small.wait(forSnapshot: "watchTicket", "20x8")
    for window in [small, phone] {
      try window.press("q")
      try window.wait(for: "status 0")
    }
    #expect(!small.terminal.looks.isSubset(of: ["0", "1", "7"]), "colours")
    #expect(watch.terminal.looks.isSubset(of: ["0"]))
    #expect(phone.terminal.looks.isSuperset(of: ["7", "97;40"]))
    #expect(phone.terminal.looks.isSubset(of: ["0", "1", "7", "97;40"]))
  }

  @Test(
    "buys with the keys that it shows, at the width of a watch, and leaves the terminal as it was")
  func keysAndMode() throws {
    defer { cast.end() }
    let watch = try Window("watch", cast.directory, columns: 30, rows: 12)
    try watch.wait(for: "No tickets yet")
    let modeBefore = watch.seen.split(separator: "\r\n").first
    try watch.press("f")
    try watch.wait(for: "> 13:00 Angel On My Shoul…")
    try watch.press("j")
    try watch.wait(for: "> 14:00 Baby Face Morgan")
    try watch.press("b")
    try watch.wait(for: "Buy a ticket for 14:00?")
    try watch.press("y")
    try watch.wait(for: "d give back")
    #expect(try cast.purchased() == [23415])
    try watch.press("q")
    try watch.wait(for: "over\r\n")
    let end = try #require(watch.seen.range(of: "status 0\r\n"))
    #expect(watch.seen[end.upperBound...].split(separator: "\r\n").first == modeBefore)
    #expect(watch.seen.contains("\u{1B}[?1049h") && watch.seen.contains("\u{1B}[?1049l"))
  }
}
