import Testing
import WormholeTestSupport

@testable import WormholeCommand

@Suite("wormhole watch prints the events of inotifywait", .blocking)
struct WatchCommandTests {
  @Test("Every event has a line as of inotifywait, and its JSON")
  func lines() throws {
    let cases: [(PresenterEvent, String, String)] = [
      (.init(word: "MODIFY", path: "f"), "f MODIFY", #"{"event":"MODIFY","path":"f"}"#),
      (
        .init(word: "MOVE_SELF", path: "f", to: "/a b"), "f MOVE_SELF /a b",
        #"{"event":"MOVE_SELF","path":"f","to":"/a b"}"#
      ),
      (
        .init(word: "CREATE", path: "d", subitem: "a/b"), "d/a/ CREATE b",
        #"{"event":"CREATE","path":"d","subitem":"a/b"}"#
      ),
      (
        .init(word: "DELETE", path: "./", subitem: "a"), "./ DELETE a",
        #"{"event":"DELETE","path":"./","subitem":"a"}"#
      ),
      (
        .init(word: "MOVED_FROM", path: "d", subitem: "a\tb", to: "c\nd"),
        #"d/ MOVED_FROM a\tb"#,
        #"{"event":"MOVED_FROM","path":"d","subitem":"a\tb","to":"c\nd"}"#
      ),
    ]
    for (event, line, json) in cases {
      #expect(event.line == line)
      #expect(try JSONWriter.string(event) == json)
    }
  }

  @Test("Unread events become one, and later ones are kept; one that says nothing new is left out")
  func backlog() {
    let backlog = PresenterEvent.backlog(capacity: 3)
    let event = { (name: String) in PresenterEvent(word: "CREATE", path: "x", subitem: name) }
    for name in ["a", "b", "c", "d", "e", "e"] { backlog.add(event(name)) }
    for event in [.init(word: "Q_OVERFLOW", path: "x"), event("d"), event("e")] {
      #expect(backlog.next(until: .now) == event)
    }
    #expect(backlog.next(until: .now) == nil)
  }

  // It was three lines, so the loop that a page shows ran three times.
  @Test(
    "A change under a lock is one line, and one run of a command, however it is made",
    arguments: [
      "sh -c 'echo 2 >f'", "sh -c 'echo 2 >f; sleep 0.1; echo 3 >>f; sleep 0.1; echo 4 >>f'",
      "sh -c 'cp f g; mv g f'", #"sh -c 'echo 2 >"$1"' sh {}"#,
      #"sh -c 'echo 2 >"$1"; sleep 0.1; echo 3 >>"$1"' sh {}"#,
    ], [true, false])
  func locked(change: String, hasCommand: Bool) throws {
    let (command, suffix) =
      hasCommand
      ? (#"-- sh -c 'read -r line; echo "$line of $(basename $WORMHOLE_IDENTIFIER)"'"#, " of f")
      : ("", "")
    let outcome = try Session().shell(
      """
      echo 1 >f; start watch f \(command) >"$T/heard"
      wormhole lock f -- true
      wormhole lock f -- \(change)
      hears 'f MODIFY\(suffix)'; rm f; hears 'f DELETE_SELF\(suffix)'
      kill $pid; finish 2>"$T/said"; cat "$T/heard"
      """)
    #expect(outcome.output == "f MODIFY\(suffix)\nf DELETE_SELF\(suffix)\n", "\(outcome)")
  }

  @Test("A change is one line, too, if the process that has the lock is killed")
  func killed() throws {
    let outcome = try Session().shell(
      """
      mkfifo "$T/out"; echo 1 >f; start watch f >"$T/heard"
      wormhole lock f -- sh -c 'echo 2 >f; echo 3 >f; echo $$ >"$T/out"; exec sleep 100' & locker=$!
      read -r command <"$T/out"; kill -KILL $locker; wait $locker 2>"$T/said"
      hears 'f MODIFY'; rm f; hears 'f DELETE_SELF'
      kill $pid $command; finish 2>"$T/said"; cat "$T/heard"
      """)
    #expect(outcome.output == "f MODIFY\nf DELETE_SELF\n", "\(outcome)")
  }

  @Test("A stopped watcher delays no process for long, and gets the change when it is continued")
  func stopped() throws {
    let outcome = try Session().shell(
      """
      echo 1 >f; start watch f >"$T/heard"
      kill -STOP $pid; stopped $pid
      wormhole lock f --timeout 100 -- sh -c 'echo 2 >{}' 2>"$T/said"; echo $?
      kill -CONT $pid; hears 'f MODIFY'; kill $pid; finish
      grep -c 'went on without an answer' "$T/said"
      """)
    #expect(outcome.output == "0\n1\n", "\(outcome)")
  }

  @Test("Without a writable place for its user's containers it ends with status 77")
  func denied() throws {
    let outcome = try Session().shell(
      """
      test "$(id -u)" = 0 || map=--map-root-user
      mkdir home; unshare $map --mount sh -c 'mount -t tmpfs -o ro none home
        HOME="$T/home" wormhole watch f'; echo $?
      """)
    #expect(outcome.output == "77\n", "\(outcome)")
  }

  @Test("A link that is pointed elsewhere is followed")
  func linkPointedElsewhere() throws {
    let outcome = try Session().shell(
      """
      mkdir 1 2; echo a >1/a; echo b >2/b; ln -s 1 current; echo 1 >one; ln -s one file
      wormhole watch file >"$T/said" 2>"$T/ready" & watcher=$!
      says "$T/ready" listening
      start watch current >"$T/heard"
      ln -s 2 new; mv -T new current; hears 'current/ DELETE a' 'current/ CREATE b'
      echo c >2/c; hears 'current/ CREATE c'
      rm file; says "$T/said" DELETE_SELF; ln -s 2/b file; says "$T/said" CREATE
      kill $pid $watcher; finish; head -2 "$T/said"
      """)
    #expect(outcome.output == "file DELETE_SELF\nfile CREATE\n", "\(outcome)")
  }

  @Test("The reader of its output may stop reading")
  func closedOutput() throws {
    let outcome = try Session().shell(
      """
      mkdir d
      { wormhole watch d 2>"$T/said"; echo $? >"$T/status"; } | head -1 &
      says "$T/said" listening
      touch d/a
      until test -s "$T/status"; do echo >>d/a; sleep 0.01; done; wait
      cat "$T/status"; cat "$T/said"
      """)
    #expect(outcome.output == "d/ CREATE a\n141\nlistening\n", "\(outcome)")
  }
}
