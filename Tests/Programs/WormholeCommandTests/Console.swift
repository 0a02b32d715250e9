import Foundation
import Testing
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

/// A player for the documentation's consoles: the input of one shell or two, and the expected output.
///
/// A page has them as blocks (`ConsolePage`); a text is
///
/// ```
/// $ the input                   # in the first shell; in the second; in both shells
/// the output: … stands for anything, a number of a process or of seconds for any number
/// ```
///
/// A line after … may have come before the line above …, because two events have no order.
///
/// A command of the first shell may continue while the second is used, and its input stands between
/// its output. A command of the second shell ends before the next one, with status 0.
final class Console {
  struct Entry {
    let shell: Int
    /// What is typed; nil for what the program that runs in the shell prints next.
    let command: String?
    var lines: [Substring] = []
    /// Other lines may precede the next of these.
    var mayHaveMore = false
    /// The other lines since the last input.
    var others: [String] = []

    /// A command of the first shell that is no mere setting.
    var staysOpen: Bool {
      guard let command else { return false }
      let isSetting = command.split(separator: "\n").allSatisfy { $0.hasPrefix("export ") }
      return shell == 0 && !isSetting || command.contains("ROLE=")
        || command.contains("cinematime")
    }
    /// A command that only reads may be repeated, because the expected state may be about to come.
    var isLook: Bool {
      let command = command ?? ""
      return !command.dropLast().contains("\n")
        && ["status", "doctor", "peer list", "outstanding"].contains { command.contains($0) }
    }
    /// Returns whether a line is input for the demo's two sides.
    func isTyped(_ line: Substring) -> Bool {
      command?.contains("cinematime") == true && line.split(separator: " ").count <= 2
        && ["buy", "tickets", "state"].contains { line.hasPrefix($0) }
    }
  }

  private let shells: [LineProcess]
  /// What the open commands of each shell have printed.
  private var printed: [[String]] = [[], []]
  private let deadline = ContinuousClock.now + .seconds(240)
  private static let end = "-- the status was "
  private static let failed = "-- failed with "

  /// - Parameter directory: The first directory of both shells; everything below it may be changed.
  init(in directory: String) throws {
    let built = try BuiltProgram.asBuilt("")
    // The package is built already.
    try makeDirectory(directory + "/bin")
    try ItemText.write(
      """
      #!/bin/sh
      case $1 in
        run) shift; program=$1; shift; exec '\(built)'"$program" "$@" ;;
        build)
          [ "$2" != --show-bin-path ] || exec echo '\(built)'
          place=.build/static/release; mkdir -p $place; exec cp '\(built)'wormhole $place/ ;;
      esac
      exit 64

      """,
      to: directory + "/bin/swift")
    try FileDescriptor.open(directory + "/bin/swift", .readOnly).setPermissions(0o755)
    let environment = [
      "PATH=\(directory)/bin:\(try BuiltProgram.searchPath()):\(Program.environment("PATH") ?? "/usr/bin:/bin")",
      "HOME=\(directory)", "XDG_DATA_HOME=\(directory)/data", "TMPDIR=\(directory)",
      "LC_ALL=C.UTF-8", "WORMHOLE_GROUP=group.com.example.cinema",
    ]
    // timeout(1) ends everything that a shell has started; at a terminal, output comes line by
    // line. Unlike others, bash takes no more of its input than the command that it reads.
    shells = try (0..<2).map { _ in
      let shell = try LineProcess(
        "timeout", ["-k", "5", "250", "stdbuf", "-oL", "bash"], environment: environment)
      try shell.tell("cd '\(directory)'")
      try shell.tell("trap 'echo \"\(Self.failed)$?: $BASH_COMMAND\"' ERR")
      return shell
    }
  }

  /// Ends both shells and the programs that they have started.
  func close() throws {
    for shell in shells {
      try shell.send(.terminate)
      _ = try shell.wait(until: soon)
    }
  }

  func play(_ text: String, _ place: String) throws {
    try play(Self.entries(text), place)
  }

  func play(_ entries: [Entry], _ place: String) throws {
    var open: [Entry] = []
    for (entry, next) in zip(entries, entries.dropFirst().map(Optional.some) + [nil]) {
      guard let command = entry.command else {
        let running = try #require(open.lastIndex { $0.shell == entry.shell }, "\(place)")
        open[running].lines += entry.lines
        while !open[running].lines.isEmpty {
          try advance(&open[running], place, until: deadline)
        }
        continue
      }
      guard entry.staysOpen else {
        try run(entry, place)
        continue
      }
      try shells[entry.shell].tell(command)
      var entry = entry
      // The first output of two open commands may depend on both.
      let isAlone = next?.staysOpen != true || entry.lines.contains(where: entry.isTyped)
      let begin = entry.lines.firstIndex(where: entry.isTyped) ?? 0
      let seen = entry.lines[begin...].firstIndex { !entry.isTyped($0) && $0 != "…" }
      let left = entry.lines.count - (seen ?? -1) - 1
      while isAlone, entry.lines.count > left { try advance(&entry, place, until: deadline) }
      open.append(entry)
    }
    while open.contains(where: { !$0.lines.isEmpty }) {
      guard ContinuousClock.now < deadline else {
        throw NeverHappened(what: "\(place): \(open.map { $0.lines.prefix(1) }) is seen")
      }
      for index in open.indices where !open[index].lines.isEmpty {
        try advance(&open[index], place, until: .now + .milliseconds(20))
      }
    }
  }

  /// Types an entry's next line, or waits for it.
  private func advance(
    _ entry: inout Entry, _ place: String, until limit: ContinuousClock.Instant
  ) throws {
    guard let line = entry.lines.first else { return }
    if entry.isTyped(line) {
      try shells[entry.shell].tell(String(line))
      entry.others = []
    } else if line == "…" {
      entry.mayHaveMore = true
    } else if entry.mayHaveMore,
      let other = try entry.others.firstIndex(where: { try Self.matches($0, String(line)) })
    {
      entry.others.remove(at: other)
      entry.mayHaveMore = false
    } else {
      let seen: String
      do {
        seen = try shells[entry.shell].line(until: limit)
      } catch let error as LineProcess.Failure {
        guard limit < deadline else {
          throw NeverHappened(what: "\(place): «\(line)» (\(error)), but \(printed)")
        }
        return
      }
      printed[entry.shell].append(seen)
      if entry.mayHaveMore, try !Self.matches(seen, String(line)) {
        entry.others.append(seen)
        return
      }
      entry.mayHaveMore = false
      try #require(
        try Self.matches(seen, String(line)),
        "\(place): \(entry.command ?? ""): «\(seen)», not «\(line)»"
      )
    }
    entry.lines.removeFirst()
  }

  /// Types a command, and waits for its end.
  private func run(_ entry: Entry, _ place: String) throws {
    let shell = shells[entry.shell]
    while true {
      try shell.tell(entry.command ?? "")
      try shell.tell("echo \"\(Self.end)$?\"")
      var seen: [String] = []
      while seen.last?.hasPrefix(Self.end) != true { seen.append(try shell.line(until: deadline)) }
      // A look may end with another status than 0, and its output says why.
      if entry.isLook { seen.removeAll { $0.hasPrefix(Self.failed) } }
      let status = seen.removeLast().dropFirst(Self.end.count)
      let isAsShown =
        try Self.matches(
          seen.joined(separator: " "), entry.lines.joined(separator: " "))
      if isAsShown, status == "0" || entry.isLook { return }
      if entry.isLook, ContinuousClock.now + .seconds(60) < deadline {
        pauseThread(.milliseconds(50))
        continue
      }
      Issue.record(
        "\(place): \(entry.command ?? ""): status \(status), \(seen), not \(entry.lines)")
      return
    }
  }

  private static func entries(_ text: String) -> [Entry] {
    var entries: [Entry] = []
    var shell = 1
    for line in text.split(separator: "\n") {
      guard line.hasPrefix("$ ") else {
        if let last = entries.indices.last { entries[last].lines.append(line) }
        continue
      }
      let command = String(line.dropFirst(2))
      if command.contains("# in both shells") { entries.append(Entry(shell: 0, command: command)) }
      if command.contains("# in the first shell") { shell = 0 }
      if command.contains("# in the second") || command.contains("# in both shells") { shell = 1 }
      entries.append(Entry(shell: shell, command: command))
    }
    return entries
  }

  /// Words are compared, because line breaks may depend on the length of a number.
  private static func matches(_ seen: String, _ shown: String) throws -> Bool {
    let words = shown.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    var pattern = NSRegularExpression.escapedPattern(for: words)
      .replacing(" … ", with: "( | .* )").replacing("…", with: ".*")
    for before in ["process ", "held for ", "CONT "] {
      pattern = pattern.replacing(
        try Regex(NSRegularExpression.escapedPattern(for: before) + "[0-9]+((\\\\)?[.][0-9]+)?"),
        with: before + "[0-9.]+")
    }
    return try Regex(pattern).wholeMatch(
      in: seen.split(whereSeparator: \.isWhitespace).joined(separator: " ")) != nil
  }
}
