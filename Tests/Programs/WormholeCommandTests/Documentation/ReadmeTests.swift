import Foundation
import Testing
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

/// A newcomer pastes the examples of README.md and of the tutorials, and gets the output that is shown.
@Suite("The README and the tutorials, as their reader pastes them,", .blocking)
struct ReadmeTests {
  /// The trial of a program of a page, found by a line of it.
  struct Trial: Sendable, CustomTestStringConvertible {
    /// The page: README.md, or one below Sources/Facades.
    var page = "README.md"
    let line: String
    /// Input and output for it; nil for what the page itself shows.
    var console: String?
    var name = "program"
    var testDescription: String { "\(page): \(line)" }

    var path: String { page == "README.md" ? page : "Sources/\(page)" }
  }

  static let trials = [
    Trial(
      line: "Channel<Ticket>",
      console: """
        $ ./program                   # in the first shell
        Ticket(film: "Metropolis", seats: [7, 8, 9]) from program
        Ticket(film: "M", seats: [1]) from wormhole
        $ wormhole send tickets '{"film":"M","seats":[1]}'     # in the second
        """),
    Trial(page: "Core/Wormhole/Wormhole.docc/ShareState.md", line: "\"follow\"", name: "office"),
    Trial(page: "Core/Wormhole/Wormhole.docc/JobRunner.md", line: "queue.work(", name: "jobs"),
    Trial(
      page: "Core/Wormhole/Wormhole.docc/KeepHistory.md", line: "sales.subscribe(",
      console: """
        $ ./program Metropolis && ./program                  # in the first shell
        1 Metropolis 0 false
        2 Faust 0 false
        $ ./program Faust                                    # in the second
        """),
    Trial(
      page: "Facades/GroupDefaults/GroupDefaults.docc/PortingFromUserDefaults.md", line: "@main",
      console: """
        $ ./program                   # in the first shell
        7
        film
        $ wormhole defaults write film '"M"'       # in the second
        $ wormhole defaults read seats
        99
        """),
    Trial(
      page: "Facades/MMWormhole/MMWormhole.docc/PortingFromMMWormhole.md", line: "MMWormhole(",
      console: """
        $ ./program                   # in the first shell
        ["pressed": 3]
        """),
    Trial(
      page: "Facades/WormholePeers/WormholePeers.docc/WormholePeers.md", line: "PeerSession(",
      console: """
        $ ./program
        till ["film": "Metropolis"] false
        ["sold": [7, 8]] processed
        """),
    Trial(
      page: "Facades/ConnectivityTesting/ConnectivityTesting.docc/WatchConnectivityInCI.md",
      line: "dispatchMain()", name: "connectivity"),
    Trial(
      page: "Facades/Communicator/Communicator.docc/PortingFromCommunicator.md",
      line: "GuaranteedMessage.observe",
      console: """
        $ WATCHCONNECTIVITY_ROLE=phone ./program    # in the first shell
        sold ["seats": [7, 8]]
        $ WATCHCONNECTIVITY_ROLE=watch ./program    # in the second
        sold ["seats": [7, 8]]
        """),
  ]

  @Test("have programs that build without a warning and work as described", arguments: trials)
  func programs(_ trial: Trial) throws {
    let page = try Readme.blocks(ofPage: trial.path)
    let blocks = page.filter { $0.language == "swift" && $0.text.contains(trial.line) }
    let block = try #require(blocks.first, "\(trial.page)")
    #expect(blocks.count == 1, "\(block)")
    let directory = try TemporaryDirectory()
    let package = ReaderPackage(directory: directory.path)
    let outcome = try package.build(block.text, as: trial.name)
    try #require(outcome.isBuilt, "\(block): \(outcome.said)")
    try FileManager.default.createDirectory(
      atPath: directory.path + "/.build", withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      atPath: directory.path + "/.build/debug", withDestinationPath: directory.path)
    do {
      let console = try Console(in: directory.path)
      defer { close(console) }
      if let text = trial.console {
        try console.play(text, "\(block)")
      } else {
        let entries = ConsolePage.entries(page)
        #expect(entries.count > 2, "\(block)")
        try console.play(entries, "\(block)")
      }
      if trial.name == "jobs" { try waitForAcknowledgement(in: directory.path) }
    }
    if trial.name == "jobs" { try stopAndContinue(in: directory.path) }
  }

  /// The third step of the job runner: the worker that was stopped goes on when it is continued.
  private func stopAndContinue(in directory: String) throws {
    let deadline = soon
    let environment = ["HOME=\(directory)", "XDG_DATA_HOME=\(directory)/data"]
    func start() throws -> LineProcess {
      try LineProcess(
        "stdbuf", ["-oL", directory + "/jobs"], environment: environment + ["PATH=/usr/bin:/bin"])
    }
    func add(_ film: String) throws {
      let sender = try LineProcess(directory + "/jobs", ["add", film], environment: environment)
      #expect(try sender.wait(until: deadline) == .exited(0))
    }
    let late = try start()
    try add("A")
    #expect(try late.line(until: deadline) == "2 × A")
    try waitForAcknowledgement(in: directory)
    try late.send(.stop)
    try late.waitUntilStopped(until: deadline)
    let other = try start()
    try add("B")
    #expect(try other.line(until: deadline) == "2 × B")
    try eventually("the other has replaced it") { try taken(in: directory).count == 1 }
    try waitForAcknowledgement(in: directory)
    try other.end()
    try late.send(.continue)
    try add("C")
    #expect(try late.line(until: deadline) == "2 × C")
    try late.end()
  }

  /// A worker that is stopped or killed before that loses the entry.
  private func waitForAcknowledgement(in directory: String) throws {
    try eventually("the entry is acknowledged") {
      try taken(in: directory).allSatisfy {
        try FileManager.default.contentsOfDirectory(atPath: $0).isEmpty
      }
    }
  }

  /// The directories of the workers of the jobs.
  private func taken(in directory: String) throws -> [String] {
    let path = directory + "/data/app-groups/group.com.example.jobs/queues/print/taken"
    return try FileManager.default.contentsOfDirectory(atPath: path).map { path + "/" + $0 }
  }

  /// The sections of the README and of the page of the command with input for a shell, and the pages with input
  /// that is for no program of their own.
  static let sections: [[Readme.Block]] = {
    let readme = Readme.blocks.filter { ![setUp, download].contains($0.section) }
    let blocks = (readme + command).filter { ["sh", "text"].contains($0.language) }
    return blocks.reduce(into: [[Readme.Block]]()) { sections, block in
      if let last = sections.last?.last, last.path == block.path, last.section == block.section {
        sections[sections.count - 1].append(block)
      } else {
        sections.append([block])
      }
    }
  }()
  private static let command = Readme.known("Sources/Core/Wormhole/Wormhole.docc/Command.md")
  /// The set-up comes first, before any heading.
  private static let setUp = Readme.blocks[0].section
  /// Its command is tried with a package that was just made, by `PackagingTests`.
  static let download = "Install"

  @Test("have consoles that show the real output", arguments: sections)
  func consoles(_ blocks: [Readme.Block]) throws { try play(blocks) }

  @Test(
    "have pages whose consoles show the real output",
    arguments: [
      "Core/Wormhole/Wormhole.docc/KeepHistory.md",
      "Facades/WormholePeers/WormholePeers.docc/WormholePeers.md",
      "Facades/WatchConnectivity/WatchConnectivity.docc/CinemaTime.md",
    ])
  func pages(_ page: String) throws {
    let blocks = try Readme.blocks(ofPage: "Sources/\(page)")
    try play(blocks, transcript: blocks.first { $0.language == "console" }?.text)
  }

  /// - Parameter transcript: Input between its output, of which the reader copies nothing.
  private func play(_ blocks: [Readme.Block], transcript: String? = nil) throws {
    let directory = try TemporaryDirectory()
    let console = try Console(in: directory.path)
    defer { close(console) }
    let entries = ConsolePage.entries(blocks)
    let place = blocks.first?.description ?? ""
    if let transcript {
      #expect(entries.isEmpty, "\(place)")
      try console.play(transcript, place)
    } else {
      #expect(!entries.isEmpty, "\(place)")
      try console.play(entries, place)
    }
  }

  private func close(_ console: Console) {
    do {
      try console.close()
    } catch {
      Issue.record("a shell did not end: \(error)")
    }
  }

  @Test("begin with two commands, which the gate runs")
  func commands() throws {
    let gate = try String(
      contentsOf: Readme.root.appending(path: ".ci/run"), encoding: .utf8)
    let blocks = Readme.blocks(of: "sh")
    #expect(blocks[1].section != Self.setUp && blocks.last?.section == Self.download)
    #expect(blocks[0].line < 25)
    let lines = blocks[0].text.split(separator: "\n")
    #expect(lines.count == 2)
    for line in lines {
      let command = line.prefix { $0 != "#" }.trimmingCharacters(in: .whitespaces)
      #expect(gate.contains(command + "\n"), "\(command)")
    }
  }

  @Test("name the version that the program has, and are short")
  func version() throws {
    let version = try Session().shell("wormhole --version").output.dropLast()
    let readme = try Readme.text("README.md")
    let changes = try Readme.text(".github/CHANGELOG.md")
    #expect(readme.contains("releases/download/\(version)\nname=wormhole-\(version)-"))
    #expect(readme.contains("from: \"\(version)\""))
    let newest = try #require(changes.split(separator: "\n").first { $0.hasPrefix("## ") })
    #expect(newest == "## \(version)" || newest.hasPrefix("## \(version), "))
    #expect(readme.split(separator: "\n", omittingEmptySubsequences: false).count <= 141)
  }

  @Test("have nothing else between fences in the README, and nothing to copy with a prompt")
  func nothingElse() {
    #expect(Set(Readme.blocks.map(\.language)) == ["swift", "sh", "text"])
    let trials = Self.trials.filter { $0.page == "README.md" }
    #expect(trials.count == Readme.blocks(of: "swift").count)
    for block in Readme.blocks(of: "sh") {
      #expect(!block.text.hasPrefix("$ ") && !block.text.contains("\n$ "), "\(block)")
    }
  }

  @Test("have a list of folders that is complete")
  func folders() throws {
    let page = ".github/CONTRIBUTING.md"
    let list = try #require(try Readme.blocks(ofPage: page).first { $0.text.hasPrefix("Sources/") })
    var group = ""
    var listed: Set<String> = []
    for line in list.text.split(separator: "\n") {
      guard let name = line.split(separator: " ").first, !line.hasPrefix("   ") else { continue }
      if line.hasPrefix("  ") {
        listed.insert("\(group)/\(name)")
      } else {
        group = String(name)
      }
    }
    let present = try ["Core", "Facades", "Programs", "Workshop"].flatMap { group in
      try FileManager.default.contentsOfDirectory(
        atPath: Readme.root.appending(path: "Sources/\(group)").path
      ).map { "Sources/\(group)/\($0)" }
    }
    #expect(listed == Set(present))
  }

  @Test("have neighbours in the package index: the pages of each documented module")
  func packageIndex() throws {
    let listed = try Readme.text(".spi.yml").split(separator: "\n").map {
      $0.trimmingCharacters(in: .whitespaces)
    }.drop { $0 != "documentation_targets:" }.dropFirst().map { String($0.dropFirst(2)) }
    let documented = try ["Core", "Facades"].flatMap { group in
      let folder = Readme.root.appending(path: "Sources/\(group)").path
      return try FileManager.default.contentsOfDirectory(atPath: folder).filter {
        FileManager.default.fileExists(atPath: "\(folder)/\($0)/\($0).docc")
      }
    }
    #expect(listed.sorted() == documented.sorted())
  }

  @Test(
    "have links that lead to files, and to headings of their page",
    arguments: [
      "README.md", ".github/CHANGELOG.md", ".github/CONTRIBUTING.md", ".github/SECURITY.md",
    ])
  func links(_ page: String) throws {
    let text = try Readme.text(page)
    let headings = text.split(separator: "\n").filter { $0.hasPrefix("## ") }.map { line in
      "#" + line.dropFirst(3).lowercased().replacing(" ", with: "-")
    }
    let targets = text.matches(of: #/\]\(([^)]+)\)/#).map { String($0.output.1) }
    #expect(!targets.isEmpty || page == ".github/CHANGELOG.md")
    let folder = Readme.root.appending(path: page).deletingLastPathComponent()
    for target in targets where !target.hasPrefix("https://") {
      let isThere =
        target.hasPrefix("#")
        ? headings.contains(target)
        : FileManager.default.fileExists(atPath: folder.appending(path: target).path)
      #expect(isThere, "\(target)")
    }
  }

  @Test("have a picture of what the demo does, and of two screens of CinemaTime")
  func pictures() throws {
    let demo = try Session().shell("unset WORMHOLE_CONTAINER; wormhole demo").output
    let stopped = try Self.words(in: "Core/Wormhole/Wormhole.docc/stopped.svg", of: "<text")
    let outcome = try #require(stopped.last)
    #expect(stopped.count > 15 && outcome.hasPrefix("✓ ") && demo.contains(outcome))
    let screens = try FileManager.default.contentsOfDirectory(
      atPath: Readme.root.appending(path: "Fixtures/screens").path
    ).map { try Readme.text("Fixtures/screens/" + $0) }.joined()
    let path = "Facades/WatchConnectivity/WatchConnectivity.docc/cinematime.svg"
    let shown = try Self.words(in: path, of: "textLength")
    #expect(shown.count > 40)
    for words in shown where !screens.contains(words) {
      Issue.record("no screen shows «\(words)»: run .ci/picture")
    }
  }

  /// The text of a picture's elements that have a mark.
  private static func words(in path: String, of mark: String) throws -> [String] {
    try Readme.text("Sources/" + path).split(separator: "\n").filter { $0.contains(mark) }
      .flatMap { $0.matches(of: #/>([^<]+)</text>/#).map { String($0.output.1) } }
      .map { words in
        [("&gt;", ">"), ("&lt;", "<"), ("&amp;", "&")].reduce(words) {
          $0.replacing($1.0, with: $1.1)
        }
      }
  }
}
