import Testing
import WormholeTestSupport

@testable import WormholeCommand

@Suite("Completion scripts are generated from the description", .blocking) struct CompletionTests {
  private let root = CommandDescription.root

  @Test("bash offers the words that may stand at the cursor and no others")
  func bash() throws {
    let cases: [(words: [String], offered: [String])] = [
      (["l"], ["latency", "listen", "lock", "log", "ls"]),
      (["s"], ["send", "stat", "status"]),
      (
        [""],
        [
          "backup", "bench", "clear", "copy", "defaults", "demo", "destroy", "doctor", "edit",
          "groups", "help", "incr", "latency", "listen", "lock", "log", "ls", "monitor", "notify",
          "pairing", "peer", "presence", "queue", "read", "restore", "run", "send", "stat",
          "status",
          "top", "update", "watch",
        ]
      ),
      (["notify", ""], ["get", "post", "set", "wait"]),
      (
        ["defaults", ""],
        [
          "delete", "domains", "export", "find", "import", "read", "read-type", "rename", "watch",
          "write",
        ]
      ),
      (["defaults", "write", "k", "-dict"], ["-dict", "-dict-add"]),
      (["defaults", "import", "x", "--re"], ["--replace"]),
      (["notify", "wait", "--c"], ["--container", "--count"]),
      (["peer", "re"], ["receive", "receive-files", "request", "retry"]),
      (["peer", "launch", ""], ["remove", "set", "show"]),
      (["peer", "launch", "set", "w", "--on", "q"], ["queued"]),
      (["peer", "receive", "w", "--env"], ["--envelope"]),
      (["peer", "receive", "w", "--", "mapfil"], ["mapfile"]),
      (["peer", "send", "w", "--wait", ""], ["processed"]),
      (["peer", "receive-files", "w", "--into", "/de"], ["/dev"]),
      (["peer", "transfer", "w", "/dev/zer"], ["/dev/zero"]),
      (["help", "peer", "launch", "s"], ["set", "show"]),
      (["help", "not"], ["notify"]),
      (["help", "notify", "p"], ["post"]),
      (["--group", "send", "re"], ["read", "restore"]),
      (["send", "--d"], ["--data", "--durable"]),
      (["send", "x", "--c"], ["--container"]),
      (["read", "x", "--format", ""], ["binary", "json", "plist"]),
      (["read", "x", "--format", "=", "j"], ["json"]),
      (["read", "x", "--format", "="], ["binary", "json", "plist"]),
      (["read", "x", "--format=p"], ["--format=plist"]),
      (["--generate-completion-script", ""], ["bash", "fish", "zsh"]),
      (["listen", "x", "--count", ""], []),
      (["read", "--", "--f"], []),
      (["demo", "--g"], []),
      (["lock", "/dev/zer"], ["/dev/zero"]),
      (["copy", "/de"], ["/dev"]),
      (["lock", "/dev/zero", "/dev/zer"], []),
      (["watch", "--"], ["--count", "--help", "--json", "--ready-fd", "--timeout"]),
      (["listen", "x", "--", "mapfil"], ["mapfile"]),
      (["mon"], ["monitor"]),
      (["monitor", "--ex"], ["--except"]),
      (["monitor", "--only", "pe"], ["peer"]),
    ]
    var script = BashCompletion(root: root).script
    for (words, _) in cases {
      let line = (["wormhole"] + words).map(\.inSingleQuotes).joined(separator: " ")
      script += """
        COMP_WORDS=(\(line)); COMP_CWORD=\(words.count); _wormhole
        printf '%s\\n' "${COMPREPLY[@]}" | LC_ALL=C sort | paste -sd' '

        """
    }
    guard let result = try ForeignProgram.run("bash", ["--norc", "-s"], input: script) else {
      return
    }
    #expect(result.status == 0)
    let answers = result.output.split(separator: "\n", omittingEmptySubsequences: false)
    try #require(answers.count == cases.count + 1)
    for (answer, (words, offered)) in zip(answers, cases) {
      #expect(answer == offered.joined(separator: " "), "\(words)")
    }
  }

  @Test("bash offers the names that exist, in the container that the line names")
  func names() throws {
    let cases: [(line: String, offered: String)] = [
      ("read ", "tickets two\\ words"), ("read ti", "tickets"), ("send tickets ", ""),
      ("send --durable t", "tickets two\\ words"), ("listen a ti", "tickets"),
      ("defaults read ", "volume"), ("defaults read --suite hall ", "gain"),
      ("defaults read --suite ", "hall"), ("notify post ", "lights"), ("peer request ", "till"),
      ("log read ", "sales"), ("queue take ", "jobs"), ("presence wait ", "hall"),
      ("stat ti", "tickets"), ("--group ", "group.com.example.cinema"),
      ("--container /nowhere read ", ""), ("help read ", ""),
      ("--group group.com.example.cinema read ", "elsewhere"), ("complete-", ""),
    ]
    let asked = cases.map { "ask wormhole \($0.line.isEmpty ? "''" : $0.line)" }
      .map { $0.hasSuffix(" ") ? $0 + "''" : $0 }
    let outcome = try Session().shell(
      """
      wormhole send tickets 1; wormhole send 'two words' 1
      wormhole send "$(printf 'two\\nlines')" 1
      wormhole defaults write volume 1; wormhole defaults write gain 1 --suite hall
      wormhole notify post lights; wormhole peer send till 1 >"$T/null"; wormhole log append sales 1 >"$T/null"
      wormhole queue put jobs 1 >"$T/null"; wormhole presence enter hall -- true
      (unset WORMHOLE_CONTAINER; wormhole --group group.com.example.cinema send elsewhere 1)
      wormhole --generate-completion-script bash >script
      cat >asking <<'END'
      . ./script
      ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _wormhole; echo "${COMPREPLY[*]}"; }
      \(asked.joined(separator: "\n"))
      END
      bash --norc asking
      ls "$HOME/.local/share/app-groups"
      """)
    #expect(
      outcome.output
        == (cases.map(\.offered) + ["group.com.example.cinema", ""]).joined(separator: "\n"),
      "\(outcome.errors)")
  }

  @Test("The question for names says nothing, makes nothing, and ends when there is no answer")
  func question() throws {
    let outcome = try Session().shell(
      """
      wormhole complete-names messages; echo $?
      wormhole complete-names messages --container ''; echo $?
      wormhole complete-names messages --container /dev/null; echo $?
      wormhole complete-names keys --group group.none; echo $?
      find "$C" "$HOME/.local" 2>"$T/null" | wc -l
      """)
    #expect(outcome.output == "0\n64\n1\n0\n1\n", "\(outcome.errors)")
  }

  @Test("zsh accepts its script")
  func zsh() throws {
    let result = try ForeignProgram.run("zsh", ["-n"], input: ZshCompletion(root: root).script)
    #expect(result?.status ?? 0 == 0)
  }

  @Test("fish offers the words that may stand at the cursor")
  func fish() throws {
    let lines = [
      "wormhole sta", "wormhole notify p", "wormhole send --dur", "wormhole read --form",
      "wormhole peer launch s", "wormhole peer send --ur",
    ]
    var script = FishCompletion(root: root).script
    script += lines.map { "complete -C '\($0)'\n" }.joined()
    guard let result = try ForeignProgram.run("fish", ["--no-config"], input: script) else {
      return
    }
    #expect(result.status == 0)
    let offered = result.output.split(separator: "\n").compactMap {
      $0.split(separator: "\t").first
    }
    #expect(
      offered == ["stat", "status", "post", "--durable", "--format", "set", "show", "--urgent"])
  }

  @Test("Every command and option is in every script")
  func completeness() {
    for shell in CompletionShell.allCases {
      let script = shell.script(for: root)
      for path in root.paths().dropFirst() {
        #expect(script.contains(path.last?.name ?? ""))
        for option in CommandDescription.options(at: path) { #expect(script.contains(option.name)) }
      }
    }
  }

  @Test("A quote in a text is still a quote in the shell's word")
  func quoting() throws {
    let text = "it's `$HOME` \\ \"x\""
    let result = try ForeignProgram.run(
      "bash", ["--norc", "-s"], input: "printf %s \(text.inSingleQuotes)")
    #expect(result?.output ?? text == text)
  }
}
