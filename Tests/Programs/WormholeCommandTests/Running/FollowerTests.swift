import Testing
import WormholeTestSupport

/// `wormhole notify wait x -- echo hi` waited for notifications of the names `echo` and `hi`.
@Suite("A command that follows something runs another one for each line", .blocking, .bothEngines)
struct FollowerTests {
  /// What is followed, what happens, the lines that the command gets, and the name that it gets.
  static let cases: [(follower: String, change: String, line: String, name: String)] = [
    ("listen seats", "wormhole send seats 7", "7", "seats"),
    ("notify wait lights", "wormhole notify post lights", "lights", "lights"),
    (
      "defaults watch volume", "wormhole defaults write volume 7", #"{"key":"volume","new":7}"#,
      "volume"
    ),
    ("log read --follow events", "wormhole log append events 7", "7", "events"),
    ("monitor seats --json", "wormhole send seats 7", #"{"event":"#, "seats"),
    ("presence wait till", "wormhole presence enter till -- true", #"{""#, "till"),
    (
      "peer receive watch --files .",
      "echo 7 >f; wormhole peer send watch --file f", #"{"id":"#, "./f-2"
    ),
  ]

  @Test("The line is on standard input, the name in the environment, and a failure is the status")
  func command() throws {
    for (follower, change, line, name) in Self.cases {
      let count = follower.hasPrefix("presence") ? "" : "--count 1"
      let outcome = try Session().shell(
        """
        start \(follower) \(count) -- sh -c 'cat; echo "of $WORMHOLE_IDENTIFIER"; exit 7' >"$T/heard"
        until test -s "$T/heard"; do \(change) >"$T/null"; done
        finish; echo $?; cat "$T/heard"
        """)
      let lines = outcome.output.split(separator: "\n")
      #expect(lines.first == "7", "\(follower): \(outcome)")
      #expect(lines.dropFirst().first?.hasPrefix(line) == true, "\(follower): \(outcome)")
      #expect(lines.last?.hasPrefix("of ") == true, "\(follower): \(outcome)")
      #expect(lines.last?.hasSuffix(name) == true, "\(follower): \(outcome)")
      #expect(outcome.errors.contains("sh ended with status 7, given "), "\(follower): \(outcome)")
    }
  }

  @Test("The same holds for peers, which need no change to be printed")
  func peers() throws {
    let outcome = try Session().shell(
      """
      wormhole peer receive watch 2>"$T/said" & receiver=$!; says "$T/said" listening
      wormhole peer list --watch --count 1 -- sh -c 'cat; exit 7' 2>"$T/said"; echo $?
      kill $receiver; wait $receiver
      wormhole peer list -- cat 2>"$T/said"; echo $?
      """)
    #expect(outcome.output.hasPrefix("watch: "), "\(outcome)")
    #expect(outcome.output.hasSuffix("\n7\n64\n"), "\(outcome)")
  }

  @Test("A failure does not end it, and the status in the end is that of the last failure")
  func failures() throws {
    let outcome = try Session().shell(
      """
      start notify wait a b --count 3 -- sh -c 'cat >>"$T/heard"; test "$WORMHOLE_IDENTIFIER" = a'
      for name in a b a; do
        seen=$(cat "$T/heard" 2>"$T/null" | wc -l); wormhole notify post $name
        until test "$(cat "$T/heard" 2>"$T/null" | wc -l)" -gt "$seen"; do sleep 0.01; done
      done
      finish; echo $?; cat "$T/heard"
      """)
    #expect(outcome.output == "1\na\nb\na\n", "\(outcome)")
  }

  @Test("A command that ran when nobody is present has no line, and its status is that of the wait")
  func gone() throws {
    let outcome = try Session().shell(
      """
      wormhole presence wait till --gone -- sh -c 'wc -c; exit 3'; echo $?
      mkfifo "$T/out"
      holds wormhole presence enter till -- sh -c 'echo in >"$T/in"; read -r end <"$T/out"'
      entered=$pid
      start presence wait till --gone -- wc -c
      echo end >"$T/out"; finish; echo $?; wait $entered
      """)
    #expect(outcome.output == "0\n3\n0\n0\n", "\(outcome)")
  }
}
