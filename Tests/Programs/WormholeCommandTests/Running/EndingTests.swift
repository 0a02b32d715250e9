import Testing
import WormholeTestSupport

@testable import WormholeCommand

@Suite("A command's end says what became of its work", .blocking)
struct EndingTests {
  @Test("A command that reaches its --limit has failed, whatever status it ends with")
  func limit() throws {
    let outcome = try Session().shell(
      """
      wormhole queue put jobs 1 >"$T/null"
      wormhole queue take jobs --limit 0.2 --retries 0 -- \\
        sh -c 'trap "exit 0" TERM; while :; do sleep 0.05; done' 2>"$T/said"; echo $?
      wormhole queue list jobs --json | grep -o '"reason":"[^"]*'
      """)
    #expect(
      outcome.output == """
        124
        "reason":"sh was asked to end, because it had run for 0.2 s

        """, "\(outcome)")
  }

  @Test("Entries whose number cannot be printed are removed all the same, and the error says so")
  func purged() throws {
    let outcome = try Session().shell(
      """
      for value in 1 2; do wormhole queue put jobs $value >"$T/null"; done
      wormhole queue remove jobs --all --yes >/dev/full 2>said; echo $?; wormhole queue list jobs; echo $?
      grep -c 'cannot write to standard output: .*; 2 entries were removed' said
      """)
    #expect(outcome.output == "74\n1\n1\n", "\(outcome)")
  }

  @Test("An entry that has no form in the wanted output is kept for another")
  func unprintable() throws {
    let outcome = try Session().shell(
      #"""
      wormhole queue put jobs '"\u0001"' >"$T/null"
      wormhole queue take jobs --format plist --timeout 0 2>"$T/said"; echo $?
      wormhole queue retry jobs --failed >"$T/null"; wormhole queue take jobs --timeout 0
      wormhole send p1 '"\u0001"'; wormhole send p2 2
      wormhole read 'p*' --format plist 2>"$T/said" | grep -c '<integer>2</integer>'
      wormhole log append l '"\u0001"' >"$T/null"; wormhole log append l 3 >"$T/null"
      wormhole log read l --subscriber s --format plist 2>"$T/said" | grep -c '<integer>3</integer>'
      wormhole log read l --subscriber s; echo $?
      """#)
    #expect(outcome.output == "65\n\"\\u0001\"\n1\n1\n1\n", "\(outcome)")
  }

  @Test("A signal that ends a wait is the status, so that it is not taken for a conflict")
  func waiting() throws {
    let outcome = try Session().shell(
      """
      start lock --name n -- sh -c 'echo listening >&2; exec sleep 60'; holder=$pid
      wormhole lock --name n -- true & waiter=$!
      while kill -TERM $waiter 2>"$T/null"; do sleep 0.05; done &
      wait $waiter; echo $?; kill $holder; wait $holder 2>"$T/null"; wait
      """, within: .seconds(60))
    #expect(outcome.output == "143\n", "\(outcome)")
  }

  @Test("SIGQUIT ends a command at once, and is no crash")
  func quit() throws {
    // A shell starts what it does not wait for with the signal ignored.
    let outcome = try Session().shell(
      """
      ulimit -c 0; mkfifo gate
      python3 -c 'import os, signal, sys; signal.signal(signal.SIGQUIT, signal.SIG_DFL)
      os.execvp(sys.argv[1], sys.argv[1:])' wormhole listen a 2>gate & pid=$!
      exec 3<gate; read -r word <&3; kill -QUIT $pid; wait $pid; echo $?; cat <&3
      """, within: .seconds(60))
    #expect(outcome.output == "131\n", "\(outcome)")
  }

  @Test("Those that share a lock never meet a conflict, also if they do not wait")
  func sharing() throws {
    let outcome = try Session().shell(
      """
      : >file
      for n in 1 2 3 4 5 6 7 8; do
        for m in 1 2 3; do wormhole lock -s -n file -- true || echo failed; done & done
      wait
      """, within: .seconds(60))
    #expect(outcome.output == "", "\(outcome)")
  }

  @Test("Words of any script are words, and a mark of the byte order is none")
  func words() throws {
    let outcome = try Session().shell(
      #"""
      for word in 三菱 ½cup 八重洲; do wormhole send w "$word" && wormhole read w --format raw; done
      printf '\357\273\277{"a":1}\n' | wormhole send b --lines 2>"$T/said"; echo $?
      wormhole queue put jobs 1 --at 2300-01-01T00:00:00Z 2>"$T/said"; echo $?
      """#)
    #expect(outcome.output == "三菱\n½cup\n八重洲\n65\n64\n", "\(outcome)")
  }
}
