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
      #expect(parsed.texts("name") == ["a", "b"])
      #expect(parsed.count("count") == 3)
      #expect(parsed.duration("timeout") == .milliseconds(1500))
      #expect(parsed.has("current"))
      #expect(parsed.outputFormat == .json)
      #expect(parsed.tail == nil)
    }
    #expect(try line.arguments("read", "a", "--format=binary").outputFormat == .binary)
    #expect(try line.arguments("listen", "a", "--count", "3", "--count", "3").count("count") == 3)
    #expect(try line.arguments("listen", "a").count("count") == nil)
    #expect(try line.arguments("send", "a", "--durable").has("durable"))
    #expect(try line.arguments("send", "a").has("durable") == false)
  }

  @Test("An option with a letter takes its value from the next word or from the same one")
  func letters() throws {
    for parsed in [
      try line.arguments("lock", "f", "-w", "5", "-s", "--", "true"),
      try line.arguments("lock", "-w5", "-s", "f", "--", "true"),
      try line.arguments("lock", "-sw5", "f", "--", "true"),
      try line.arguments("lock", "--timeout=5", "--shared", "f", "--", "true"),
    ] {
      #expect(parsed.duration("timeout") == .seconds(5))
      #expect(parsed.has("shared"))
      #expect(parsed.tail == ["true"])
    }
    #expect(line.refusal("lock", "-s5", "f", "--", "true")?.contains("'-5'") == true)
  }

  // The last one counted, and the other was lost without a word.
  @Test("An option that takes one value and is given two is refused")
  func twice() throws {
    let reason = "'--count <n>' is given twice, as '3' and '4': it takes one value"
    #expect(line.refusal("listen", "a", "--count", "3", "--count=4") == reason)
    #expect(line.refusal("lock", "f", "-w5", "--timeout", "6", "--", "true") != nil)
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
    #expect(parsed.requiredText("name") == "--help")
    #expect(parsed.text("value") == "-x")
    #expect(try line.arguments("send", "--", "a", "--").text("value") == "--")
  }

  @Test("The words after -- are another program's command line where one is expected")
  func tail() throws {
    let update = try line.arguments("update", "a", "--", "grep", "--help", "--", "-x")
    #expect(update.tail == ["grep", "--help", "--", "-x"])
    #expect(update.requiredText("name") == "a")
    #expect(try line.arguments("listen", "a", "--", "cat").tail == ["cat"])
    #expect(line.refusal("update", "a")?.contains("-- <command>") == true)
    #expect(line.refusal("update", "a", "--")?.contains("<command>") == true)
    #expect(line.refusal("listen", "a", "--")?.contains("<command>") == true)
    #expect(line.refusal("listen", "--", "cat")?.contains("<name>") == true)
  }

  /// `read a -- cat` read two messages.
  @Test("A command that runs no other one takes no words after -- for names")
  func noTail() throws {
    var count = 0
    for path in CommandDescription.root.paths() {
      guard let command = path.last, command.run != nil, command.tail == nil else { continue }
      let operands = command.positionals.map { operand in
        [.count, .unsigned].contains(operand.kind) ? "7" : "x"
      }
      let required =
        command.name == "import"
        ? ["--merge"] : command.options.filter(\.isRequired).flatMap { ["--\($0.name)", "/tmp"] }
      let words = path.dropFirst().map(\.name) + required + operands
      #expect(line.refusal(words) == nil, "\(words)")
      let reason = try #require(line.refusal(words + ["--", "echo", "hi"]), "\(words)")
      let name = path.map(\.name).joined(separator: " ")
      #expect(reason.hasPrefix("'\(name)' runs no command, found 'echo' after '--'"), "\(reason)")
      count += 1
    }
    #expect(count > 30)
    // What is missing may stand there, as scripts write it for a name that may begin with a dash.
    #expect(try line.arguments("send", "--", "a", "b").text("value") == "b")
    #expect(try line.arguments("remove", "--", "a", "b").texts("name") == ["a", "b"])
    #expect(try line.arguments("remove", "a", "--", "-b").texts("name") == ["a", "-b"])
  }

  @Test("Every command that goes on and prints lines takes a command for each")
  func followers() {
    for path in CommandDescription.root.paths() {
      guard let command = path.last, command.options.contains(where: { $0.name == "ready-fd" })
      else { continue }
      // It prints screens.
      guard command.name != "status", command.name != "agent" else { continue }
      #expect(command.tail != nil, "\(command.name)")
    }
  }

  @Test("A name that begins with a dash goes after --, and a command then after another --")
  func dashes() throws {
    let take = try line.arguments("queue", "take", "--", "-jobs", "--", "cat", "--", "x")
    #expect(take.text("name") == "-jobs" && take.tail == ["cat", "--", "x"])
    let listen = try line.arguments("listen", "--", "-a", "b")
    #expect(listen.texts("name") == ["-a", "b"] && listen.tail == nil)
    let lock = try line.arguments("lock", "-n", "--", "-f", "--", "true")
    #expect(lock.text("file") == "-f" && lock.tail == ["true"])
    let named = try line.arguments("lock", "--name=-x", "--", "true")
    #expect(named.text("name") == "-x" && named.tail == ["true"])
    // The name is given already, so the word belongs to the other program.
    #expect(try line.arguments("update", "a", "--", "-b").tail == ["-b"])
    let forgotten = line.refusal("queue", "take", "--", "-jobs", "cat")
    #expect(forgotten?.hasSuffix("'wormhole queue take -- -jobs -- cat'") == true)
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
      (["snd", "a"], "unknown subcommand 'snd': did you mean 'wormhole send a'?"),
      (["lsiten"], "unknown subcommand 'lsiten': did you mean 'wormhole listen'?"),
      (["hlep"], "unknown subcommand 'hlep': did you mean 'wormhole help'?"),
      (["notify", "psot"], "unknown subcommand 'psot': did you mean 'wormhole notify post'?"),
      (
        ["help", "notify", "wiat"],
        "unknown subcommand 'wiat': did you mean 'wormhole help notify wait'?"
      ),
      (
        ["help", "--bla"],
        "unknown option '--bla': a subcommand's options go after its name"
      ),
      (["get", "a"], "unknown subcommand 'get': did you mean 'wormhole read a'?"),
      (["set", "a", "1"], "unknown subcommand 'set': did you mean 'wormhole send a 1'?"),
      (["version"], "unknown subcommand 'version': did you mean 'wormhole --version'?"),
      (["queue", "pop", "q"], "unknown subcommand 'pop': did you mean 'wormhole queue take q'?"),
      (["presence", "ls"], "unknown subcommand 'ls': did you mean 'wormhole presence list'?"),
      (
        ["--group", "g", "push", "q", "a b"],
        "unknown subcommand 'push': did you mean 'wormhole --group g queue put q 'a b''?"
      ),
      (["take", "q"], "unknown subcommand 'take': did you mean 'wormhole queue take q'?"),
      (
        ["setnx", "a", "1"],
        "unknown subcommand 'setnx': did you mean 'wormhole send --if-version none a 1'?"
      ),
      (["del", "a"], "unknown subcommand 'del': did you mean 'wormhole remove a'?"),
      (
        ["queue", "del", "q", "x"],
        "unknown subcommand 'del': did you mean 'wormhole queue remove q x'?"
      ),
      (["help", "pub"], "unknown subcommand 'pub': did you mean 'wormhole help send'?"),
      (["help", "setnx"], "unknown subcommand 'setnx': did you mean 'wormhole help send'?"),
      (["decr", "a"], "unknown subcommand 'decr': did you mean 'wormhole update NAME --add -1'?"),
      (
        ["defaults", "read", "com.example", "key"],
        "unexpected argument 'key': did you mean 'wormhole defaults read --suite com.example key'?"
      ),
      (
        ["defaults", "write", "com.example", "key", "-int", "5"],
        "unexpected argument '-int'; an array begins with -array, and a domain is --suite com.example"
      ),
      (["-n", "f", "true"], "unknown option '-n': it is an option of 'wormhole lock'"),
      (["send", "a", "1", "--ttl", "5m"], "unknown option '--ttl': did you mean '--expires'?"),
      (["lock", "-e", "f"], "unknown option '-e': did you mean '--exclusive'?"),
      (["listen", "--cuont=3"], "unknown option '--cuont': did you mean '--count'?"),
      (
        ["--format", "plist", "read", "a"],
        "unknown option '--format': a subcommand's options go after its name"
      ),
      (["listen", "--gruop", "x"], "unknown option '--gruop': did you mean '--group'?"),
      (
        ["read", "a", "--format", "jsno"],
        "the value 'jsno' is invalid for '--format <format>': did you mean 'json'? "
          + "please provide one of 'json', 'pretty', 'raw', 'plist', 'binary'"
      ),
    ])
  func suggestions(arguments: [String], reason: String) {
    #expect(line.refusal(arguments) == reason)
  }

  @Test(
    "A forgotten -- is noticed, and the right line is shown",
    arguments: [
      (
        ["lock", "f", "true"],
        "unexpected argument 'true': a command goes after '--': 'wormhole lock f -- true'"
      ),
      (
        ["lock", "f", "sed", "-i", "s/a/b/"],
        "unknown option '-i': a command goes after '--': 'wormhole lock f -- sed -i s/a/b/'"
      ),
      (
        ["lock", "f", "-c", "a; b"],
        "unknown option '-c': a command goes after '--': 'wormhole lock f -- sh -c 'a; b''"
      ),
      (
        ["lock", "-c", "a; b", "f"],
        "unknown option '-c': a command goes after '--': 'wormhole lock f -- sh -c 'a; b''"
      ),
      (
        ["update", "a", "jq", "."],
        "unexpected argument 'jq': a command goes after '--': 'wormhole update a -- jq .'"
      ),
      (
        ["queue", "take", "q", "--follow", "sh", "-c", "x"],
        "unknown option '-c': a command goes after '--': "
          + "'wormhole queue take q --follow -- sh -c x'"
      ),
    ])
  func forgottenDashes(arguments: [String], reason: String) {
    #expect(line.refusal(arguments) == reason)
  }

  @Test(
    "A duration is a number of seconds, or has a unit",
    arguments: [
      ("90", Duration.seconds(90)), ("1.5", .milliseconds(1_500)), ("250ms", .milliseconds(250)),
      ("90s", .seconds(90)), ("5m", .seconds(300)), ("2h", .seconds(7_200)),
      ("7d", .seconds(604_800)), ("0.5m", .seconds(30)), ("0", .zero),
    ])
  func durations(text: String, time: Duration) throws {
    #expect(try line.arguments("listen", "a", "--timeout", text).duration("timeout") == time)
    #expect(try line.arguments("send", "a", "--expires=\(text)").duration("expires") == time)
  }

  @Test("Forms of output that exclude each other are refused")
  func formsOfOutput() {
    for form in [
      ["--json", "--format", "raw"], ["--json", "--format", "plist"],
      ["--format", "raw", "--details"],
    ] {
      #expect(line.refusal(["read", "a"] + form)?.contains("exclude each other") == true)
    }
  }

  @Test("A limit that would end each command at once is refused")
  func limit() {
    let refusal = line.refusal("queue", "take", "q", "--limit", "0", "--", "true")
    #expect(refusal?.hasPrefix("--limit 0 would end") == true)
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
      (["read"], "missing expected argument '<name>'"),
      (["peer", "context", "a", "1", "b"], "unexpected argument 'b'"),
      (["peer", "context", "a", "1", "b", "c"], "2 unexpected arguments: 'b', 'c'"),
      (["status", "a"], "unexpected argument 'a'"),
      (["read", ""], "the value '' is invalid for '<name>': it must not be empty"),
      (["listen", "a", ""], "the value '' is invalid for '<name>': it must not be empty"),
      (["notify", "post", ""], "the value '' is invalid for '<name>': it must not be empty"),
      (["listen", "a", "--count"], "missing value for '--count <n>'"),
      (["listen", "a", "--count", "--current"], "missing value for '--count <n>'"),
      (["listen", "a", "--count", "--", "cat"], "missing value for '--count <n>'"),
      (["send", "a", "--durable=1"], "the flag '--durable' takes no value, found '1'"),
    ])
  func mistakes(arguments: [String], reason: String) {
    #expect(line.refusal(arguments) == reason)
  }

  @Test("Counts and times outside their range are refused")
  func ranges() throws {
    for text in ["0", "-1", "1.5", "x", "", "+1", "９", "99999999999999999999"] {
      #expect(line.refusal("listen", "a", "--count=\(text)")?.contains("--count") == true)
    }
    for text in [
      "-1", "nan", "inf", "0x10", "1e3", "", ".", "1000000001", "1.2.3", "s", "1M", "5 m", "1h30m",
      "20000d", "１",
    ] {
      #expect(line.refusal("listen", "a", "--timeout=\(text)")?.contains("--timeout") == true)
    }
    #expect(try line.arguments("listen", "a", "--timeout=0").duration("timeout") == .zero)
    #expect(try line.arguments("listen", "a", "--timeout=1000000000").duration("timeout") != nil)
  }

  @Test("remove takes identifiers or --all, and not both")
  func remove() throws {
    #expect(try line.arguments("remove", "a", "b").texts("name") == ["a", "b"])
    #expect(try line.arguments("remove", "--all").has("all"))
    #expect(line.refusal("remove", "--all", "a")?.contains("exclude") == true)
    #expect(line.refusal("remove")?.contains("<name>") == true)
  }

  @Test("Help, version and scripts can be requested anywhere before a mistake")
  func early() throws {
    func helpPath(_ arguments: String...) throws -> [String]? {
      guard case .help(let path, _) = try line.parse(arguments) else { return nil }
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
    func text(_ arguments: String...) throws -> String? {
      guard case .text(let text) = try line.parse(arguments) else { return nil }
      return text
    }
    #expect(try text("--version") == "\(CommandDescription.root.version ?? "-")\n")
    #expect(line.refusal("send", "--version")?.contains("unknown option") == true)
    let script = CompletionShell.zsh.script(for: .root)
    #expect(try text("--generate-completion-script", "zsh") == script)
    #expect(try text("--generate-completion-script=zsh") == script)
    #expect(line.refusal("--generate-completion-script=tcsh")?.contains("'bash', 'zsh'") == true)
  }
}
