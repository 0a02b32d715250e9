import Foundation
import TestScopes
import TestSupport
import Testing

/// A newcomer pastes the examples of README.md, and gets the output that it shows.
@Suite("The README, as its reader pastes it,", .blocking)
struct ReadmeTests {
  /// The trial of a program of the README, found by a line of it.
  struct Trial: Sendable, CustomTestStringConvertible {
    let line: String
    let console: String
    var name = "program"
    var testDescription: String { line }
  }

  static let trials = [
    Trial(
      line: "Channel<Ticket>",
      console: """
        $ ./program                   # in the first shell
        Ticket(film: "Metropolis", seats: [7, 8, 9]) from program
        Ticket(film: "M", seats: [1]) from wormhole
        $ wormhole send tickets '{"film":"M","seats":[1]}'     # in the second
        $ wormhole read seats
        99
        """),
    Trial(
      line: "jobs.work(",
      console: """
        $ ./program M && ./program Metropolis && ./program   # in the first shell
        2 M false
        2 Metropolis false
        2 Faust false
        $ ./program Faust                                    # in the second
        """),
    Trial(
      line: "sales.subscribe(",
      console: """
        $ ./program Metropolis && ./program                  # in the first shell
        1 Metropolis 0 false
        2 Faust 0 false
        $ ./program Faust                                    # in the second
        """),
    Trial(
      line: "FileCoordinator()",
      console: """
        $ ./program && ./program && cat seats.json && echo
        [7,7]
        """),
    Trial(
      line: "GroupDefaults(",
      console: """
        $ ./program                   # in the first shell
        7
        film
        $ wormhole defaults write film '"M"'       # in the second
        $ wormhole defaults read seats
        99
        """),
    Trial(
      line: "MMWormhole(",
      console: """
        $ ./program                   # in the first shell
        ["pressed": 3]
        """),
    Trial(
      line: "PeerSession(",
      console: """
        $ ./program
        till ["film": "Metropolis"] false
        ["sold": [7, 8]] processed
        """),
    Trial(
      line: "WCSessionDelegate", console: console("connectivity"), name: "connectivity"),
    Trial(
      line: "GuaranteedMessage.observe",
      console: """
        $ WATCHCONNECTIVITY_ROLE=phone ./program    # in the first shell
        sold ["seats": [7, 8]]
        $ WATCHCONNECTIVITY_ROLE=watch ./program    # in the second
        sold ["seats": [7, 8]]
        """),
  ]

  /// Returns the console of the README in which a program of that name is started.
  private static func console(_ name: String) -> String {
    Readme.blocks(of: "console").first { $0.text.contains("/\(name)") }?.text ?? ""
  }

  @Test("has programs that build without a warning and work as described", arguments: trials)
  func programs(_ trial: Trial) throws {
    let blocks = Readme.blocks(of: "swift").filter { $0.text.contains(trial.line) }
    let block = try #require(blocks.first)
    #expect(blocks.count == 1 && !trial.console.isEmpty, "\(block)")
    let directory = try TemporaryDirectory()
    let package = ReaderPackage(directory: directory.path)
    let outcome = try package.build(block.text, as: trial.name)
    try #require(outcome.isBuilt, "\(block): \(outcome.said)")
    try FileManager.default.createDirectory(
      atPath: directory.path + "/.build", withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      atPath: directory.path + "/.build/debug", withDestinationPath: directory.path)
    let console = try Console(in: directory.path)
    defer { close(console) }
    try console.play(trial.console, "\(block)")
  }

  @Test(
    "has consoles that show the real output",
    arguments: Readme.blocks(of: "console").filter { !$0.text.contains(".build/") })
  func consoles(_ block: Readme.Block) throws {
    let directory = try TemporaryDirectory()
    let console = try Console(in: directory.path)
    defer { close(console) }
    // The state that the blocks before it have left.
    for before in Readme.blocks(of: "console") where before.line < block.line {
      guard before.text.contains("wormhole send tickets") else { continue }
      try console.play("$ wormhole send tickets 1\n", "\(block)")
    }
    try console.play(block.text, "\(block)")
  }

  private func close(_ console: Console) {
    do {
      try console.close()
    } catch {
      Issue.record("a shell did not end: \(error)")
    }
  }

  @Test("begins with two commands, which the gate runs")
  func commands() throws {
    let gate = try String(
      contentsOf: Readme.root.appending(path: ".ci/run"), encoding: .utf8)
    let blocks = Readme.blocks(of: "sh")
    let lines = try #require(blocks.first).text.split(separator: "\n")
    #expect(blocks.count == 1 && lines.count == 2)
    for line in lines {
      let command = line.prefix { $0 != "#" }.trimmingCharacters(in: .whitespaces)
      #expect(gate.contains(command + "\n"), "\(command)")
    }
  }

  @Test("has nothing else between fences, but for the list of folders")
  func nothingElse() {
    let others = Readme.blocks.filter { !["swift", "console", "sh"].contains($0.language) }
    #expect(others.count == 1 && others.first?.text.hasPrefix("Sources/") == true, "\(others)")
    #expect(Self.trials.count == Readme.blocks(of: "swift").count)
  }
}
