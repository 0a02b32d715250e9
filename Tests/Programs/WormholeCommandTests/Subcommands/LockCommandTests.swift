import Testing
import WormholeTestSupport

/// Each line of a schedule is a gate: `holds` returns when the command runs, and so has the lock;
/// `$T/out` keeps it running until the test writes there.
@Suite("wormhole lock keeps a file from others", .blocking)
struct LockCommandTests {
  @Test("A name that a shell would take apart is refused within its text, and given as a word")
  func placeholderInText() throws {
    let outcome = try Session().shell(
      """
      wormhole lock 'a b' -- sh -c 'echo x >{}'; echo $?; ls -A
      wormhole lock 'a b' -- sh -c 'echo 1 >"$1"' sh {}; cat 'a b'; wormhole lock f -- sh -c 'echo 2 >{}'; cat f
      """)
    #expect(outcome.output.hasPrefix("64\n") && outcome.output.hasSuffix("1\n2\n"), "\(outcome)")
    #expect(!outcome.output.contains(".coordination"), "\(outcome)")
    #expect(outcome.errors.contains("sh -c 'sort -u"), "\(outcome)")
  }

  /// ```
  /// first                       second
  /// has the lock
  ///                             waits, does not run
  /// changes the file, ends
  ///                             runs, sees the change
  /// ```
  @Test("The second waits until the first has ended")
  func exclusion() throws {
    let outcome = try Session().shell(
      """
      mkfifo "$T/out"; echo 0 >f
      holds wormhole lock f -- sh -c 'echo in >"$T/in"; cat "$T/out"; echo 1 >f'
      wormhole lock f --timeout 100 -- cat f & second=$!
      wormhole lock f --timeout 0 -- echo both; echo $?
      : >"$T/out"; wait $second
      """)
    #expect(outcome.output == "1\n1\n", "\(outcome)")
  }

  @Test("The second names the command that has the lock, from a moment after its start")
  func holder() throws {
    let outcome = try Session().shell(
      """
      mkfifo "$T/out"; echo 0 >f
      holds wormhole lock f -- sh -c 'echo in >"$T/in"; exec cat "$T/out"'
      until wormhole lock f --timeout 0 -- true 2>&1 | grep -q '(cat), which is running'; do :; done
      : >"$T/out"; wait $pid; echo $?
      """)
    #expect(outcome.output == "0\n", "\(outcome)")
  }

  /// The message of the stopped holder; the other one has ended, so its program's name is not
  /// known.
  private static let overtaken =
    "wormhole: cannot keep f: process "

  /// ```
  /// first (its whole job stopped, or wormhole alone)      second
  /// has the lock, is stopped
  ///                                                       takes it away, changes the file
  /// is continued: finds out, ends its command, exits 1
  /// ```
  @Test(
    "A stopped holder is overtaken, learns it when it is continued, and names the new holder",
    arguments: [("-", "f", 9), ("", "{}", 15), ("-", "{}", 15)])
  func stopped(_ group: String, _ word: String, _ signal: Int) throws {
    let outcome = try Session().shell(
      """
      echo 0 >f
      holds setsid wormhole lock f -- sh -c ': \(word); echo in >"$T/in"; exec sleep 25'
      kill -STOP \(group)$pid; stopped $pid
      wormhole lock f --timeout 100 -- sh -c 'echo second >f; echo $PPID'
      kill -CONT \(group)$pid; wait $pid; echo $?
      cat f; ls -A | grep coordination
      """)
    let lines = outcome.output.split(separator: "\n").map(String.init)
    try #require(lines.count == 3, "\(outcome)")
    // A command that worked on the file itself was killed, and its end is passed on.
    #expect(lines[1...] == [signal == 9 ? "137" : "1", "second"])
    #expect(outcome.errors.hasPrefix(Self.overtaken + lines[0]), "\(outcome.errors)")
    #expect(outcome.errors.contains("sh was killed by signal \(signal)"), "\(outcome.errors)")
  }

  @Test("The late one's private copy is not published, even if its command succeeds")
  func late() throws {
    let outcome = try Session().shell(
      """
      mkfifo "$T/out"; echo 0 >f
      holds wormhole lock f -- sh -c 'trap "" TERM; echo late >{}; echo in >"$T/in"; cat "$T/out"'
      kill -STOP $pid; stopped $pid
      wormhole lock f --timeout 100 -- sh -c 'echo second >{}'
      : >"$T/out"; kill -CONT $pid; wait $pid; echo $?
      cat f
      """)
    #expect(outcome.output == "1\nsecond\n", "\(outcome)")
    #expect(outcome.errors.hasPrefix(Self.overtaken))
    #expect(
      outcome.errors.hasSuffix("sh ended with status 0, and none of its changes is visible\n"))
  }

  /// The next one used to kill a healthy command when the lock was an hour old by its clock.
  @Test(
    "A command keeps the lock as long as it runs, whatever clock others have",
    .enabled(if: ClockNamespaces.arePossible, "needs namespaces for clocks"),
    arguments: ["f", "{}"])
  func otherClock(_ word: String) throws {
    let ahead = ClockNamespaces.wrapper.joined(separator: " ")
    let outcome = try Session().shell(
      """
      mkfifo "$T/out"; echo 0 >f
      holds wormhole lock f -- sh -c ': \(word); echo in >"$T/in"; cat "$T/out"; echo finished'
      \(ahead) wormhole lock f --timeout 3 -- echo second; echo $?
      : >"$T/out"; wait $pid; echo $?
      """)
    #expect(outcome.output == "1\nfinished\n0\n", "\(outcome)")
  }

  @Test(
    "With a term, others take it over although the command runs, and it learns from whom and why",
    arguments: [("f", "sh was killed by signal 9", 137), ("{}", "sh ended with status 0", 1)])
  func term(_ word: String, _ end: String, _ status: Int) throws {
    let outcome = try Session().shell(
      """
      mkfifo "$T/out"; echo 0 >f
      holds wormhole lock f --term 0.1 -- sh -c ': \(word); echo in >"$T/in"; cat "$T/out"'
      wormhole lock f --timeout 100 -- sh -c 'echo second >f; echo $PPID; : >"$T/done"'
      test \(word) = f || : >"$T/out"
      wait $pid; echo $?; cat f; ls -A | grep coordination
      """)
    let lines = outcome.output.split(separator: "\n").map(String.init)
    try #require(lines.count == 3, "\(outcome)")
    #expect(lines[1...] == ["\(status)", "second"])
    #expect(outcome.errors.hasPrefix(Self.overtaken + lines[0]), "\(outcome.errors)")
    #expect(
      outcome.errors.contains(" s ago, because its term of 0.1 s was over; \(end)"),
      "\(outcome.errors)")
  }

  /// ```
  /// first                                    second
  /// its command is stopped, it runs
  /// looks, and says so
  ///                                          takes the lock over
  /// finds out, ends its command, exits 1
  /// ```
  @Test("A command that is stopped alone loses the lock of its private copy")
  func stoppedAlone() throws {
    let outcome = try Session().shell(
      """
      echo 0 >f
      holds wormhole lock f -- sh -c ': {}; echo $$ >"$T/child"; echo in >"$T/in"; exec sleep 25'
      child=$(cat "$T/child"); kill -STOP $child; pause=0.01
      # Its stop must not be pending only, because the lock's holder looks once.
      until grep -q '^State:.T' /proc/$child/status; do pause; done
      kill -CONT $pid
      wormhole lock f --timeout 100 -- sh -c 'echo second >f'
      kill -CONT $pid; wait $pid; echo $?; cat f
      """)
    #expect(outcome.output == "1\nsecond\n", "\(outcome)")
    #expect(outcome.errors.contains("was stopped; sh was killed by signal 15"), "\(outcome)")
  }

  // The kernel keeps no status of a child for a program that ignores SIGCHLD.
  @Test("The command's status counts although the program's parent ignores SIGCHLD")
  func ignoredChildren() throws {
    let outcome = try Session().shell(
      """
      echo 0 >f
      env --ignore-signal=CHLD wormhole lock f -- sh -c 'exit 7'; echo $?
      """)
    #expect(outcome.output == "7\n", "\(outcome)")
  }

  @Test("The words of flock(1): -n, -w, -s and -E")
  func words() throws {
    let outcome = try Session().shell(
      """
      mkfifo "$T/out"; echo 0 >f
      holds wormhole lock -s f -- sh -c 'echo in >"$T/in"; cat "$T/out"'
      exec 2>"$T/said"
      wormhole lock -s -n f -- true; echo $?
      wormhole lock -n f -- true; echo $?
      wormhole lock -n -E 7 f -- true; echo $?
      wormhole lock -w0.1 -E7 f -- true; echo $?
      wormhole lock -w 0.1 f -- true; echo $?
      wormhole lock -n -w 1 f -- true; echo $?
      wormhole lock -E 256 f -- true; echo $?
      : >"$T/out"; wait $pid; wormhole lock -n -E 7 f -- sh -c 'exit 3'; echo $?
      """)
    #expect(outcome.output == "0\n1\n7\n7\n1\n64\n64\n3\n", "\(outcome)")
  }

  @Test(
    "A signal reaches the command, and the lock is held until it has ended",
    arguments: ["TERM", "HUP"])
  func signals(_ signal: String) throws {
    let outcome = try Session().shell(
      """
      cat >command <<'END'
      trap 'wormhole lock f --timeout 0 -- true; echo "busy: $?"; kill $child; exit 3' \(signal)
      sleep 25 & child=$!
      echo in >"$T/in"; wait $child
      END
      holds wormhole lock f -- sh command
      kill -\(signal) $pid; wait $pid; echo $?
      wormhole lock f --timeout 0 -- true; echo $?
      """)
    #expect(outcome.output == "busy: 1\n3\n0\n", "\(outcome)")
    #expect(outcome.errors.hasSuffix("wormhole: sh ended with status 3\n"), "\(outcome.errors)")
  }

  @Test("A signal ends a waiting command as any program, and it blocks nothing afterwards")
  func waiting() throws {
    let outcome = try Session().shell(
      """
      mkfifo "$T/out"
      holds wormhole lock f -- sh -c 'echo in >"$T/in"; cat "$T/out"'
      wormhole lock f -- echo never & second=$!
      kill -TERM $second; wait $second; echo $?
      : >"$T/out"; wait $pid; echo $?; ls -A | grep coordination
      """)
    #expect(outcome.output == "143\n0\n", "\(outcome)")
  }

  @Test("Ignored signals stay ignored, for the command too")
  func ignored() throws {
    let outcome = try Session().shell(
      """
      mkfifo "$T/out"; trap '' TERM
      holds wormhole lock f -- sh -c 'echo in >"$T/in"; cat "$T/out"'
      kill -TERM $pid; : >"$T/out"; wait $pid; echo $?
      """)
    #expect(outcome.output == "0\n", "\(outcome)")
  }

  @Test("Presenters have time to answer even without any other wait")
  func presenters() throws {
    let outcome = try Session().shell(
      """
      echo 0 >f; start watch f >"$T/heard"
      for round in 1 2 3 4 5; do
        wormhole lock f --timeout 0 -- sh -c "echo $round >f" || echo failed
        until test "$(grep -c '^f MODIFY$' "$T/heard")" = $round; do sleep 0.01; done
      done
      kill $pid; finish 2>/dev/null; true
      """)
    #expect(outcome.errors == "", "\(outcome)")
    #expect(outcome.output == "" && outcome.status == 0, "\(outcome)")
  }

  @Test("A shared lock and flock(1) exclude each other's writers, and share with readers")
  func sharedWithForeigners() throws {
    let outcome = try Session().shell(
      """
      : >f; mkfifo "$T/out"
      for how in '-x' '-s'; do
        flock $how f sh -c 'echo in >"$T/in"; read -r end <"$T/out"' & holder=$!
        mkfifo "$T/in"; read -r word <"$T/in"; rm "$T/in"
        wormhole lock -s -n f -- echo shared 2>"$T/said"; echo $?
        # A holder of the lock that read nothing was said to read.
        wormhole lock -w 0.05 f -- true 2>"$T/said"; grep -c 'with a lock on it held by process .*, which is running' "$T/said"
        echo end >"$T/out"; wait $holder
      done
      holds wormhole lock -s f -- sh -c 'echo in >"$T/in"; read -r end <"$T/out"'
      flock -x -n f echo exclusive; echo $?
      flock -s -n f echo shared; echo $?
      echo end >"$T/out"; wait $pid; ls -A
      """)
    #expect(outcome.output.hasPrefix("1\n1\nshared\n0\n1\n1\nshared\n0\n"), "\(outcome)")
    #expect(!outcome.output.contains(".coordination"), "\(outcome)")
  }
}

/// A clock that is two hours ahead, for a single command, if it is possible.
enum ClockNamespaces {
  static let wrapper = [
    "unshare", "--time", "--fork", "--monotonic", "7200", "--boottime", "7200",
  ]

  static let arePossible = Session.succeeds(
    "true", with: wrapper, missing: "namespaces for clocks")
}
