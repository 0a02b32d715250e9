import Testing
import WormholeTestSupport

@Suite("wormhole lock --name excludes all who use the container", .blocking, .bothEngines)
struct NamedLockTests {
  @Test("The words of flock(1) are the same for it")
  func words() throws {
    let outcome = try Session().shell(
      """
      mkfifo "$T/out"
      holds wormhole lock --name n -- sh -c 'echo in >"$T/in"; cat "$T/out"; exit 3'
      wormhole lock --name other -n -- true; echo $?
      wormhole lock --name n -n -- true 2>"$T/said"; echo $?
      grep -c "^wormhole: cannot lock \\"n\\": held for .* s by process $pid (wormhole)\\( on .*\\)*, which is running$" "$T/said"
      wormhole lock --name n -n -E 7 -- true 2>"$T/said"; echo $?
      wormhole lock --name n -w 0.1 -- true 2>"$T/said"; echo $?
      : >"$T/out"; wait $pid; echo $?
      wormhole lock --name n -n -- sh -c 'echo $WORMHOLE_IDENTIFIER'
      """, within: .seconds(60))
    #expect(outcome.output == "0\n1\n1\n7\n1\n3\nn\n", "\(outcome)")
  }

  @Test("The next gets it when the holder was killed, and the holder's command is dead then")
  func killed() throws {
    let outcome = try Session().shell(
      """
      holds wormhole lock --name n -- sh -c 'echo $$ >"$T/child"; echo in >"$T/in"; exec sleep 60'
      wormhole lock --name n -w 30 -- echo second & second=$!
      kill -KILL $pid; wait $second; echo $?
      gone $(cat "$T/child") && echo dead
      """, within: .seconds(60))
    #expect(outcome.output == "second\n0\ndead\n", "\(outcome)")
  }

  /// ```
  /// first                       second
  /// is stopped, and its command
  ///                             takes the role over; in a directory it kills the command
  /// goes on: its command is
  /// asked to end, and killed
  /// ```
  @Test("One that was stopped and overtaken ends its command, and says so", .waiting, .bothEngines)
  func overtaken() throws {
    let outcome = try Session().shell(
      """
      mkfifo "$T/in"
      wormhole lock --name till -- sh -c '
        trap "echo asked" TERM; echo $$ >main; echo >"$T/in"; while :; do sleep 0.02; done' 2>"$T/said" &
      one=$!; read -r x <"$T/in"; kill -STOP $one $(cat main); stopped $(cat main)
      wormhole lock --name till -- echo entered
      kill -CONT $one $(cat main); wait $one; echo $?; grep -c 'asked to end\\|command was killed' "$T/said"
      """)
    // On etcd it may be killed before it has acted on the signal.
    let output = outcome.output.replacing("asked\n", with: "")
    #expect(output == "entered\n1\n1\n", "\(outcome)")
  }

  @Test(
    "A command may write under its role's number, and not after another has entered", .bothEngines)
  func fenced() throws {
    let outcome = try Session().shell(
      """
      wormhole lock --name till -- sh -c '
        echo "$WORMHOLE_FENCE" >fence; wormhole send a 1 --while till; echo $?
        wormhole queue put jobs 1 --while till >"$T/null"; echo $?'
      wormhole lock --name till -- sh -c 'test "$WORMHOLE_FENCE" -gt "$(cat fence)"; echo $?'
      export WORMHOLE_FENCE=$(cat fence)
      wormhole send a 2 --while till 2>said; echo $?
      grep -c 'under "till": it has ended, or another process has it' said
      wormhole queue put jobs 2 --while till 2>said; echo $?
      wormhole read a; wormhole queue take jobs; wormhole queue take jobs --timeout 0; echo $?
      wormhole send a 3 --while till --expires 9 2>said; echo $?
      unset WORMHOLE_FENCE; wormhole send a 3 --while till 2>said; echo $?
      """)
    #expect(
      outcome.output == "0\n0\n0\n1\n1\n1\n1\n1\n1\n64\n64\n", "\(outcome)")
  }

  @Test("A file and a name exclude each other on the line, and what is for one alone says so")
  func grammar() {
    let line = Invocations()
    let both = "give either a file or --name"
    #expect(line.refusal("lock", "--", "true") == both)
    #expect(line.refusal("lock", "f", "--name", "n", "--", "true") == both)
    #expect(line.refusal("lock", "--name", "n", "-s", "--", "true")?.contains("files") == true)
    #expect(line.refusal("lock", "f", "--group", "g", "--", "true")?.contains("--name") == true)
    #expect(Invocations(variables: [:]).refusal("lock", "f", "--", "true") == nil)
    #expect(Invocations(variables: [:]).refusal("lock", "--name", "n", "--", "true") != nil)
  }
}
