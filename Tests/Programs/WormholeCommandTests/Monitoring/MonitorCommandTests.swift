import Testing
import WormholeTestSupport

@testable import WormholeCommand

@Suite("wormhole monitor shows what happens", .blocking, .bothEngines)
struct MonitorCommandTests {
  /// `monitors` begins the command, `sees` waits for a line that has some text, `ends` ends it and
  /// prints its lines without times, numbers of processes and hosts, and without the calls, whose
  /// addresses differ.
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

  @Test("Messages, notifications and defaults, with their publishers")
  func values() throws {
    let outcome = try run(
      """
      wormhole send before 1
      monitors
      wormhole send tickets '{"film":"Metropolis"}'; sees Metropolis
      wormhole send "ä b" '{"$data":"AAAA"}'; sees 'data of 3 B'
      wormhole send before 2; sees 'before changed 2'
      wormhole remove tickets; sees 'tickets removed'
      wormhole notify set volume 7; sees 'volume changed 7'
      wormhole notify post volume; sees 'volume posted'
      wormhole defaults write volume 8; sees 'volume changed 8'
      wormhole defaults write other 9; sees 'other changed 9'
      wormhole defaults remove volume; sees 'volume removed'
      wormhole defaults write --suite s k '[1]'; sees 'k changed'
      ends
      """)
    let expected = """
      message tickets changed {"film":"Metropolis"}, process N (wormhole)
      message ä b changed data of 3 B, process N (wormhole)
      message before changed 2, process N (wormhole)
      message tickets removed
      notification volume changed 7, process N (wormhole)
      notification volume posted
      default volume changed 8, process N (wormhole)
      default other changed 9, process N (wormhole)
      default volume removed, process N (wormhole)
      default k changed in the suite "s" [1], process N (wormhole)

      """
    #expect(outcome.output == expected, "\(outcome)")
  }

  @Test("Peers that come and leave, requests, and entries on their way")
  func peers() throws {
    let outcome = try run(
      """
      monitors --except 'peer/till/files'
      wormhole peer serve till -- cat 2>"$T/said" & peer=$!
      sees 'till entered'
      says "$T/said" listening
      # It may be answered before the monitor knows the peer's mailbox.
      until grep -qsF 'request       till ' "$T/heard"; do
        wormhole peer request till '[7,8]' >"$T/null"
      done
      kill $peer; sees 'till left'
      # First, because it could be settled before the monitor knows its queue.
      wormhole peer send till '{"film":"M"}' >"$T/null"; sees ' sent '
      wormhole peer receive till >"$T/null" 2>&1 & receiver=$!
      sees 'messages for "till") entered' ' acknowledged '
      kill $receiver; wait $receiver 2>"$T/null"
      ends | grep -v '^request [0-9a-f]*-[0-9a-f]* '
      """)
    let queue = #"peer/till/messages (the messages for "till")"#
    #expect(outcome.output.contains("peer till entered, process N (wormhole)\n"), "\(outcome)")
    #expect(outcome.output.contains("\nrequest till "), "\(outcome)")
    #expect(outcome.output.contains("peer till left, process N (wormhole)\n"), "\(outcome)")
    // In a directory it may be settled before the monitor looks: then it shows neither the content nor
    // that it was taken.
    let isDirectory = TestEngine.current == .directory
    let content = #" {"film":"M"}"#
    let ways = [
      #"queue \#(queue) sent 1 entry of 82 B from "wormhole""# + (isDirectory ? "" : content),
      #"consumer \#(queue) entered"#,
      #"queue \#(queue) taken 1 entry from "wormhole""#,
      #"queue \#(queue) acknowledged 1 entry from "wormhole""#,
    ]
    let lines = outcome.output.split(separator: "\n").map(String.init)
    let seen = lines.map {
      let line = $0.replacing(", process N (wormhole)", with: "")
      return isDirectory ? line.replacing(content, with: "") : line
    }
    let mayMiss = isDirectory ? [ways[2]] : []
    let found = seen.filter(ways.contains).filter { !mayMiss.contains($0) }
    // A consumer and its queue are watched in different places.
    #expect(
      Set(found) == Set(ways).subtracting(mayMiss) && found.count == Set(found).count
        && found.first == ways[0], "\(outcome)")
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

  @Test("A peer that was killed has died, and has not left")
  func death() throws {
    let outcome = try run(
      """
      wormhole peer serve till -- cat 2>"$T/said" & peer=$!
      says "$T/said" listening
      monitors --only peer
      kill -KILL $peer; sees till
      ends
      """)
    #expect(outcome.output == "peer till died, process N (wormhole)\n", "\(outcome)")
  }

  @Test("Entries that are shown stay where they are")
  func entries() throws {
    let outcome = try run(
      """
      monitors --only queue
      wormhole peer send till '1' >"$T/null"; sees '"wormhole" 1'
      wormhole peer send till '2' >"$T/null"; sees '"wormhole" 2'
      kill $pid; wait $pid 2>"$T/null"
      wormhole peer receive till --count 2 2>"$T/null"
      """)
    #expect(outcome.output == "1\n2\n", "\(outcome)")
  }

  @Test("Patterns, kinds and exceptions choose the lines, and --count ends it")
  func filters() throws {
    let outcome = try run(
      """
      monitors 'film-*' 'seat?' --except '*-draft' --only message,notification --count 4 --json
      wormhole send film-a-draft 1; wormhole send other 1; wormhole send film-a 1; sees film-a
      wormhole notify post film-b; wormhole defaults write film-c 1
      sees film-b
      wormhole send seats 2; wormhole send seat 2; sees seats; wormhole send film-d 3
      finish; echo $?
      sed -E 's/.*"kind":"([a-z]*)","name":"([^"]*)".*/\\1 \\2/' "$T/heard"
      """)
    let expected = "0\nmessage film-a\nnotification film-b\nmessage seats\nmessage film-d\n"
    #expect(outcome.output == expected, "\(outcome)")
  }

  @Test("Every line of --json is an object with the same keys")
  func json() throws {
    let outcome = try run(
      """
      monitors --json --count 2
      wormhole send tickets 7; sees tickets; wormhole remove tickets
      finish
      sed -E 's/"time":\\{"[$]date":"[^"]*"\\}/"time":T/; s/"process":[0-9]+/"process":N/' "$T/heard"
      """)
    #expect(outcome.status == 0, "\(outcome)")
    let lines = outcome.output.split(separator: "\n")
    try #require(lines.count == 2, "\(outcome)")
    #expect(
      lines[0].hasPrefix(#"{"bytes":"#)
        && lines[0].hasSuffix(
          #""event":"changed","kind":"message","name":"tickets","process":N,"program":"wormhole","time":T,"value":7}"#
        ), "\(outcome)")
    #expect(lines[1] == #"{"event":"removed","kind":"message","name":"tickets","time":T}"#)
  }

  @Test("Of a burst the last state is shown, and --timeout ends with 124")
  func burst() throws {
    let outcome = try run(
      """
      wormhole send n 0; monitors --timeout 100
      for n in 1 2 3 4 5 6 7 8 9 10; do wormhole send n $n; wormhole send other$n $n; done
      sees 'n changed 10' 'other10 changed 10'; kill $pid; wait $pid 2>"$T/null"
      wormhole monitor --timeout 0.1 2>"$T/null"; echo $?
      """)
    #expect(outcome.output == "124\n", "\(outcome)")
  }

  @Test("Before the first use it waits, makes nothing, and then shows what that made")
  func firstUse() throws {
    let session = try Session()
    let outcome = try session.shell(
      Self.functions + """
        monitors --only message; read -r said <&3; echo "$said" >&2; ls -A "$C"
        wormhole send tickets 7; sees 'tickets changed 7'
        ends
        """)
    #expect(outcome.output == "message tickets changed 7, process N (wormhole)\n", "\(outcome)")
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
        wormhole send tickets 7; sees 'tickets changed 7'; ends
        """, within: .seconds(60))
    #expect(outcome.output == "message tickets changed 7, process N (wormhole)\n", "\(outcome)")
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

  @Test(
    "A message of a log, and a lease that is taken over",
    .onlyDirectories("etcd has neither logs nor leases"))
  func directoryOnly() throws {
    let outcome = try run(
      """
      monitors
      wormhole log append sales '"Metropolis"' >"$T/null"; sees Metropolis
      wormhole update slow -- sh -c 'kill -STOP $PPID; cat' 2>"$T/said" & late=$!
      stopped $late
      # The name of a process that has ended is not known.
      wormhole update slow -- sh -c \
        'until grep -qF "slow taken over" "$T/heard"; do sleep 0.01; done; echo 3'
      sees 'slow changed 3'
      ends; kill -CONT $late; wait $late || true
      """)
    let lines = outcome.output.split(separator: "\n")
    // The looks at two names have no order.
    let expected: Set<Substring> = [
      #"log sales appended message 1 "Metropolis", process N (wormhole)"#,
      "lease slow taken over from process N, process N (wormhole)",
      "message slow changed 3, process N (wormhole)",
    ]
    #expect(Set(lines) == expected, "\(outcome)")
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
      mkdir -m 700 "$C/values/bad"; echo '((((' >"$C/values/bad/value.plist"; sees 'bad changed cannot be read'
      mkdir -m 700 "$C/values/pipe"; mkfifo "$C/values/pipe/value.plist"; sees 'pipe changed cannot'
      mkdir -m 700 "$C/values/link"; ln -s /etc/passwd "$C/values/link/value.plist"; sees 'link changed cannot'
      ln -s / "$C/values/root"; ln -s "$C" "$C/logs"; mkdir -p "$C/queues/q/pending" "$C/queues/q/taken/a"
      mkfifo "$C/queues/q/pending/0000000000000001-a-1-5.plist"; sees 'q sent'
      mkdir -p "$C/values/good/lease"; echo x >"$C/values/good/lease/taken.plist"; sees 'good taken over'
      mkdir -p "$C/mailboxes/0-0" "$C/presence/p"; echo x >"$C/mailboxes/0-0/0000000000000001-a-1-5.plist"
      echo x >"$C/presence/p/member-0.plist"; sees 'request'
      wormhole send good 2; sees 'good changed 2'
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
      until wormhole send a 2; do sleep 0.05; done; sees 'a changed 2'; echo seen
      kill $pid; wait $pid 2>"$T/null"
      """)
    #expect(outcome.output.hasSuffix("seen\n"), "\(outcome)")
  }
}
