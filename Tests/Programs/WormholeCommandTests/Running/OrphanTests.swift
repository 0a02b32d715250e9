import Testing
import WormholeTestSupport

/// The fate of a command when the `wormhole` that runs it is killed or stopped, or when the command
/// itself is stopped. `$T/out` keeps the command running until the test writes there.
@Suite("A command that wormhole runs", .blocking)
struct OrphanTests {
  /// ```
  /// first's command             first's wormhole      second
  /// reads 0
  ///                             is killed, or stopped
  ///                                                   waits all the same
  /// writes 1, ends
  ///                                                   adds ten
  /// ```
  /// The second used to get the lock at once, and the ten were lost.
  @Test(
    "keeps the lock of the file that it works on, when wormhole is killed or stopped",
    arguments: [("KILL", 137), ("STOP", 0)])
  func keeps(_ signal: String, _ status: Int) throws {
    let outcome = try Session().shell(
      """
      mkfifo "$T/out"; echo 0 >c
      holds wormhole lock c -- sh -c 'n=$(cat c); echo in >"$T/in"; cat "$T/out"; echo $((n + 1)) >c'
      kill -\(signal) $pid; test \(signal) = KILL && gone $pid || stopped $pid
      wormhole lock c --timeout 0.3 -- echo both; echo $?
      wormhole lock c --timeout 100 -- sh -c 'echo $(($(cat c) + 10)) >c' & second=$!
      : >"$T/out"; wait $second; cat c
      kill -CONT $pid 2>"$T/null"; wait $pid; echo $?; ls -A | grep coordination
      """)
    #expect(outcome.output == "1\n11\n\(status)\n", "\(outcome)")
  }

  @Test("keeps it also by what it has started, when wormhole and the command itself are killed")
  func descendants() throws {
    let outcome = try Session().shell(
      """
      mkfifo "$T/out"; echo 0 >c
      echo 'n=$(cat c); echo in >"$T/in"; cat "$T/out"; echo $((n + 1)) >c' >inner
      holds wormhole lock c -- sh -c 'echo $$ >main; sh inner; :'
      kill -KILL $pid $(cat main); gone $pid
      wormhole lock c --timeout 0.3 -- echo both; echo $?
      wormhole lock c --timeout 100 -- sh -c 'echo $(($(cat c) + 10)) >c' & second=$!
      : >"$T/out"; wait $second; cat c; ls -A | grep coordination
      """)
    #expect(outcome.output == "1\n11\n", "\(outcome)")
  }

  @Test(
    "ends with wormhole, where it has nothing to lose",
    arguments: [
      "lock f", "update x", "listen x --current", "peer receive box", "peer serve box",
    ])
  func ends(_ command: String) throws {
    let outcome = try Session().shell(
      """
      echo 0 >f; wormhole send x 1; wormhole peer send box 1
      wormhole \(command) -- sh -c ': {}; echo $$ >new; mv new main; exec sleep 25' 2>said & pid=$!
      case '\(command)' in *serve*)
        says said listening
        wormhole peer request box 1 --timeout 100 2>"$T/null" &
      esac
      until test -s main; do sleep 0.01; done
      kill -KILL $pid; gone $(cat main); echo gone
      """)
    #expect(outcome.output.hasSuffix("gone\n"), "\(outcome)")
  }

  // A file that is opened while a standard descriptor is closed gets its number, and what a command writes.
  @Test(
    "A command writes into no file of a program whose standard descriptors are closed", .bothEngines
  )
  func closedDescriptors() throws {
    let outcome = try Session().shell(
      """
      (wormhole update n --default 0 -- sh -c 'read n; echo noise >&2; echo $((n+1))' <&- >&- 2>&-)
      echo $?; wormhole read n
      wormhole queue put q '{"film":"Metropolis"}' >"$T/id"
      (wormhole queue take q -- sh -c 'echo noise >&2; cat >taken' <&- >&- 2>&-); echo $?; cat taken
      wormhole restore - --container "$T/new" <&- 2>said; echo $?
      """)
    #expect(outcome.output == "0\n1\n0\n{\"film\":\"Metropolis\"}\n74\n", "\(outcome)")
  }
}
