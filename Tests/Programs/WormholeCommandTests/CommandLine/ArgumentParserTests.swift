import Testing
import WormholeTestSupport

@testable import WormholeCommand

@Suite("The command line means what its description says", .blocking) struct ArgumentParserTests {
  private let line = Invocations()

  @Test("Options and positionals mix, and both ways of giving a value are the same")
  func options() throws {
    for parsed in [
      try line.arguments("listen", "a", "--count", "3", "b", "--timeout=1.5", "--current"),
      try line.arguments("listen", "--current", "--count=3", "--timeout", "1.5", "a", "b"),
    ] {
      #expect(parsed.commandPath == ["listen"])
      #expect(parsed.texts("identifier") == ["a", "b"])
      #expect(parsed.count("count") == 3)
      #expect(parsed.seconds("timeout") == .milliseconds(1500))
      #expect(parsed.has("current"))
      #expect(parsed.outputFormat == .json)
      #expect(parsed.tail == nil)
    }
    #expect(try line.arguments("read", "a", "--format=binary").outputFormat == .binary)
    #expect(try line.arguments("listen", "a", "--count", "3", "--count", "4").count("count") == 4)
    #expect(try line.arguments("listen", "a").count("count") == nil)
    #expect(try line.arguments("send", "a", "--durable").has("durable"))
    #expect(try line.arguments("send", "a").has("durable") == false)
  }

  @Test("An option with a letter takes its value from the next word or from the same one")
  func letters() throws {
    for parsed in [
      try line.arguments("lock", "f", "-w", "5", "-s", "--", "true"),
      try line.arguments("lock", "-w5", "-s", "f", "--", "true"),
      try line.arguments("lock", "--timeout=5", "--shared", "f", "--", "true"),
    ] {
      #expect(parsed.seconds("timeout") == .seconds(5))
      #expect(parsed.has("shared"))
      #expect(parsed.tail == ["true"])
    }
    #expect(line.refusal("lock", "-s5", "f", "--", "true")?.contains("'-s5'") == true)
  }

  @Test("A dash alone, negative numbers and the empty value are values, not options")
  func valuesThatLookLikeOptions() throws {
    #expect(try line.arguments("send", "a", "-").text("value") == "-")
    #expect(try line.arguments("send", "a").text("value") == nil)
    #expect(try line.arguments("send", "a", "").text("value") == "")
    for number in ["-1", "-0.5", "-.5", "-1e3"] {
      #expect(try line.arguments("send", "a", number).text("value") == number)
    }
    #expect(line.refusal("send", "a", "-x")?.contains("unknown option '-x'") == true)
    #expect(line.refusal("send", "a", "-1x")?.contains("unknown option '-1x'") == true)
    #expect(line.refusal("send", "a", "---")?.contains("unknown option '---'") == true)
  }

  @Test("After -- nothing is an option")
  func terminator() throws {
    let parsed = try line.arguments("send", "--durable", "--", "--help", "-x")
    #expect(parsed.requiredText("identifier") == "--help")
    #expect(parsed.text("value") == "-x")
    #expect(try line.arguments("send", "--", "a", "--").text("value") == "--")
  }

  @Test("The words after -- are another program's command line where one is expected")
  func tail() throws {
    let update = try line.arguments("update", "a", "--", "grep", "--help", "--", "-x")
    #expect(update.tail == ["grep", "--help", "--", "-x"])
    #expect(update.requiredText("identifier") == "a")
    #expect(try line.arguments("listen", "a", "--", "cat").tail == ["cat"])
    #expect(line.refusal("update", "a")?.contains("-- <command>") == true)
    #expect(line.refusal("update", "a", "--")?.contains("<command>") == true)
    #expect(line.refusal("listen", "a", "--")?.contains("<command>") == true)
    #expect(line.refusal("listen", "--", "cat")?.contains("<identifier>") == true)
  }

  @Test("Subcommands nest")
  func nesting() throws {
    let post = try line.arguments("notify", "post", "a", "b")
    #expect(post.commandPath == ["notify", "post"])
    #expect(post.texts("name") == ["a", "b"])
    let set = try line.arguments("notify", "set", "a", "18446744073709551615")
    #expect(set.unsigned("number") == .max)
    #expect(line.refusal("notify") == "missing subcommand")
    #expect(line.refusal() == "missing subcommand")
    #expect(line.refusal("notify", "set", "a", "-1")?.contains("whole number from 0") == true)
    #expect(line.refusal("notify", "set", "a", "18446744073709551616") != nil)
  }

  @Test(
    "A mistyped word gets the probably intended one as a suggestion",
    arguments: [
      (["snd", "a"], "unknown subcommand 'snd': did you mean 'send'?"),
      (["lsiten"], "unknown subcommand 'lsiten': did you mean 'listen'?"),
      (["hlep"], "unknown subcommand 'hlep': did you mean 'help'?"),
      (["notify", "psot"], "unknown subcommand 'psot': did you mean 'post'?"),
      (["help", "notify", "wiat"], "unknown subcommand 'wiat': did you mean 'wait'?"),
      (["get", "a"], "unknown subcommand 'get': did you mean 'read'?"),
      (["set", "a", "1"], "unknown subcommand 'set': did you mean 'send'?"),
      (["version"], "unknown subcommand 'version': did you mean '--version'?"),
      (["queue", "pop", "q"], "unknown subcommand 'pop': did you mean 'take'?"),
      (["presence", "ls"], "unknown subcommand 'ls': did you mean 'list'?"),
      (["listen", "--cuont=3"], "unknown option '--cuont': did you mean '--count'?"),
      (
        ["--format", "plist", "read", "a"],
        "unknown option '--format': a subcommand's options go after its name"
      ),
      (["listen", "--gruop", "x"], "unknown option '--gruop': did you mean '--group'?"),
      (
        ["read", "a", "--format", "jsno"],
        "the value 'jsno' is invalid for '--format <format>': did you mean 'json'? "
          + "please provide one of 'json', 'plist', 'binary'"
      ),
    ])
  func suggestions(arguments: [String], reason: String) {
    #expect(throws: UsageError.self) { try line.parse(arguments) }
    do {
      _ = try line.parse(arguments)
    } catch {
      #expect(error.reason == reason)
    }
  }

  @Test("A word that resembles nothing gets no guess")
  func noSuggestion() {
    #expect(line.refusal("frobnicate")?.contains("did you mean") == false)
    #expect(line.refusal("frobnicate")?.contains("send, read, listen") == true)
    #expect(line.refusal("read", "--frobnicate")?.contains("did you mean") == false)
    #expect(line.refusal("help", "send", "x") == "'wormhole send' has no subcommands, found 'x'")
  }

  @Test(
    "Missing, surplus and malformed arguments are refused by name",
    arguments: [
      (["read"], "missing expected argument '<identifier>'"),
      (["read", "a", "b"], "unexpected argument 'b'"),
      (["read", "a", "b", "c"], "2 unexpected arguments: 'b', 'c'"),
      (["status", "a"], "unexpected argument 'a'"),
      (["read", ""], "the value '' is invalid for '<identifier>': it must not be empty"),
      (["listen", "a", ""], "the value '' is invalid for '<identifier>': it must not be empty"),
      (["notify", "post", ""], "the value '' is invalid for '<name>': it must not be empty"),
      (["listen", "a", "--count"], "missing value for '--count <n>'"),
      (["listen", "a", "--count", "--current"], "missing value for '--count <n>'"),
      (["listen", "a", "--count", "--", "cat"], "missing value for '--count <n>'"),
      (["send", "a", "--durable=1"], "the flag '--durable' takes no value, found '1'"),
    ])
  func mistakes(arguments: [String], reason: String) {
    #expect(throws: UsageError.self) { try line.parse(arguments) }
    do {
      _ = try line.parse(arguments)
    } catch {
      #expect(error.reason == reason)
    }
  }

  @Test("Counts and times outside their range are refused")
  func ranges() throws {
    for text in ["0", "-1", "1.5", "x", "", "+1", "９", "99999999999999999999"] {
      #expect(line.refusal("listen", "a", "--count=\(text)")?.contains("--count") == true)
    }
    for text in ["-1", "nan", "inf", "0x10", "1e3", "", ".", "1000000001", "1.2.3"] {
      #expect(line.refusal("listen", "a", "--timeout=\(text)")?.contains("--timeout") == true)
    }
    #expect(try line.arguments("listen", "a", "--timeout=0").seconds("timeout") == .zero)
    #expect(try line.arguments("listen", "a", "--timeout=1000000000").seconds("timeout") != nil)
  }

  @Test("clear takes identifiers or --all, and not both")
  func clear() throws {
    #expect(try line.arguments("clear", "a", "b").texts("identifier") == ["a", "b"])
    #expect(try line.arguments("clear", "--all").has("all"))
    #expect(line.refusal("clear", "--all", "a")?.contains("exclude") == true)
    #expect(line.refusal("clear")?.contains("<identifier>") == true)
  }

  @Test("Help, version and scripts can be requested anywhere before a mistake")
  func early() throws {
    func helpPath(_ arguments: String...) throws -> [String]? {
      guard case .help(let path) = try line.parse(arguments) else { return nil }
      return path.map(\.name)
    }
    #expect(try helpPath("--help") == ["wormhole"])
    #expect(try helpPath("help") == ["wormhole"])
    #expect(try helpPath("-h") == ["wormhole"])
    #expect(try helpPath("send", "--help") == ["wormhole", "send"])
    #expect(try helpPath("send", "a", "b", "c", "-h") == ["wormhole", "send"])
    #expect(try helpPath("help", "notify", "post") == ["wormhole", "notify", "post"])
    #expect(try helpPath("notify", "--help") == ["wormhole", "notify"])
    #expect(try helpPath("help", "--help") == ["wormhole"])
    #expect(try helpPath("help", "help") == ["wormhole"])
    #expect(try helpPath("--group", "g", "help", "send") == ["wormhole", "send"])
    guard case .version = try line.parse(["--version"]) else {
      Issue.record("--version does not print the version")
      return
    }
    #expect(line.refusal("send", "--version")?.contains("unknown option") == true)
    for arguments in [
      ["--generate-completion-script", "zsh"], ["--generate-completion-script=zsh"],
    ] {
      guard case .completionScript(.zsh) = try line.parse(arguments) else {
        Issue.record("\(arguments) do not print a script")
        continue
      }
    }
    #expect(line.refusal("--generate-completion-script=tcsh")?.contains("'bash', 'zsh'") == true)
  }
}
