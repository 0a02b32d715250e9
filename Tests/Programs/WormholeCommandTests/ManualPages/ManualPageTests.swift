import Testing
import WormholeTestSupport

@testable import WormholeCommand

@Suite("The manual pages", .blocking)
struct ManualPageTests {
  private static let names =
    ManualSection.allCases.map(\.rawValue) + CommandDescription.root.shownSubcommands.map(\.name)

  private func page(_ name: String) throws -> String {
    try #require(CommandManual(root: .root).page(named: name))
  }

  /// The text of a page as a terminal shows it; nil where there is no man(1).
  private func shown(_ name: String, columns: Int) throws -> String? {
    let page = try page(name)
    let result = try ForeignProgram.run(
      "env", ["MANWIDTH=\(columns)", "LC_ALL=C.UTF-8", "man", "-l", "-"], input: page)
    // Without man, env ends with 127.
    guard let result, result.status != 127 else {
      print("skipped: man is not installed")
      return nil
    }
    #expect(result.status == 0)
    return result.output
  }

  @Test("are correct for groff", arguments: names)
  func warnings(_ name: String) throws {
    let result = try ForeignProgram.run(
      "sh", ["-c", "groff -ww -man -Tutf8 -K utf8 2>&1 >/dev/null"], input: page(name))
    guard let result, result.status != 127 else {
      print("skipped: groff is not installed")
      return
    }
    #expect(result.status == 0)
    #expect(result.output == "")
  }

  @Test("have every command and option, the same sentences as the help, and the examples")
  func command() throws {
    for command in CommandDescription.root.shownSubcommands {
      guard let text = try shown(command.name, columns: 20_000) else { return }
      #expect(text.contains("wormhole-\(command.name) - "))
      for heading in ["SYNOPSIS", "DESCRIPTION", "EXAMPLES", "SEE ALSO"] {
        #expect(text.contains("\n\(heading)\n"))
      }
      for path in command.paths(below: [.root]) { try compare(text, with: path) }
    }
  }

  private func compare(_ text: String, with path: [CommandDescription]) throws {
    guard let command = path.last, command.run != nil else { return }
    let names = path.dropFirst().map(\.name)
    if names.count > 1 { #expect(text.contains("   " + names.joined(separator: " ") + "\n")) }
    #expect(text.contains(command.abstract))
    for option in command.shownOptions {
      #expect(text.contains("--" + option.name))
      #expect(text.contains(option.help))
    }
    for positional in command.positionals { #expect(text.contains(positional.help)) }
    for line in command.discussion.split(separator: "\n") {
      #expect(text.contains(line.split(separator: " ").joined(separator: " ")), "\(line)")
    }
    for line in CommandExamples.lines(of: path) { #expect(text.contains(line), "\(line)") }
  }

  @Test("list the commands in that of the program, which shows the recipes")
  func program() throws {
    guard let text = try shown("1", columns: 20_000) else { return }
    for command in CommandDescription.root.shownSubcommands {
      #expect(text.contains("wormhole-\(command.name)(1)") && text.contains(command.abstract))
    }
    #expect(!text.contains("wormhole-complete") && text.contains("wormhole doctor\n"))
    #expect(try page("1").split(separator: "\n").count < 300)
  }

  @Test("describe the format on disk as the article does")
  func format() throws {
    guard let text = try shown("5", columns: 20_000) else { return }
    #expect(text.contains("wormhole-format - the files of a container on disk"))
    for expected in [
      "values/<name>/value.plist             exactly the user's property list, no envelope\n",
      "   8 + 4  the publication before an unbroken run", "The loss of power\n",
      "2.  Presence has the locks",
    ] {
      #expect(text.contains(expected), "\(expected)")
    }
    // Nothing of the article's markup is left.
    for mark in ["```", "<doc:", "|---", "**", "## "] { #expect(!text.contains(mark), "\(mark)") }
  }

  @Test("show markup, and nothing that the formatter could take for its own")
  func markup() {
    let page = ArticleManual(
      name: "x-format", summary: "s", source: "x 1", seeAlso: "x(1)",
      markdown: """
        # Title

        ## A \"heading\"
        .dot at the \\start of `a-b` and *em* * no em*
        [link](to/there), <doc:Page>.
        - one
          more
        - two

        | a | b | c |
        |---|---|---|
        | `x\\|y` | 1 | |
        | .z | – | 2 |
        | alone | | |

        ```
        .code 'x'
        ```
        """
    ).page
    let body = page.split(separator: ".SH \"DESCRIPTION\"\n").last ?? ""
    #expect(
      body == """
        .SH "A \\(dqheading\\(dq"
        .PP
        \\&.dot at the \\estart of \\fBa\\-b\\fP and \\fIem\\fP * no em* link, \\fIPage\\fP.
        .IP "\\(bu" 4
        one more
        .IP "\\(bu" 4
        two
        .TP
        \\fBx|y\\fP
        \\fIb:\\fP 1
        .TP
        \\&.z
        \\fIc:\\fP 2
        .TP
        alone
        \\&
        .PP
        .nf
        \\&.code \\(aqx\\(aq
        .fi
        .SH "SEE ALSO"
        x(1)

        """)
  }
}

@Suite("The program has two names", .blocking)
struct ProgramNameTests {
  @Test("and answers by the one that it was called by")
  func names() throws {
    let outcome = try Session().shell(
      """
      mkdir bin && ln -s "$(command -v wormhole)" bin/wormholectl && ln -s "$(command -v wormhole)" bin/other
      bin/wormholectl read absent; bin/other read absent
      bin/wormholectl read; bin/wormholectl snd
      bin/wormholectl --generate-completion-script bash | tail -1
      bin/wormholectl --generate-manual-page 1 | head -1 | sed 's/l [0-9][^"]*/l VERSION/'
      bin/wormholectl help lock | grep USAGE
      bin/wormholectl send a 1; printf garbage >"$C/values/a/value.plist"
      bin/wormholectl doctor | grep -o 'wormhole[a-z]* --container .* --quarantine' | sed 's/ .* / /'
      """)
    let expected = """
      complete -F _wormholectl wormholectl
      .TH "WORMHOLECTL" 1 "" "wormholectl VERSION" "User Commands"
      USAGE: wormholectl lock [<options>] [<file>] -- <command> ...
      wormholectl --quarantine

      """
    #expect(outcome.output == expected, "\(outcome.errors)")
    #expect(outcome.errors.contains("wormholectl: cannot read \"absent\""))
    #expect(outcome.errors.contains("wormhole: cannot read \"absent\""))
    #expect(outcome.errors.contains("Usage: wormholectl read"))
  }

  @Test("which is the last part of the first word, and the standard one for any other")
  func words() {
    for (word, name) in [
      ("wormhole", "wormhole"), ("wormholectl", "wormholectl"), ("/a/wormholectl", "wormholectl"),
      ("./wormhole", "wormhole"), ("", "wormhole"), ("/", "wormhole"), ("xwormholectl", "wormhole"),
    ] {
      #expect(ProgramName.name(in: Array(word.utf8)) == name, "\(word)")
    }
  }
}
