import Testing
import WormholeTerminals
import WormholeTestSupport

@testable import WormholeCommand

@Suite("Completion scripts are generated from the description", .blocking) struct CompletionTests {
  private let root = CommandDescription.root

  @Test("bash offers the words that may stand at the cursor and no others")
  func bash() throws {
    let cases: [(words: [String], offered: [String])] = [
      (["l"], ["listen", "lock", "log", "ls"]),
      (["s"], ["send", "status"]),
      (
        [""],
        [
          "backup", "claim", "copy", "defaults", "demo", "destroy", "doctor",
          "etcd",
          "help", "listen", "lock", "log", "ls", "monitor", "notify",
          "peer", "presence", "queue", "read", "release", "remove", "restore", "send", "status",
          "update", "watch",
        ]
      ),
      (["notify", ""], ["post", "remove", "wait"]),
      (
        ["defaults", ""],
        [
          "export", "import", "read", "remove", "watch", "write",
        ]
      ),
      (["defaults", "write", "k", "-dict"], ["-dict", "-dict-add"]),
      (["defaults", "import", "x", "--re"], ["--replace"]),
      (["notify", "wait", "--c"], ["--container", "--count"]),
      (["peer", "re"], ["receive", "request"]),
      (["peer", "launch", "w", "--on", "q"], ["queued"]),
      (["peer", "receive", "w", "--det"], ["--details"]),
      (["peer", "receive", "w", "--", "mapfil"], ["mapfile"]),
      (["peer", "send", "w", "--wait", ""], ["processed"]),
      (["peer", "receive", "w", "--files", "/de"], ["/dev"]),
      (["peer", "send", "w", "--file", "/dev/zer"], ["/dev/zero"]),
      (["help", "not"], ["notify"]),
      (["help", "notify", "p"], ["post"]),
      (["--group", "send", "re"], ["read", "release", "remove", "restore"]),
      (["send", "--d"], ["--durable"]),
      (["send", "x", "--c"], ["--container"]),
      (["read", "x", "--format", ""], ["binary", "json", "plist", "pretty", "raw"]),
      (["read", "x", "--format", "=", "j"], ["json"]),
      (["read", "x", "--format", "="], ["binary", "json", "plist", "pretty", "raw"]),
      (["read", "x", "--format=p"], ["--format=plist", "--format=pretty"]),
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
    let asked = cases.map { words, _ in
      let line = (["wormhole"] + words).map(\.inSingleQuotes).joined(separator: " ")
      return """
        COMP_WORDS=(\(line)); COMP_CWORD=\(words.count); _wormhole
        printf '%s\\n' "${COMPREPLY[@]}" | LC_ALL=C sort | paste -sd' '
        """
    }
    let outcome = try Session().shell(
      """
      wormhole --generate-completion-script bash >script
      cat >asking <<'END'
      . ./script
      \(asked.joined(separator: "\n"))
      END
      bash --norc asking
      """)
    #expect(outcome.status == 0, "\(outcome.errors)")
    let answers = outcome.output.split(separator: "\n", omittingEmptySubsequences: false)
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
      ("ls ti", ""), ("--group ", "group.com.example.cinema"),
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
      wormhole complete -- read ''; echo $?
      wormhole complete -- --container '' read ''; echo $?
      wormhole complete -- --container /dev/null read ''; echo $?
      wormhole complete -- --group group.none defaults read ''; echo $?
      find "$C" "$HOME/.local" 2>"$T/null" | wc -l
      """)
    #expect(outcome.output == "words\n0\nwords\n0\n1\nwords\n0\n1\n", "\(outcome.errors)")
  }

  @Test("zsh accepts its script")
  func zsh() throws {
    let result = try ForeignProgram.run("zsh", ["-n"], input: CompletionShell.zsh.script(for: root))
    #expect(result?.status ?? 0 == 0)
  }

  @Test("fish offers the words that may stand at the cursor")
  func fish() throws {
    let lines = [
      "wormhole stat", "wormhole notify p", "wormhole send --dur", "wormhole read --form",
      "wormhole peer send --ur",
    ]
    let asked = lines.map { "complete -C '\($0)'" }
    let outcome = try Session().shell(
      """
      command -v fish >/dev/null || { echo skipped: fish is not installed >&2; exit 127; }
      wormhole --generate-completion-script fish >script
      cat >asking <<'END'
      source script
      \(asked.joined(separator: "\n"))
      END
      fish --no-config asking
      """)
    guard outcome.status != 127 else { return print(outcome.errors) }
    #expect(outcome.status == 0, "\(outcome.errors)")
    let offered = outcome.output.split(separator: "\n").compactMap {
      $0.split(separator: "\t").first
    }
    #expect(
      offered == ["status", "post", "--durable", "--format", "--urgent"])
  }

  @Test("Every command and option is offered where it may stand")
  func completeness() {
    func words(_ line: [String]) -> [String] {
      guard case .words(let words) = Completion(line, root: root).offer else { return [] }
      return words.map(\.word)
    }
    for path in root.paths() {
      let names = path.dropFirst().map(\.name)
      let options = CommandDescription.shownOptions(at: path).map { "--\($0.name)" }
      #expect(Set(words(names + ["-"])).isSuperset(of: options), "\(names)")
      guard let command = path.last, !command.shownSubcommands.isEmpty else { continue }
      #expect(
        Set(words(names + [""])).isSuperset(of: command.shownSubcommands.map(\.name)), "\(names)")
    }
  }

  @Test("After a name that begins with a dash, programs are offered behind the second --")
  func dashes() {
    for line in [["queue", "take", "q", "--", ""], ["queue", "take", "--", "-q", "--", ""]] {
      #expect("\(Completion(line, root: root).offer)" == "commands", "\(line)")
    }
    #expect("\(Completion(["queue", "take", "q", "--", "ls", "-"], root: root).offer)" == "files")
  }

  @Test("Every script has the name that the program was called by")
  func programName() {
    for shell in CompletionShell.allCases {
      let script = shell.script(for: root)
      #expect(script.contains("_" + root.name) && !script.contains("NAME"))
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
