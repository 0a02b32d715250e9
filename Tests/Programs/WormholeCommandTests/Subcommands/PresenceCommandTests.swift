import Testing
import WormholeTestSupport

@Suite("wormhole presence", .blocking) struct PresenceCommandTests {
  @Test("A process is present while its command runs, and has its status", .bothEngines)
  func present() throws {
    let outcome = try Session().shell(
      """
      wormhole presence list till; echo $?
      wormhole presence enter till --content '{"port":1}' -- sh -c '
        echo $WORMHOLE_IDENTIFIER
        wormhole presence list --json | sed "s/,\\"host.*isEx/,\\"isEx/; s/,\\"id.*isEx/,\\"isEx/" |
          grep -o "{\\"content.*name\\":\\"till\\""
        wormhole presence wait till --json | wc -l; exit 4' 2>"$T/said"
      echo $?
      wormhole presence list till; echo $?
      wormhole presence list
      """)
    #expect(
      outcome.output == """
        1
        till
        {"content":{"port":1},"isExclusive":false,"name":"till"
        1
        4
        1

        """, "\(outcome)")
  }

  @Test("Waiting ends when enough have come, and when the last is gone", .bothEngines)
  func waiting() throws {
    let outcome = try Session().shell(
      """
      start presence wait till --count 2 >"$T/null"
      wormhole presence enter till -- sleep 60 & one=$!
      wormhole presence enter till -- sleep 60 & two=$!
      finish; echo $?
      wormhole presence wait till --count 2 --timeout 0 >"$T/null"; echo $?
      start presence wait till --gone
      kill -TERM $one $two; wait $one; echo $?; wait $two; finish; echo $?
      wormhole presence wait till --timeout 0 2>"$T/said"; echo $?
      """)
    #expect(outcome.output == "0\n0\n143\n0\n124\n", "\(outcome)")
  }

  @Test("Only one is exclusive at a time; the next enters when it was killed", .bothEngines)
  func exclusive() throws {
    let outcome = try Session().shell(
      """
      mkfifo "$T/in"
      wormhole presence enter till --exclusive -- sh -c 'echo $$ >"$T/in"; exec sleep 60' & one=$!
      read -r command <"$T/in"
      wormhole presence enter till --exclusive --timeout 0 -- true 2>"$T/said"; echo $?
      grep -c "process $one (wormhole)" "$T/said"
      wormhole presence enter till --exclusive --timeout 100 -- echo entered & two=$!
      kill -KILL $one; wait $two; echo $?
      gone $command && echo dead
      """, within: .seconds(60))
    #expect(outcome.output == "75\n1\nentered\n0\ndead\n", "\(outcome)")
  }

  /// ```
  /// first                       second
  /// is stopped, and its command
  ///                             takes the role over; in a directory it kills the command
  /// goes on: its command is
  /// asked to end, and killed
  /// ```
  @Test("One that was stopped and overtaken ends its command, and says so", .bothEngines)
  func overtaken() throws {
    let outcome = try Session().shell(
      """
      mkfifo "$T/in"
      wormhole presence enter till --exclusive -- sh -c '
        trap "echo asked" TERM; echo $$ >main; echo >"$T/in"; while :; do sleep 0.02; done' 2>"$T/said" &
      one=$!; read -r x <"$T/in"; kill -STOP $one $(cat main); stopped $(cat main)
      wormhole presence enter till --exclusive -- echo entered
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
      wormhole presence enter till --exclusive -- sh -c '
        echo "$WORMHOLE_FENCE" >fence; wormhole send a 1 --while till; echo $?
        wormhole queue put jobs 1 --while till >"$T/null"; echo $?'
      wormhole presence enter till --exclusive -- sh -c 'test "$WORMHOLE_FENCE" -gt "$(cat fence)"; echo $?'
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
}
