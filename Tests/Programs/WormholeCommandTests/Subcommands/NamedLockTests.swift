import Testing
import WormholeTestSupport

@Suite("wormhole lock --name excludes all who use the container", .blocking, .bothEngines)
struct NamedLockTests {
  @Test("Four processes that add one five times each lose nothing")
  func contention() throws {
    let outcome = try Session().shell(
      """
      echo 0 >counter
      for process in 1 2 3 4; do
        for round in 1 2 3 4 5; do
          wormhole lock --name n -- sh -c 'n=$(cat counter); echo $((n + 1)) >counter' || echo failed
        done &
      done
      wait; cat counter
      """, within: .seconds(110))
    #expect(outcome.output == "20\n", "\(outcome)")
    #expect(outcome.errors == "")
  }

  @Test("The words of flock(1) and the roles of presences are the same for it")
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
      wormhole presence enter n --exclusive --timeout 0 -- true 2>"$T/said"; echo $?
      : >"$T/out"; wait $pid; echo $?
      wormhole lock --name n -n -- sh -c 'echo $WORMHOLE_IDENTIFIER'
      """, within: .seconds(60))
    #expect(outcome.output == "0\n1\n1\n7\n1\n75\n3\nn\n", "\(outcome)")
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
