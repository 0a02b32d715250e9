import Testing
import WormholeTestSupport

/// Each line of a schedule is a gate: `start` returns when the command reports that it receives.
@Suite("wormhole peer receive acknowledges what was handled, and nothing else", .blocking)
struct PeerMessageCommandTests {
  /// ```
  /// receiver                    sender
  ///                             sends 1 2 3
  /// its command has 1, is
  /// killed with it
  ///                             hears that 1 is not processed
  /// another gets 1 again,
  /// marked, then 2 3
  /// ```
  @Test(
    "Killed in the middle of a command, the message is delivered again, first and marked",
    .bothEngines)
  func killed() throws {
    let outcome = try Session().shell(
      """
      for n in 1 2 3; do wormhole peer send watch $n --from phone --receipt >>"$T/ids"; done
      mkfifo "$T/in"
      wormhole peer receive watch -- sh -c 'echo $$ >"$T/in"; exec sleep 60' 2>"$T/said" &
      read -r command <"$T/in"; kill -9 $! $command; wait $!
      wormhole peer transfers phone | grep -o '"message":1.*'
      wormhole peer receive watch --count 3 -- sh -c 'echo "$(cat) $WORMHOLE_REDELIVERY"'
      wormhole peer transfers phone | grep -c processed
      """)
    #expect(
      outcome.output
        == "\"message\":1,\"peer\":\"watch\",\"status\":\"taken\"}\n1 1\n2 0\n3 0\n3\n",
      "\(outcome)")
  }

  @Test(
    "A line that cannot be written is not acknowledged: the next receiver gets it", .bothEngines)
  func fullOutput() throws {
    let outcome = try Session().shell(
      """
      for n in 1 2; do wormhole peer send watch $n >>"$T/ids"; done
      wormhole peer receive watch 2>"$T/said" >/dev/full; echo $?
      wormhole peer receive watch --count 2 --details 2>"$T/said" |
        sed 's/.*"message":\\(.\\),"redelivery":\\([a-z]*\\).*/\\1 \\2/'
      """)
    #expect(outcome.output == "74\n1 true\n2 false\n", "\(outcome)")
  }

  @Test(
    "On a signal it ends with status 0, or 1 if fewer arrived than requested",
    arguments: ["TERM", "INT", "HUP"])
  func signals(_ signal: String) throws {
    let outcome = try Session().shell(
      """
      mkfifo "$T/said"
      for count in "" "--count 2"; do
        # A shell has those it does not wait for ignore SIGINT.
        env --default-signal=INT wormhole peer receive watch $count 2>"$T/said" & receiver=$!
        read -r word <"$T/said"; kill -\(signal) $receiver; wait $receiver; echo $?
      done
      wormhole peer send watch 1 >"$T/id"; wormhole peer receive watch --count 1
      """)
    #expect(outcome.output == "0\n1\n1\n", "\(outcome)")
  }

  @Test("On a signal while its command runs, it passes the signal on and waits for the command")
  func passedOn() throws {
    let outcome = try Session().shell(
      """
      wormhole peer send watch 1 >>"$T/ids"; wormhole peer send watch 2 >>"$T/ids"
      mkfifo "$T/in"
      wormhole peer receive watch -- sh -c 'trap "echo finished; exit 0" TERM
        echo >"$T/in"; while :; do sleep 0.01; done' 2>"$T/said" &
      read -r x <"$T/in"; kill -TERM $!; wait $!; echo $?
      wormhole peer receive watch --count 1 2>/dev/null
      """)
    #expect(outcome.output == "finished\n0\n2\n", "\(outcome)")
  }

  /// ```
  /// first                       second
  /// its command has 1; stopped
  ///                             replaces it, gets 1 again
  /// goes on: acknowledges
  /// nothing, and says so
  /// ```
  @Test("A stopped receiver is replaced, and does no harm when it is continued", .bothEngines)
  func replaced() throws {
    let outcome = try Session().shell(
      """
      wormhole peer send watch 1 --from phone --receipt >>"$T/ids"
      mkfifo "$T/in" "$T/out"
      wormhole peer receive watch -- sh -c 'echo >"$T/in"; cat "$T/out"' 2>"$T/said" & first=$!
      read -r x <"$T/in"; kill -STOP $first; stopped $first
      wormhole peer receive watch --count 1 --details 2>/dev/null | grep -o '"redelivery":[a-z]*'
      : >"$T/out"; kill -CONT $first; wait $first; echo $?
      grep -c 'has replaced this one' "$T/said"
      wormhole peer transfers phone | grep -o '"status".*'
      """)
    #expect(
      outcome.output == "\"redelivery\":true\n1\n1\n\"status\":\"processed\"}\n", "\(outcome)")
  }

  // They were listed as stored until a receiver had ended them.
  @Test("A message and a file whose time has passed are listed as expired", .bothEngines)
  func expired() throws {
    let outcome = try Session().shell(
      """
      echo 1 >a; wormhole peer send watch 1 --from phone --expires 2 >"$T/id"
      wormhole peer send watch --file a --from phone --expires 2 >"$T/id"
      pause=0.1; until test "$(wormhole peer transfers phone | grep -c expired)" = 2; do pause; done
      wormhole peer transfers phone --forget ended >"$T/lines"
      wormhole peer transfers phone | grep -c expired
      """)
    #expect(outcome.output == "2\n", "\(outcome)")
  }

  /// ```
  /// receiver                    the others
  /// is killed with its command,
  /// which has 1; so is the next
  ///                             the third gets 2 only; 1 has failed, and is listed
  ///                             1 is sent again, and handled
  /// ```
  @Test("A message that kills its receivers fails after the allowed number of attempts")
  func deadly() throws {
    let outcome = try Session().shell(
      """
      for n in 1 2; do wormhole peer send watch $n --from phone --receipt >>"$T/ids"; done
      # Each has a FIFO of its own: a killed command may keep its end of the last one for a moment.
      for n in 1 2; do
        mkfifo "$T/in"
        wormhole peer receive watch --retries 1 -- sh -c 'echo $$ >"$T/in"; exec sleep 60' 2>"$T/said" &
        read -r command <"$T/in"; rm "$T/in"; kill -9 $! $command; wait $!
      done
      wormhole peer receive watch --count 1 --retries 1 -- cat 2>"$T/said"
      wormhole peer transfers phone | grep -o '"message":1.*'
      wormhole status --json | grep -o '"failed":\\[[^]]*' | grep -o '"reason":"[^"]*"'
      wormhole peer transfers --retry "$(head -1 "$T/ids")" >"$T/new"
      wormhole peer receive watch --count 1 --retries 1 -- sh -c 'echo "$(cat) $WORMHOLE_ATTEMPT"'
      wormhole status --json | grep -o '"failed":\\[[^]]*\\]'; wormhole doctor
      """)
    let reason = "\"reason\":\"each of 2 attempts ended without a result\""
    #expect(
      outcome.output.withoutInotifyWarning
        == "2\n\"message\":1,\"peer\":\"watch\",\(reason),\"status\":\"failed\"}\n\(reason)\n"
        + "1 1\n\"failed\":[]\nnothing wrong\n", "\(outcome)")
  }

  @Test("A second receiver names the first, and two names are separate")
  func second() throws {
    let outcome = try Session().shell(
      """
      start peer receive watch
      wormhole peer receive watch --timeout 0.1 2>"$T/said"; echo $?
      grep -c "process $pid (wormhole)" "$T/said"
      wormhole peer receive other --timeout 0.01 2>/dev/null; echo $?
      kill $pid; finish
      """)
    #expect(outcome.output == "1\n1\n124\n", "\(outcome)")
  }

  @Test("Whatever the name of a peer or sender, messages arrive, and ids are one plain line")
  func hostileNames() throws {
    let outcome = try Session().shell(
      #"""
      for name in ../x / % %2F . 'a b;$(x)' "$(printf 'a\nb\033[31m')" '@peer/launch/x' é; do
        id=$(wormhole peer send "$name" 1 --from "$name" --receipt) || exit 9
        case $id in *[!A-Za-z0-9%/._@+=,-]*) echo "odd: $id";; esac
        wormhole peer receive "$name" --count 1 2>/dev/null -- sh -c '
          test "$WORMHOLE_SENDER" = "$0" && test "$WORMHOLE_TRANSFER" = "$1" && cat' "$name" "$id"
        wormhole peer transfers "$name" | grep -c processed
      done | sort | uniq -c | sed 's/^ *//'
      ls -A "$C"; ls -A "$C/.."
      long=$(printf 'x%.0s' $(seq 300))
      wormhole peer send "$long" 1; echo $?; wormhole peer send x 1 --from "$long"; echo $?
      wormhole peer receive "$long"; echo $?
      wormhole doctor
      """#)
    let lines = outcome.output.withoutInotifyWarning.split(separator: "\n").map(String.init)
    #expect(lines.prefix(2) == ["18 1", "container.plist"], "\(outcome)")
    #expect(lines.suffix(4) == ["65", "65", "65", "nothing wrong"], "\(outcome)")
  }

  @Test(
    "Hostile bytes in the middle of a queue are put aside; the rest flows, and its sender learns",
    arguments: HostileFiles.all)
  func hostileBytes(_ name: String, _ bytes: [UInt8]) throws {
    let session = try Session()
    let second = try session.shell(
      """
      for n in 1 2 3; do wormhole peer send watch $n --from phone --receipt; done >"$T/ids"
      second=$(sed -n '2s,.*messages/,,; 2s,/[0-9]*$,,; 2p' "$T/ids")
      rm "$C/own/queues/peer%2Fwatch%2Fmessages/pending/$second" && printf %s "$second"
      """)
    try session.plant(bytes, at: "own/queues/peer%2Fwatch%2Fmessages/pending/" + second.output)
    let outcome = try session.shell(
      """
      ulimit -v 1048576
      wormhole peer receive watch --count 2
      wormhole peer transfers phone | grep -o '"status":"[a-z]*"'
      """)
    let ends = ["processed", "failed", "processed"].map { "\"status\":\"\($0)\"\n" }
    #expect(outcome.output == "1\n3\n" + ends.joined(), "\(name): \(outcome)")
  }
}
