import FoundationEssentials
import Testing
import WormholeTerminals
import WormholeTestSupport
import WormholeWorkshop

@testable import WormholeCommand

/// What `help --json` prints.
private struct Listing: Decodable {
  struct Argument: Decodable {
    let name: String
    let help: String
    let letter: String?
    let value: String?
    let values: [String]?
    let standard: String?
    let isRequired: Bool
    let isRepeated: Bool
    let isCommandLine: Bool
  }
  struct Command: Decodable {
    let name: String
    let help: String
    let operands: [Argument]
    let options: [Argument]
  }
  let commands: [Command]
}

@Suite("Help has the layout of swift-argument-parser", .blocking) struct HelpTextTests {
  private let sample = CommandDescription(
    name: "math",
    abstract: "A utility for performing maths.",
    globalOptions: [.flag("hex-output", letter: "x", help: "Use hexadecimal notation.")],
    subcommands: [
      CommandDescription(
        name: "stats", abstract: "Calculate descriptive statistics.",
        discussion: "Every value counts once, and the kinds of average differ where values do.",
        arguments: [
          .list("values", help: "Some values."), .optional("rest", help: ""),
          .value(
            "kind", .choice(["mean", "median"]), named: "kind", standard: "mean",
            help: "The kind of average to provide."),
          .value("a-long-option-name", .count, help: "Explained below its label."),
          .value("exactly-23-col", .count, named: "four", help: "Touches the column."),
          .command(help: "Run it."),
        ])
    ],
    version: "1.0.0")

  /// Written by hand after the example of the documentation of swift-argument-parser,
  /// Examples/math: https://github.com/apple/swift-argument-parser.
  @Test("A command with subcommands")
  func root() {
    let expected = """
      OVERVIEW: A utility for performing maths.

      USAGE: math [--hex-output] <subcommand>

      OPTIONS:
        -x, --hex-output        Use hexadecimal notation.
        --generate-completion-script <shell>
                                Print a completion script for a shell. (values: bash,
                                zsh, fish)
        --generate-manual-page <page>
                                Print a manual page for man(1): 1 is of the program,
                                the name of a command is of that, and 5 explains the
                                files of a container.
        --version               Show the version.
        -h, --help              Show help information.

      SUBCOMMANDS:
        stats                   Calculate descriptive statistics.

        See 'math help <subcommand>' for detailed help.

      """
    #expect(HelpText(path: [sample], columns: 80).rendered == expected)
  }

  @Test("A command with arguments, options and another command at its end")
  func leaf() {
    let expected = """
      OVERVIEW: Calculate descriptive statistics.

      Every value counts once, and the kinds of average differ where values do.

      USAGE: math stats [--kind <kind>] [--a-long-option-name <n>]
             [--exactly-23-col <four>] [--hex-output] <values> ... [<rest>]
             -- <command> ...

      ARGUMENTS:
        <values>                Some values.
        <rest>
        <command>               Run it.

      OPTIONS:
        --kind <kind>           The kind of average to provide. (values: mean, median;
                                default: mean)
        --a-long-option-name <n>
                                Explained below its label.
        --exactly-23-col <four> Touches the column.
        -x, --hex-output        Use hexadecimal notation.
        -h, --help              Show help information.

      """
    #expect(HelpText(path: [sample, sample.subcommands[0]], columns: 80).rendered == expected)
  }

  private func listed(_ line: String) throws -> [Listing.Command] {
    let text = try Session().shell(line).output
    return try JSONDecoder().decode(Listing.self, from: Data(text.utf8)).commands
  }

  @Test("For tools, help --json lists each command with its operands and options")
  func listing() throws {
    let all = try listed("wormhole help --json")
    let names = all.map(\.name)
    #expect(names == CommandDescription.root.paths().map { $0.map(\.name).joined(separator: " ") })
    #expect(names.contains("wormhole queue put") && Set(names).count == names.count)
    #expect(all.allSatisfy { !$0.help.isEmpty && $0.options.contains { $0.name == "--help" } })
    let claim = try #require(all.first { $0.name == "wormhole claim" })
    #expect(claim.operands.map(\.name) == ["name"] && claim.operands[0].isRequired == false)
    let time = try #require(claim.options.first { $0.name == "--for" })
    #expect(time.value == "duration" && time.standard == "30m" && time.letter == nil)
    let export = try #require(all.first { $0.name == "wormhole defaults export" })
    let format = try #require(export.options.first { $0.name == "--format" })
    #expect(format.values == ["plist", "binary", "json"] && !format.isRepeated)
    let lock = try #require(all.first { $0.name == "wormhole lock" })
    #expect(lock.operands.last?.isCommandLine == true)
    let below = try listed("wormhole help queue --json").map(\.name)
    #expect(below == names.filter { $0 == "wormhole queue" || $0.hasPrefix("wormhole queue ") })
  }

  @Test("The first help has 12 lines, and 'wormhole' alone fits 24; the rest is in help --all")
  func first() throws {
    let help = try Session().shell("wormhole help; wormhole help --all; wormhole help recipes")
    let root = HelpText(path: [.root], columns: 80)
    #expect(root.short.split(separator: "\n", omittingEmptySubsequences: false).count == 13)
    #expect(help.output == root.short + root.rendered + CommandExamples.recipes)
    let bare = try Session().shell("wormhole")
    #expect(bare.status == 64 && bare.errors.contains(root.short))
    #expect(bare.errors.split(separator: "\n", omittingEmptySubsequences: false).count <= 24)
  }

  @Test(
    "No line of any help is wider than 80 columns or ends in a space, and the short one fits 30 lines"
  )
  func width() {
    for path in CommandDescription.root.paths() {
      let help = HelpText(path: path, columns: 80)
      let short = help.short.split(separator: "\n", omittingEmptySubsequences: false)
      #expect(short.count <= 31, "\(help.short)")
      for line in help.rendered.split(separator: "\n") + short {
        #expect(line.count <= 80 && line.last != " ", "\(line)")
      }
    }
  }

  @Test("An option that several commands have means the same for each, as the glossary says")
  func vocabulary() throws {
    var forms: [String: Set<String>] = [:]
    var users: [String: Int] = [:]
    for path in CommandDescription.root.paths() {
      for option in path.last?.shownOptions ?? [] {
        forms[option.name, default: []].insert(option.spelling)
        users[option.name, default: 0] += 1
      }
    }
    for option in CommandDescription.globalOptions(at: [.root]) {
      forms[option.name] = [option.spelling]
      users[option.name] = 2
    }
    let page = try Readme.text("Sources/Core/Wormhole/Wormhole.docc/Glossary.md")
    let listed = page.matches(of: /`(--[^`]+)`/).map { String($0.output.1) }
    let shared = forms.filter { (users[$0.key] ?? 0) > 1 }.values.flatMap(\.self)
      .map { $0.filter { !"<>".contains($0) } }
    #expect(Set(shared) == Set(listed) && listed.count == Set(listed).count)
  }

  @Test("The commands below the root are at most 50")
  func commands() {
    let leaves = CommandDescription.root.paths().compactMap(\.last).filter { $0.run != nil }
    #expect(leaves.count <= 50, "\(leaves.map(\.name))")
  }

  @Test("Every command and argument is explained by a sentence")
  func sentences() {
    for path in CommandDescription.root.paths() {
      #expect(path.last?.abstract.last == ".")
      let helps =
        CommandDescription.options(at: path).map(\.help)
        + (path.last?.positionals.map(\.help) ?? [])
      for help in helps { #expect(help.last == ".", "\(help)") }
    }
  }

  @Test("Only the last positional repeats, and no required one follows an optional one")
  func positionals() {
    for command in CommandDescription.root.paths().compactMap(\.last) {
      #expect(!command.positionals.dropLast().contains { $0.isRepeating })
      let optional = command.positionals.drop { !$0.isOptional }
      #expect(optional.allSatisfy { $0.isOptional })
      let names = command.positionals.map(\.name) + command.options.map(\.name)
      #expect(Set(names).count == names.count)
    }
  }

  @Test("Wrapped lines keep their words, and a word longer than a line is split")
  func wrapping() {
    #expect(TextWrapping.wrap("aa bb cc", columns: 5, indent: 2) == "aa bb\n  cc")
    #expect(TextWrapping.wrap("aa bb cc", columns: 8, indent: 2) == "aa bb cc")
    #expect(TextWrapping.wrap("aa bb", columns: 5, indent: 1, firstIndent: 1) == "aa\n bb")
    #expect(TextWrapping.wrap("abcdefgh ij", columns: 4, indent: 1) == "abcd\n efg\n h\n ij")
    #expect(
      TextWrapping.wrap("ab cdefgh", columns: 4, indent: 1, firstIndent: 1) == "ab\n cde\n fgh")
    #expect(TextWrapping.wrap("ab", columns: 0, indent: 1) == "a\n b")
    #expect(TextWrapping.wrap("a\n\nb", columns: 9, indent: 1) == "a\n\n b")
  }
}
