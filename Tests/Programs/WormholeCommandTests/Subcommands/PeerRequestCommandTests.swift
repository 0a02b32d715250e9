import Testing
import WormholeTestSupport

/// Each line of a schedule is a gate: `start` returns when the command reports that it is ready.
@Suite("wormhole peer request ends in one way, and its server says so in time", .blocking)
struct PeerRequestCommandTests {
  @Test("Of thirty simultaneous requests each gets its own answer, and one server stays")
  func many() throws {
    let outcome = try Session().shell(
      """
      start peer serve watch --count 30 -- sh -c 'read n; echo $((n * n))'
      for n in $(seq 30); do
        { test "$(wormhole peer request watch $n --timeout 100)" = $((n * n)) && echo right; } &
      done | sort | uniq -c | sed 's/^ *//'
      finish; echo $?
      """)
    #expect(outcome.output == "30 right\n0\n", "\(outcome)")
  }

  /// It used to get lost, because the end of the server was reported before its last answer was
  /// read.
  @Test("The answer of a server that ends at once arrives")
  func lastAnswer() throws {
    let outcome = try Session().shell(
      """
      for server in 1 2 3 4; do
        for round in 1 2 3 4 5 6; do
          mkfifo "$T/$server-$round"
          wormhole peer serve $server --count 1 -- echo 1 2>"$T/$server-$round" &
          read -r word <"$T/$server-$round"; wormhole peer request $server 0
        done &
      done | uniq -c | sed 's/^ *//'
      """)
    #expect(outcome.output == "24 1\n", "\(outcome)")
  }

  /// ```
  /// server                      sender
  ///                             asks
  /// its command runs, is killed
  /// with the server
  ///                             hears at once that it has ended
  /// ```
  @Test("When the server is killed, its sender does not wait for the deadline", .bothEngines)
  func killed() throws {
    let outcome = try Session().shell(
      """
      mkfifo "$T/in"
      wormhole peer serve watch -- sh -c 'echo $$ >"$T/in"; exec sleep 60' 2>"$T/said" & server=$!
      says "$T/said" listening
      wormhole peer request watch 1 --timeout 100 & sender=$!
      read -r command <"$T/in"; kill -9 $server $command
      wait $sender; echo $?
      """)
    #expect(outcome.output == "69\n", "\(outcome)")
    #expect(outcome.errors.contains("did not answer before it has ended"), "\(outcome)")
  }

  @Test("When the sender stops waiting, the command gets a signal to end", arguments: [15, 9])
  func abandoned(_ signal: Int) throws {
    let outcome = try Session().shell(
      """
      mkfifo "$T/in"
      start peer serve watch --count 2 -- sh -c 'read n; test $n = 2 && echo 2 && exit
        trap "echo asked >\\"$T/asked\\"; exit" TERM; echo >"$T/in"; while :; do sleep 0.01; done'
      wormhole peer request watch 1 & sender=$!
      read -r x <"$T/in"; kill -\(signal) $sender
      wormhole peer request watch 2 --timeout 100; cat "$T/asked"
      """)
    #expect(outcome.output == "2\nasked\n", "\(outcome)")
  }

  /// ```
  /// first                       second
  /// serves; is stopped
  ///                             a request waits in vain
  ///                             replaces it, and answers
  /// goes on: says that it was
  /// replaced, and ends
  /// ```
  @Test("A stopped server is replaced, and ends when it is continued", .bothEngines)
  func replaced() throws {
    let outcome = try Session().shell(
      """
      wormhole peer serve watch -- echo 1 2>"$T/said" & first=$!
      says "$T/said" listening
      kill -STOP $first; stopped $first
      wormhole peer request watch 0 --timeout 2 2>"$T/late"; echo $?; grep -c stopped "$T/late"
      start peer serve watch --count 1 -- echo 2
      wormhole peer request watch 0
      kill -CONT $first; wait $first; echo $?
      """)
    #expect(outcome.output == "124\n1\n2\n1\n", "\(outcome)")
  }

  @Test(
    "On a signal while its command runs, it passes the signal on, and the reply still arrives",
    .bothEngines)
  func signals() throws {
    let outcome = try Session().shell(
      """
      mkfifo "$T/in"
      start peer serve watch -- sh -c 'trap "echo 7; exit" TERM; echo >"$T/in"
        while :; do sleep 0.01; done'
      wormhole peer request watch 1 & sender=$!
      read -r x <"$T/in"; kill $pid; finish; echo $?; wait $sender; echo $?
      """)
    #expect(outcome.output.split(separator: "\n").sorted() == ["0", "0", "7"], "\(outcome)")
  }

  @Test("Whatever the names, the request and the command's output, an error is one sentence")
  func hostile() throws {
    let outcome = try Session().shell(
      #"""
      name="$(printf '../a\nb\033')"
      start peer serve "$name" --count 4 -- sh -c '
        case "$(cat)" in
        1) printf "%s" "$WORMHOLE_SENDER" >"$T/sender"; printf "\"\\033\"" ;;
        2) printf "\\377\\000" ;;
        3) printf "\\033[31mno\\n"; exit 1 ;;
        *) echo true ;;
        esac'
      for n in 1 2 3; do
        wormhole peer request "$name" $n --from "$name" --timeout 60; echo $?
      done
      printf '"%s"' "$(head -c 1000000 /dev/zero | tr '\0' x)" >"$T/large"
      wormhole peer request "$name" --timeout 60 <"$T/large"
      finish; test "$(cat "$T/sender")" = "$name" && echo same
      wormhole peer list | wc -l
      """#)
    #expect(outcome.output == "1\n1\n1\ntrue\nsame\n2\n", "\(outcome)")
    #expect(!outcome.errors.contains("\u{1B}"), "\(outcome)")
  }
}
