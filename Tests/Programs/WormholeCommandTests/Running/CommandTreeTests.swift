import Testing
import WormholeTestSupport

/// The work of a command is that of all the processes that it has started. Its first process is a shell;
/// `inner`, which the shell starts, does the work.
@Suite("The work of a command", .blocking)
struct CommandTreeTests {
  /// Each keeps others out, and runs the following words.
  private static let keepers = [
    "lock c --timeout 100 --", "lock --name n --timeout 100 --",
    "queue take q --timeout 100 --",
  ]
  /// How one ends that waits for another in vain, by the first letters.
  private static let statuses = ["lock": "1", "queu": "124"]
  /// Those on etcd, where an entry has a name, too.
  private static let names = Array(keepers.dropFirst())

  /// `$T/inner` reads, says that it has, and writes back when `go` is there; the shell does nothing.
  private static let setUp = """
    echo 0 >c; export T; wormhole queue put q 1 >"$T/null"
    echo 'n=$(cat c); echo $$ >pid; echo in >"$T/in"
      until test -e go; do sleep 0.01; done; echo $((n + 100)) >c' >inner
    work='echo $$ >main; sh inner; :'
    add='echo $(($(cat c) + 1)) >c'

    """

  /// ```
  /// shell         eight inner     wormhole        second
  /// is stopped                    is stopped, or not
  ///                                               kills all, adds one
  ///               would write 100
  /// ```
  /// The second used to begin as soon as the shell had ended.
  @Test(
    "is ended whole before another one gets its lock, if the command is stopped",
    arguments: ["", "$pid"])
  func stopped(_ also: String) throws {
    let outcome = try Session().shell(
      Self.setUp + """
        echo 'echo $$ >>pids; until test -e go; do sleep 0.01; done; echo 100 >c' >inner
        holds wormhole lock c -- sh -c '
          for i in 1 2 3 4 5 6 7 8; do sh inner & done
          until test $(wc -l <pids) = 8; do sleep 0.01; done; echo $$ >main; echo in >"$T/in"; wait'
        kill -STOP $(cat main) \(also); stopped $(cat main)
        wormhole lock c --timeout 100 -- sh -c '
          for i in $(cat pids); do grep -q "State:.[^ZX]" /proc/$i/status && echo beside; done
          '"$add"; echo $?
        : >go; for i in $(cat pids); do gone $i; done; cat c
        kill -CONT $pid 2>"$T/null"; wait $pid; echo $?; ls -A | grep coordination
        """)
    #expect(outcome.output == "0\n1\n137\n", "\(outcome)")
    #expect(outcome.errors.contains("cannot keep c: process "), "\(outcome)")
  }

  @Test("under a name is ended whole before another one gets the name, if all of it is stopped")
  func stoppedNames() throws {
    for keeper in Self.names {
      let outcome = try Session().shell(
        Self.setUp + """
          holds wormhole \(keeper) sh -c "$work"
          kill -STOP $pid $(cat main) $(cat pid); stopped $(cat pid)
          wormhole \(keeper) sh -c "$add"; echo $?
          gone $(cat pid); gone $(cat main); : >go; cat c
          kill -CONT $pid; kill $pid; wait $pid; :
          """)
      #expect(outcome.output == "0\n1\n", "\(keeper): \(outcome)")
    }
  }

  @Test("under a name goes on as long as a process of it runs, and keeps the name")
  func runningNames() throws {
    for keeper in Self.names {
      let outcome = try Session().shell(
        Self.setUp + """
          holds wormhole \(keeper) sh -c "$work"
          kill -STOP $pid; stopped $pid
          wormhole \(keeper.replacing("100", with: "0.3")) sh -c "$add"; echo $?
          wormhole \(keeper) sh -c "$add" & second=$!
          : >go; wait $second; cat c
          kill -CONT $pid; kill $pid; wait $pid
          """)
      let busy = Self.statuses[String(keeper.prefix(4))] ?? "?"
      #expect(outcome.output == "\(busy)\n101\n", "\(keeper): \(outcome)")
    }
  }

  /// A signal used to reach the shell only, and the second began beside the inner process.
  @Test(
    "gets every signal that its starter gets, and keeps its place until it has ended", .bothEngines)
  func signals() throws {
    for keeper in TestEngine.current == .directory ? Self.keepers : Self.names {
      let outcome = try Session().shell(
        Self.setUp + """
          echo 'trap "trap : TERM; sleep 0.3; echo inner >>log; exit" TERM
            echo in >"$T/in"; while :; do sleep 0.01; done' >inner
          holds wormhole \(keeper) sh -c "$work"
          kill -TERM $pid; wormhole \(keeper) sh -c 'echo second >>log'
          wait $pid; echo $?; cat log
          """)
      #expect(outcome.output == "143\ninner\nsecond\n", "\(keeper): \(outcome)")
    }
  }

  /// The shell does not end by the signal, and waits for what it has started.
  @Test("gets a signal that its first process handles")
  func handledSignals() throws {
    for keeper in Self.keepers {
      let outcome = try Session().shell(
        Self.setUp + """
          echo 'trap "echo heard >>log" TERM; sh inner; echo rest >>log' >outer
          echo 'echo in >"$T/in"; exec sleep 1000' >inner
          holds wormhole \(keeper) sh outer
          kill -TERM $pid; wait $pid; cat log
          """, within: .seconds(30))
      #expect(outcome.output == "heard\nrest\n", "\(keeper): \(outcome)")
    }
  }

  /// The kernel kills the first process with `wormhole`, and no other.
  @Test("under a name is ended with its starter: what is left by the next one, before it begins")
  func killedNames() throws {
    for keeper in Self.names {
      let outcome = try Session().shell(
        Self.setUp + """
          holds wormhole \(keeper) sh -c "$work"
          kill -KILL $pid; gone $pid
          wormhole \(keeper) sh -c 'grep -q "State:.[^ZX]" /proc/$(cat pid)/status && echo beside'
          : >go; gone $(cat pid); cat c
          """)
      #expect(outcome.output == "0\n", "\(keeper): \(outcome)")
    }
  }

  @Test("that is stopped, and whose starter was killed, is ended by the next one")
  func orphaned() throws {
    for keeper in Self.keepers {
      let outcome = try Session().shell(
        Self.setUp + """
          holds wormhole \(keeper) sh -c "$work"
          kill -STOP $(cat pid); stopped $(cat pid); kill -KILL $pid $(cat main); gone $pid
          wormhole \(keeper) sh -c "$add"; echo $?
          gone $(cat pid); cat c
          """)
      #expect(outcome.output == "0\n1\n", "\(keeper): \(outcome)")
    }
  }

  @Test(
    "includes what its first process leaves behind; update waits for the rest of the output, too")
  func leftBehind() throws {
    for keeper in Self.keepers {
      let outcome = try Session().shell(
        Self.setUp + """
          holds wormhole \(keeper) sh -c 'sh inner & :'
          wormhole \(keeper.replacing("100", with: "0.3")) sh -c "$add"; echo $?
          : >go; wait $pid; echo $?; wormhole queue put q 1 >"$T/null"
          wormhole \(keeper) sh -c "$add"; cat c
          """)
      let busy = Self.statuses[String(keeper.prefix(4))] ?? "?"
      #expect(outcome.output == "\(busy)\n0\n101\n", "\(keeper): \(outcome)")
    }
    let outcome = try Session().shell(
      "wormhole update x -- sh -c '(sleep 0.2; echo 5) & :'; wormhole read x")
    #expect(outcome.output == "5\n", "\(outcome)")
  }

  /// As with flock(1) for a file, whose descriptor decides. Debian's sh cannot name descriptor 10.
  @Test(
    "does not include a daemon: one with a session of its own; for a file, without descriptor 10")
  func daemons() throws {
    for keeper in Self.keepers {
      let closed = keeper.hasPrefix("lock c") ? "10>&-" : ""
      let outcome = try Session().shell(
        Self.setUp + """
          holds wormhole \(keeper) bash -c 'setsid sh inner \(closed) & until test -e pid; do sleep 0.01; done'
          wait $pid; echo $?
          wormhole queue put q 1 >"$T/null"; wormhole \(keeper) sh -c "$add"; cat c
          : >go; gone $(cat pid); cat c
          """)
      #expect(outcome.output == "0\n1\n100\n", "\(keeper): \(outcome)")
    }
  }

  @Test("leaves no zombie: its starter reaps what comes to it")
  func zombies() throws {
    for keeper in Self.keepers {
      let outcome = try Session().shell(
        Self.setUp + """
          wormhole \(keeper) sh -c '(sh -c "echo \\$\\$ >orphan" &)
            until test -s orphan && ! test -d /proc/$(cat orphan); do sleep 0.01; done'
          echo $?
          """)
      #expect(outcome.output == "0\n", "\(keeper): \(outcome)")
    }
  }

  /// The job of a shell at a terminal, which its user stops and continues; script(1) is the terminal.
  @Test(
    "that was stopped at its terminal keeps its lock for a grace, and learns of its loss",
    arguments: [false, true])
  func pausedAtTerminal(_ isLost: Bool) throws {
    let outcome = try Session().shell(
      """
      cat >job <<'END'
        set -m
        wormhole lock f \(isLost ? "--grace 0.1" : "") -- sh -c 'echo $$ >main; kill -STOP 0; echo continued'
        wormhole lock f --timeout \(isLost ? "100" : "0.2") -- echo second >second 2>said
        echo $? >status
        fg
      END
      script -qec 'sh job' typescript >"$T/null" </dev/null; cat status said; cat typescript
      """)
    let said = "was stopped at its terminal"
    #expect(outcome.output.hasPrefix(isLost ? "0\n" : "1\n"), "\(outcome)")
    #expect(outcome.output.contains(said), "\(outcome)")
    #expect(outcome.output.contains("others may take it over in ") == !isLost, "\(outcome)")
    #expect(outcome.output.contains("cannot keep f: process ") == isLost, "\(outcome)")
    #expect(outcome.output.contains("\r\ncontinued") == !isLost, "\(outcome)")
  }
}
