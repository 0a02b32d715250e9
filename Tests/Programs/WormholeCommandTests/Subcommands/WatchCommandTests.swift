import Testing
import WormholeTestSupport

@testable import WormholeCommand

@Suite("wormhole watch shows what a presenter receives", .blocking)
struct WatchCommandTests {
  @Test("Every event has a line and its JSON")
  func lines() throws {
    let cases: [(PresenterEvent, String, String)] = [
      (.init(word: "changed"), "changed", #"{"event":"changed"}"#),
      (.init(word: "moved", to: "/a b"), "moved /a b", #"{"event":"moved","to":"/a b"}"#),
      (.init(word: "deleting"), "deleting", #"{"event":"deleting"}"#),
      (
        .init(word: "relinquish", other: "reader"), "relinquish reader",
        #"{"event":"relinquish","other":"reader"}"#
      ),
      (
        .init(word: "reacquire", other: "writer"), "reacquire writer",
        #"{"event":"reacquire","other":"writer"}"#
      ),
      (.init(word: "save"), "save", #"{"event":"save"}"#),
      (
        .init(word: "appeared", subitem: "a/b"), "appeared a/b",
        #"{"event":"appeared","subitem":"a/b"}"#
      ),
      (.init(word: "changed", subitem: "a"), "changed a", #"{"event":"changed","subitem":"a"}"#),
      (.init(word: "deleting", subitem: "a"), "deleting a", #"{"event":"deleting","subitem":"a"}"#),
      (
        .init(word: "moved", subitem: "a", to: "b"), "moved a\tb",
        #"{"event":"moved","subitem":"a","to":"b"}"#
      ),
      (
        .init(word: "moved", subitem: "a\tb", to: "c\nd"), #"moved a\tb"# + "\t" + #"c\nd"#,
        #"{"event":"moved","subitem":"a\tb","to":"c\nd"}"#
      ),
    ]
    for (event, line, json) in cases {
      #expect(event.line == line)
      #expect(try JSONWriter.string(event.propertyList) == json)
    }
  }

  @Test("Unread changes become one change, and later ones are kept")
  func backlog() {
    let backlog = PresenterEvent.backlog(capacity: 3)
    for name in ["a", "b", "c", "d", "e"] { backlog.add(.init(word: "appeared", subitem: name)) }
    let expected: [PresenterEvent] = [
      .init(word: "changed"), .init(word: "appeared", subitem: "d"),
      .init(word: "appeared", subitem: "e"),
    ]
    for event in expected { #expect(backlog.next(until: .now) == event) }
    #expect(backlog.next(until: .now) == nil)
  }

  @Test("A stopped watcher delays no process for long, and gets the change when it is continued")
  func stopped() throws {
    let outcome = try Session().shell(
      """
      echo 1 >f; start watch f >"$T/heard"
      kill -STOP $pid; stopped $pid
      wormhole lock f --timeout 100 -- sh -c 'echo 2 >{}' 2>"$T/said"; echo $?
      kill -CONT $pid; hears changed; kill $pid; finish
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

  @Test("Several watchers of one item are all notified")
  func several() throws {
    let outcome = try Session().shell(
      """
      echo 1 >f
      start watch f >"$T/heard"; first=$pid
      wormhole watch f --count 1 >"$T/other" 2>"$T/second" & second=$!
      says "$T/second" listening
      wormhole lock f -- true
      hears 'relinquish writer' 'reacquire writer'; wait $second; cat "$T/other"
      kill $first; finish
      """)
    #expect(outcome.output == "relinquish writer\n", "\(outcome)")
  }

  @Test("For a directory behind a link, paths within it are reported")
  func link() throws {
    let outcome = try Session().shell(
      """
      mkdir d; ln -s d l
      start watch l >"$T/heard"
      touch d/a
      hears 'appeared a'; kill $pid; finish; head -1 "$T/heard"
      """)
    #expect(outcome.output == "appeared a\n", "\(outcome)")
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
    #expect(outcome.output == "appeared a\n141\nlistening\n", "\(outcome)")
  }
}
