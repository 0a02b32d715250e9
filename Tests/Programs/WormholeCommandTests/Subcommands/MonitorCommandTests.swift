import Testing
import WormholeTestSupport

@testable import WormholeCommand

@Suite("wormhole monitor shows what happens", .blocking, .bothEngines)
struct MonitorCommandTests {
  /// `monitors` begins the command, `sees` waits for a line that has some text, `ends` ends it and
  /// prints its lines without times, numbers of processes and hosts.
  private static let functions = """
    monitors() { start monitor "$@" >"$T/heard"; }
    sees() { says "$T/heard" "$@"; }
    ends() {
      kill $pid; wait $pid 2>"$T/null"
      cut -c 15- "$T/heard" | tr -s ' ' |
        sed -E 's/process [0-9]+/process N/g; s/\\) on [^ ]+$/)/'
    }

    """

  private func run(_ script: String) throws -> Session.Outcome {
    try Session().shell(Self.functions + script, within: .seconds(60))
  }

  @Test("Values, notifications and defaults, with their publishers")
  func values() throws {
    let outcome = try run(
      """
      wormhole send before 1
      monitors
      wormhole send tickets '{"film":"Metropolis"}'; sees 'tickets changed'
      wormhole send "ä b" '{"$data":"AAAA"}'; sees 'ä b changed'
      wormhole send before 2; sees 'before changed'
      wormhole remove tickets; sees 'tickets removed'
      wormhole notify set volume 7; sees 'volume changed'
      wormhole notify post volume; sees 'volume posted'
      wormhole defaults write volume 8; sees 'defaults changed'
      wormhole defaults write --suite s k '[1]'; sees ' s changed'
      ends
      """)
    let expected = """
      value tickets changed, process N (wormhole)
      value ä b changed, process N (wormhole)
      value before changed, process N (wormhole)
      value tickets removed
      notification volume changed, process N (wormhole)
      notification volume posted
      default defaults changed, process N (wormhole)
      default s changed, process N (wormhole)

      """
    #expect(outcome.output == expected, "\(outcome)")
  }

  @Test("Peers that come and leave, and entries on their way")
  func peers() throws {
    let outcome = try run(
      """
      monitors --except 'peer/till/files'
      wormhole peer serve till -- cat 2>"$T/said" & peer=$!
      sees 'till entered'
      kill $peer; sees 'till left'
      wormhole peer send till '{"film":"M"}' >"$T/null"; sees 'messages changed'
      # It stays until it was seen: what enters and leaves between two looks shows in none.
      wormhole peer receive till >"$T/null" 2>&1 & peer=$!
      sees 'messages entered'
      until [ "$(grep -c 'messages changed' "$T/heard")" -gt 1 ]; do sleep 0.05; done
      kill $peer; sees 'messages left'
      ends
      """)
    let lines = outcome.output.split(separator: "\n").map(String.init)
    let expected: Set = [
      "peer till entered, process N (wormhole)", "peer till left, process N (wormhole)",
      #"queue peer/till/messages changed, sender "wormhole""#,
      "consumer peer/till/messages entered, process N (wormhole)",
      "consumer peer/till/messages left, process N (wormhole)",
    ]
    #expect(expected.isSubset(of: lines), "\(outcome)")
  }

  @Test("A consumer enters once and leaves once")
  func consumer() throws {
    let outcome = try run(
      """
      monitors --only consumer
      wormhole queue put jobs 1 >"$T/null"
      wormhole queue take jobs -- sh -c 'until grep -q entered "$T/heard"; do sleep 0.05; done'
      sees left; ends
      """)
    #expect(
      outcome.output == """
        consumer jobs entered, process N (wormhole)
        consumer jobs left, process N (wormhole)

        """, "\(outcome)")
  }

  @Test("A peer that was killed has left")
  func death() throws {
    let outcome = try run(
      """
      wormhole peer serve till -- cat 2>"$T/said" & peer=$!
      says "$T/said" listening
      monitors --only peer
      kill -KILL $peer; sees till
      ends
      """)
    #expect(outcome.output == "peer till left, process N (wormhole)\n", "\(outcome)")
  }

  @Test("Entries that are shown stay where they are")
  func entries() throws {
    let outcome = try run(
      """
      monitors --only queue
      wormhole peer send till '1' >"$T/null"; sees 'changed, sender "wormhole"'
      wormhole peer send till '2' >"$T/null"
      until [ "$(grep -c changed "$T/heard")" = 2 ]; do sleep 0.05; done
      kill $pid; wait $pid 2>"$T/null"
      wormhole peer receive till --count 2 2>"$T/null"
      """)
    #expect(outcome.output == "1\n2\n", "\(outcome)")
  }

  @Test("Patterns, kinds and exceptions choose the lines, and --count ends it")
  func filters() throws {
    let outcome = try run(
      """
      monitors 'film-*' 'seat?' --except '*-draft' --only value,notification --count 4 --json
      wormhole send film-a-draft 1; wormhole send other 1; wormhole send film-a 1; sees film-a
      wormhole notify post film-b; wormhole defaults write film-c 1
      sees film-b
      wormhole send seats 2; wormhole send seat 2; sees seats; wormhole send film-d 3
      finish; echo $?
      sed -E 's/.*"kind":"([a-z]*)","name":"([^"]*)".*/\\1 \\2/' "$T/heard"
      """)
    let expected = "0\nvalue film-a\nnotification film-b\nvalue seats\nvalue film-d\n"
    #expect(outcome.output == expected, "\(outcome)")
  }

  @Test("Every line of --json is an object with the same keys")
  func json() throws {
    let outcome = try run(
      """
      monitors --json --count 2
      wormhole send tickets 7; sees tickets; wormhole remove tickets
      finish
      sed -E 's/"time":"[^"]*"/"time":T/; s/"process":[0-9]+/"process":N/' "$T/heard"
      """)
    #expect(outcome.status == 0, "\(outcome)")
    let lines = outcome.output.split(separator: "\n")
    try #require(lines.count == 2, "\(outcome)")
    let first =
      #"{"event":"changed","kind":"value","name":"tickets","process":N,"program":"wormhole","time":T}"#
    #expect(lines[0] == first, "\(outcome)")
    #expect(lines[1] == #"{"event":"removed","kind":"value","name":"tickets","time":T}"#)
  }

  @Test("Of a burst the last state is shown, and --timeout ends with 124")
  func burst() throws {
    let outcome = try run(
      """
      wormhole send n 0; monitors --timeout 100
      for n in 1 2 3 4 5 6 7 8 9 10; do wormhole send n $n; wormhole send other$n $n; done
      sees 'n changed' 'other10 changed'; kill $pid; wait $pid 2>"$T/null"
      wormhole monitor --timeout 0.1 2>"$T/null"; echo $?
      """)
    #expect(outcome.output == "124\n", "\(outcome)")
  }

  @Test("Before the first use it waits, makes nothing, and then shows what that made")
  func firstUse() throws {
    let session = try Session()
    let outcome = try session.shell(
      Self.functions + """
        monitors --only value; read -r said <&3; echo "$said" >&2; ls -A "$C"
        wormhole send tickets 7; sees 'tickets changed'
        ends
        """)
    #expect(outcome.output == "value tickets changed, process N (wormhole)\n", "\(outcome)")
    #expect(outcome.errors.contains("no container yet; waiting for its first use"))
  }

  @Test(
    "The kernel reports the first use, because an entry may be sent and settled within moments",
    .onlyDirectories("on etcd it asks five times a second"))
  func seesFirstUse() throws {
    let outcome = try Session().shell(
      Self.functions + """
        start monitor >"$T/heard"
        until grep -qs '^inotify wd' /proc/$pid/fdinfo/*; do sleep 0.05; done
        wormhole send tickets 7; sees 'tickets changed'; ends
        """, within: .seconds(60))
    #expect(outcome.output == "value tickets changed, process N (wormhole)\n", "\(outcome)")
  }

  @Test(
    "It makes nothing and changes nothing in the container",
    .onlyDirectories("the files of the container are listed"))
  func readOnly() throws {
    let outcome = try run(
      """
      wormhole send a 1; wormhole notify post b; wormhole peer send till 1 >"$T/null"
      wormhole log append l 1 >"$T/null"
      list() { find "$C" -printf '%P %i %T@ %s\\n' | sort; }
      list >"$T/before"; monitors; list >"$T/after"; kill $pid; wait $pid 2>"$T/null"
      list >"$T/last"; cmp "$T/before" "$T/after" && cmp "$T/before" "$T/last" && echo same
      """)
    #expect(outcome.output == "same\n", "\(outcome)")
  }

  @Test("A message of a log", .onlyDirectories("etcd has no logs"))
  func log() throws {
    let outcome = try run(
      """
      monitors
      wormhole log append sales '"Metropolis"' >"$T/null"; sees 'sales appended'
      ends
      """)
    #expect(outcome.output == "log sales appended, process N (wormhole)\n", "\(outcome)")
  }

  @Test(
    "Damaged and hostile files are lines, and the next change is shown all the same",
    .onlyDirectories("a program plants files"))
  func hostile() throws {
    let outcome = try run(
      """
      wormhole send good 1
      mkdir -m 700 "$C/values/early"; echo '((((' >"$C/values/early/value.plist"
      monitors
      mkdir -m 700 "$C/values/bad"; echo '((((' >"$C/values/bad/value.plist"; sees 'bad changed'
      mkdir -m 700 "$C/values/pipe"; mkfifo "$C/values/pipe/value.plist"; sees 'pipe changed'
      mkdir -m 700 "$C/values/link"; ln -s /etc/passwd "$C/values/link/value.plist"; sees 'link changed'
      ln -s / "$C/values/root"; ln -s "$C" "$C/logs"; mkdir -p "$C/queues/q/pending" "$C/queues/q/taken/a"
      mkfifo "$C/queues/q/pending/0000000000000001-a-1-5.plist"; sees 'q changed'
      mkdir -p "$C/values/good/lease"; echo x >"$C/values/good/lease/taken.plist"
      mkdir -p "$C/mailboxes/0-0" "$C/presence/p"; echo x >"$C/mailboxes/0-0/0000000000000001-a-1-5.plist"
      echo x >"$C/presence/p/member-0.plist"
      wormhole send good 2; sees 'good changed'
      kill $pid; wait $pid 2>"$T/null"; grep -c early "$T/heard"
      """)
    #expect(outcome.output == "0\n", "\(outcome)")
  }

  @Test(
    "A container that is removed and made again is shown", .onlyDirectories("it is a directory"))
  func replaced() throws {
    let outcome = try run(
      """
      wormhole send a 1; monitors
      rm -r "$C"; mkdir -m 700 "$C"
      until wormhole send a 2; do sleep 0.05; done; sees 'a changed'; echo seen
      kill $pid; wait $pid 2>"$T/null"
      """)
    #expect(outcome.output.hasSuffix("seen\n"), "\(outcome)")
  }
}
