import GroupDefaults
import Wormhole
import WormholePeers

/// The words that fit at the cursor of an unfinished line: the shells' scripts ask for them.
struct Completion {
  /// How the shell is to complete a word.
  enum Offer {
    case words([(word: String, explanation: String)])
    case names(LiveNames)
    case files
    case directories
    /// The programs that the shell finds.
    case commands

    static let nothing = words([])

    init(_ kind: ValueKind) {
      self =
        switch kind {
        case .choice(let values), .choices(let values): .words(values.map { ($0, "") })
        case .directory: .directories
        case .file: .files
        case .live(let names): .names(names)
        case .text, .identifier, .count, .duration, .time, .unsigned, .assignment: .nothing
        }
    }
  }

  private var path: [CommandDescription]
  /// The option whose value is the next word.
  private var option: ArgumentDescription?
  private var operands = 0
  private var asksForHelp = false
  /// The number of words after `--`; nil without it.
  private var tailWords: Int?
  /// The values of options by name; some of them choose the names that are offered.
  private(set) var values: [String: String] = [:]
  private let current: String

  /// - Parameter words: those after the program's name, up to the one at the cursor.
  init(_ words: [String], root: CommandDescription) {
    path = [root]
    current = words.last ?? ""
    for word in words.dropLast() { read(word) }
  }

  private var command: CommandDescription { path[path.count - 1] }

  private func parts(_ word: String) -> (option: ArgumentDescription?, value: String?) {
    let (spelling, value) = ArgumentParser.split(word)
    let options = CommandDescription.options(at: path)
    return (options.first { "--\($0.name)" == spelling && $0.kind != nil }, value)
  }

  private mutating func read(_ word: String) {
    if let count = tailWords {
      // A name that begins with a dash, or the `--` after it, is before the command.
      tailWords = count == 0 && word.hasPrefix("-") ? 0 : count + 1
    } else if let option {
      // bash makes a word of it.
      if word == "=" { return }
      values[option.name] = word
      self.option = nil
    } else if word == "--" {
      tailWords = 0
    } else if path.count == 1, word == "help" {
      asksForHelp = true
    } else if case (let option?, let value) = parts(word) {
      if let value { values[option.name] = value } else { self.option = option }
    } else if let subcommand = command.subcommand(named: word), !subcommand.isHidden {
      path.append(subcommand)
    } else if !word.hasPrefix("-") || word == "-" {
      operands += 1
    }
  }

  /// The words that fit in place of the last word, whatever it begins with.
  var offer: Offer {
    if let tailWords { return command.tail == nil ? .nothing : tailWords == 0 ? .commands : .files }
    let (named, value) = parts(current)
    if let option = option ?? (value == nil ? nil : named), let kind = option.kind {
      return Offer(kind)
    }
    let positionals = command.positionals
    if current.hasPrefix("-"), !asksForHelp {
      return .words(
        CommandDescription.shownOptions(at: path).map { ("--\($0.name)", $0.help) }
          + positionals.flatMap(\.markers).map { ($0, "") })
    }
    let subcommands = command.shownSubcommands.map { ($0.name, $0.abstract) }
    guard subcommands.isEmpty else {
      return .words(subcommands + (path.count == 1 ? [("help", "Show help information.")] : []))
    }
    guard !asksForHelp, let last = positionals.last,
      operands < positionals.count || last.isRepeating
    else { return .nothing }
    return Offer((operands < positionals.count ? positionals[operands] : last).kind ?? .text)
  }
}

extension CommandDescription {
  /// The command that the completion scripts call. It makes nothing, reports nothing, and never
  /// keeps a shell waiting.
  static let complete: CommandDescription = CommandDescription(
    name: "complete",
    abstract: "Print what may stand at the end of a command line, for completion.",
    arguments: [.command("words", help: "The words of the line up to the cursor.")],
    needsContainer: false, isHidden: true
  ) { arguments, environment in
    environment.answers?.endSilently(after: .milliseconds(500))
    let completion = Completion(arguments.tail ?? [], root: .root)
    switch completion.offer {
    case .files, .directories, .commands: try environment.print(line: "\(completion.offer)")
    case .words(let words): try environment.print(words: words)
    case .names(let kind):
      do {
        // Two containers are none: the names of groups need none.
        let name = try? ContainerSelection.Name.chosen(
          option: { completion.values[$0] }, variable: environment.variable)
        let container = try name.map { ContainerSelection($0) }?.existing()
        var unreported = NameFaults()
        let names = try kind.names(
          in: container, &unreported, suite: completion.values["suite"])
        // A shell cannot complete a word with several lines.
        try environment.print(words: names.filter { $0 == $0.onOneLine }.map { ($0, "") })
      } catch let status as ExitStatus {
        throw status
      } catch {
        // While the user types, an error would only disturb: the command itself reports it.
        throw ExitStatus.no
      }
    }
  }
}

extension CommandEnvironment {
  fileprivate func print(words: [(word: String, explanation: String)]) throws {
    let lines = words.map { word, explanation in
      explanation.isEmpty ? word : word + "\t" + explanation.replacing("\n", with: " ")
    }
    try print((["words"] + lines).map { $0 + "\n" }.joined())
  }
}
