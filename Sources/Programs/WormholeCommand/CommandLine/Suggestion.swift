import WormholeTerminals

/// "Did you mean": finds the existing word that a mistyped one resembles, or the command for another
/// program's word.
enum Suggestion {
  /// The nearest other candidate that is near enough, the first of equals.
  ///
  /// The limit is a third of the longer word, and at least one slip: short words resemble each other by
  /// chance.
  static func nearest(to word: String, among candidates: [String]) -> String? {
    var best: (word: String, distance: Int)?
    for candidate in candidates where candidate != word {
      let distance = distance(Array(word.utf8), Array(candidate.utf8))
      let limit = max(1, max(word.utf8.count, candidate.utf8.count) / 3)
      if distance <= limit, distance < best?.distance ?? .max { best = (candidate, distance) }
    }
    return best?.word
  }

  /// `did you mean 'x'? `, or an empty text.
  static func sentence(for word: String, among candidates: [String]) -> String {
    nearest(to: word, among: candidates).map { "did you mean '\($0)'? " } ?? ""
  }

  /// The commands, each with the words that redis-cli, etcdctl, nats, flock, task spooler and
  /// defaults(1) have for it. Of several commands with the same word the first is meant, so a word
  /// may mean more after `queue` than alone.
  static let commands: [(command: String, words: String)] = [
    ("read", "get cat mget show"), ("send", "set put pub publish mset setex write"),
    ("listen", "sub subscribe psubscribe"), ("remove", "rm del delete unlink unset clear"),
    ("ls", "keys list"), ("ls --groups", "groups"),
    ("update NAME --add 1", "incr increment inc incrby"), ("send --if-version none", "setnx"),
    ("update NAME --add -1", "decr decrement dec decrby"),
    ("ls -l", "exists type ttl stat"), ("status", "info endpoint member"),
    ("lock", "flock with-lock"), ("presence enter", "run start supervise"),
    ("monitor", "events top"),
    ("queue put", "push add enqueue lpush rpush ts tsp nq"),
    ("queue take", "pop get dequeue lpop rpop blpop brpop next work"),
    ("queue list --next", "head first peek"), ("queue list", "ls llen lrange"),
    ("queue remove", "rm del delete clear"), ("queue remove --all", "purge"),
    ("log append", "add put write xadd"), ("log read", "cat get history xread xrange"),
    ("log read --follow", "tail follow"),
    ("presence enter", "join"), ("presence list", "ls who"), ("lock --name", "elect"),
    ("notify post", "send pub publish"), ("notify wait", "listen sub subscribe"),
    ("defaults read", "get ls list"), ("defaults write", "set put"),
    ("defaults remove", "rm del unset delete"),
    ("peer request", "req call ask"), ("peer serve", "reply answer"), ("peer transfers", "rm del"),
    ("backup", "save snapshot bgsave"), ("remove --all", "flushall flushdb"),
    ("--version", "version"),
  ]

  /// The words of the command line, after those of `parents`, that mean what another program's word
  /// means; nil for an unknown word.
  static func translation(of word: String, after parents: [String]) -> [String]? {
    for (command, foreign) in commands {
      let words = command.split(separator: " ").map(String.init)
      if words.starts(with: parents), words.count > parents.count,
        foreign.split(separator: " ").contains(word.lowercased()[...])
      {
        return Array(words.dropFirst(parents.count))
      }
    }
    return nil
  }

  /// The words of a command that `help` takes: without options, and what stands for an argument.
  static func commandPath(_ words: [String]) -> [String] {
    Array(words.prefix { $0.first?.isLowercase ?? false })
  }

  /// The options, each with the names that other programs have for it.
  private static let options: [(option: String, words: String)] = [
    ("--expires", "--ttl --ex --px --expire"), ("--timeout", "--wait --deadline --duration"),
    ("--count", "--number --max --limit"), ("--shared", "--read-lock"), ("--exclusive", "-e"),
    ("--nonblock", "--nb --no-wait"), ("--json", "--output-json --format-json"),
    ("--lines", "--stdin"), ("--jobs", "--parallel --max-procs"), ("--at", "--schedule"),
  ]

  /// The option among some that means what another program's option means.
  static func option(for spelling: String, among known: [String]) -> String? {
    options.first {
      $0.words.split(separator: " ").contains(spelling[...]) && known.contains($0.option)
    }?
    .option
  }

  /// The edits that turn `a` into `b`: insertion, deletion, replacement, and the exchange of two
  /// neighbors, the commonest slip of all (optimal string alignment).
  static func distance(_ a: [UInt8], _ b: [UInt8]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...b.count)
    for i in a.indices {
      var row = [i + 1]
      for j in b.indices {
        let replaced = last[j] + (a[i] == b[j] ? 0 : 1)
        var least = min(replaced, last[j + 1] + 1, row[j] + 1)
        if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] {
          least = min(least, beforeLast[j - 1] + 1)
        }
        row.append(least)
      }
      (beforeLast, last) = (last, row)
    }
    return last[b.count]
  }
}

// What a line that does not fit probably means, as a line that can be typed.

extension ArgumentParser {
  func unknownOption(_ spelling: String, _ options: [ArgumentDescription]) -> UsageError {
    if let line = lineWithTail ?? (spelling == "-c" ? lineWithShell : nil) {
      return error("unknown option '\(spelling)': a command goes after '--': \(line)")
    }
    let known = options.map { "--\($0.name)" }
    let similar =
      Suggestion.option(for: spelling, among: known)
      ?? Suggestion.nearest(to: spelling, among: known)
    let question = similar.map { "did you mean '\($0)'?" }
    let hint =
      command.subcommands.isEmpty
      ? "an argument that begins with '-' and is not an option goes after '--'"
      : ownerOfLetter(spelling) ?? "a subcommand's options go after its name"
    return error("unknown option '\(spelling)': \(question ?? hint)")
  }

  /// The hint for an option with one letter that a subcommand has, as flock(1) has -n.
  private func ownerOfLetter(_ spelling: String) -> String? {
    let owner = command.shownSubcommands.first { subcommand in
      subcommand.options.contains { $0.letter.map { spelling == "-\($0)" } ?? false }
    }
    return owner.map {
      "it is an option of '\((path.map(\.name) + [$0.name]).joined(separator: " "))'"
    }
  }

  /// The command line with the `--` that was forgotten before another program's command; nil if the
  /// operands are not more than expected.
  var lineWithTail: String? {
    // A list takes every operand; if a command must follow, it is probably the second.
    guard command.tail != nil, tail == nil,
      isTailNeeded || !command.positionals.contains(where: \.isRepeating),
      operands.count > command.positionals.count
    else { return nil }
    // An optional operand and a command may exclude each other.
    let last = command.positionals.count
    let lines = (max(0, last - 1)...last).reversed().map { index in
      let place = operands[index].place
      return arguments[..<place] + ["--"] + arguments[place...]
    }
    return line(lines.first { isLine($0, path[0]) } ?? lines[0])
  }

  /// The command line with `--suite` before the first operand, a domain in defaults(1); nil if the
  /// command has no suite.
  var lineWithSuite: String? {
    guard command.options.contains(where: { $0.name == "suite" }), let first = operands.first
    else { return nil }
    return line(arguments[..<first.place] + ["--suite"] + arguments[first.place...])
  }

  /// The command line for a `-c`, as shells and flock(1) have it; nil if no command may follow.
  private var lineWithShell: String? {
    guard command.tail != nil, tail == nil else { return nil }
    // flock(1)'s operands may also follow the text.
    return line(
      arguments[..<(next - 1)] + arguments.dropFirst(next + 1) + ["--", "sh", "-c"]
        + arguments[next...].prefix(1))
  }

  /// A command line that can be typed, in quotation marks.
  private func line(_ arguments: some Sequence<String>) -> String {
    "'\(([path[0].name] + arguments.map(\.quotedForShell)).joined(separator: " "))'"
  }

  /// - Parameter isInHelp: whether it was looked up after `help`, where the rest does not matter.
  func unknownSubcommand(
    _ name: String, _ path: [CommandDescription], isInHelp: Bool
  ) -> UsageError {
    let names = path.last?.shownSubcommands.map(\.name) ?? []
    let commandName = path.map(\.name).joined(separator: " ")
    guard !names.isEmpty else {
      return UsageError(reason: "'\(commandName)' has no subcommands, found '\(name)'", path: path)
    }
    let helpful = path.count == 1 ? names + ["help"] : names
    let parents = path.dropFirst().map(\.name)
    let words =
      Suggestion.translation(of: name, after: parents)
      ?? path.last?.owner(of: name).map { [$0.name, name] }
      ?? Suggestion.nearest(to: name, among: helpful).map { [$0] }
    guard let words else {
      let question = "expected one of \(names.joined(separator: ", "))"
      return UsageError(reason: "unknown subcommand '\(name)': \(question)", path: path)
    }
    let whole = arguments[..<(next - 1)] + words + arguments[next...]
    let meant =
      isInHelp
      ? line(["help"] + parents + Suggestion.commandPath(words))
      : isLine(whole, path[0]) ? line(whole) : line(arguments[..<(next - 1)] + words)
    return UsageError(reason: "unknown subcommand '\(name)': did you mean \(meant)?", path: path)
  }
}

extension ArgumentParser {
  /// Whether a line can be typed as it is, with the container from the environment.
  private func isLine(_ arguments: some Sequence<String>, _ root: CommandDescription) -> Bool {
    // The error is for a line that no one has typed.
    (try? Self.parse(arguments.map { Array($0.utf8) }, root: root) {
      $0 == ContainerSelection.directoryVariable ? "/" : nil
    }) != nil
  }
}

extension CommandDescription {
  /// The subcommand that has a subcommand of this name: `queue` for `take`.
  fileprivate func owner(of name: String) -> CommandDescription? {
    shownSubcommands.first { $0.shownSubcommands.contains { $0.name == name } }
  }
}
