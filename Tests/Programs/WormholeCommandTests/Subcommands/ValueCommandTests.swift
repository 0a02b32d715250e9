import Testing
import WormholeTestSupport

@Suite("Messages from a shell", .blocking) struct ValueCommandTests {
  @Test(
    "update --add loses no addition of another process, and refuses what is no number", .bothEngines
  )
  func increment() throws {
    let outcome = try Session().shell(
      """
      wormhole update n --add 1; wormhole update n --add 4; wormhole update n --add -2; wormhole update n --add 0.5
      wormhole update new --add 1 >"$T/null"
      for worker in 1 2 3 4; do
        for step in 1 2 3 4 5; do wormhole update many --add 1 || echo failed; done >"$T/out-$worker" &
      done; wait
      wormhole read many; cat "$T"/out-? | sort -n | uniq | wc -l
      wormhole send text hello; wormhole update text --add 1 2>"$T/said"; echo $?; wormhole read text
      wormhole send big 9223372036854775807; wormhole update big --add 1 2>"$T/said"; echo $?
      wormhole update n --add 1 word 2>"$T/said"; echo $?
      """, within: .seconds(60))
    #expect(
      outcome.output == "1\n5\n3\n3.5\n20\n20\n65\n\"hello\"\n65\n64\n", "\(outcome)")
  }

  @Test("A version is compared and set: of two that have seen the same, one writes", .bothEngines)
  func versions() throws {
    let outcome = try Session().shell(
      """
      version() { wormhole ls -l "$1" --json | sed 's/.*"version":"\\([^"]*\\)".*/\\1/'; }
      wormhole send x 0 --if-version none; echo $?
      wormhole send x 9 --if-version none 2>"$T/said"; echo $?
      seen=$(version x)
      grep -cF "$seen" "$T/said"
      wormhole send x 1 --if-version "$seen" & one=$!
      wormhole send x 1 --if-version "$seen" & two=$!
      wait $one; a=$?; wait $two; b=$?; echo $((a + b)); wormhole read x
      wormhole remove x --if-version "$seen" 2>>"$T/null"; echo $?
      wormhole remove x --if-version "$(version x)"; echo $?
      wormhole remove x --if-version none; echo $?
      wormhole send x 2 --if-version none --expires 600; wormhole ls -l x --json | grep -c expires
      wormhole remove --all --if-version none 2>"$T/said"; echo $?
      """)
    #expect(outcome.output == "0\n1\n1\n1\n1\n1\n0\n0\n1\n64\n", "\(outcome)")
  }

  // The status was 0, as if there had been one.
  @Test("A message that does not exist cannot be removed, and the others are", .bothEngines)
  func removing() throws {
    let outcome = try Session().shell(
      """
      wormhole remove x 2>"$T/said"; echo $?; wormhole send x 1
      wormhole remove nosuch x 2>"$T/said"; echo $?; grep -c '"nosuch": there is no such' "$T/said"
      wormhole remove x 2>"$T/said"; echo $?; wormhole remove --all; echo $?
      """)
    #expect(outcome.output == "1\n1\n1\n1\n0\n", "\(outcome)")
  }

  @Test("With --lines each line is sent as it comes; one that is no value is reported and left out")
  func lines() throws {
    let outcome = try Session().shell(
      """
      start listen feed >"$T/heard"
      mkfifo "$T/in"; wormhole send feed --lines <"$T/in" 2>"$T/said" & sender=$!
      exec 4>"$T/in"
      echo '{"a":1}' >&4; hears '{"a":1}'
      printf '\\nword\\n{bad\\n' >&4; hears '"word"'
      printf '[2]' >&4; exec 4>&-
      wait $sender; echo $?; hears '[2]'; kill $pid
      cat "$T/said"
      printf 'a\\n\\n1\\n' | wormhole queue put jobs --lines --as string | wc -l
      wormhole queue list jobs --next --count 3 --json | jq -c .value
      printf '1\\n2\\n' >"$T/file"; wormhole log append sales --lines --file "$T/file"
      echo 1 | wormhole send feed 1 --lines 2>"$T/null"; echo $?
      # No UTF-8: data all the same, and otherwise no reason to leave out the next line.
      printf '\\377\n' | wormhole send feed --lines --as data; wormhole read feed
      printf '\\377\n5\n' | wormhole send feed --lines 2>"$T/said"; echo $?; wormhole read feed
      """)
    #expect(
      outcome.output == """
        65
        wormhole: cannot read line 4: bad JSON at line 1, column 2: expected a key in quotes, found 'b'
        3
        "a"
        ""
        "1"
        1
        2
        64
        {"$data":"/w=="}
        65
        5

        """, "\(outcome)")
  }

  @Test("Nulls are refused, or dropped with their keys and elements")
  func nulls() throws {
    let outcome = try Session().shell(
      """
      wormhole send x '{"a":null,"b":[1,null],"c":{"d":null}}' 2>"$T/said"; echo $?
      wormhole send x '{"a":null,"b":[1,null],"c":{"d":null}}' --nulls drop; wormhole read x
      echo null | wormhole send x --nulls drop 2>"$T/said"; echo $?
      wormhole update x --nulls drop -- echo '[null,7]'; wormhole read x
      wormhole read x --format pretty
      """)
    #expect(
      outcome.output == """
        65
        {"b":[1],"c":{}}
        65
        [7]
        [
          7
        ]

        """, "\(outcome)")
  }

  @Test("update begins with the default where there is no message, and has a timeout")
  func update() throws {
    let outcome = try Session().shell(
      """
      wormhole update n --default 5 -- sh -c 'read n; echo $((n + 1))'; wormhole read n
      wormhole update n --default 5 -- sh -c 'read n; echo $((n + 1))'; wormhole read n
      wormhole update n --expires 600 -- echo 8; wormhole ls -l n --json | grep -c expires
      wormhole update n --add 1; wormhole ls -l n --json | grep -c expires
      wormhole update n --add 1 --expires 600; wormhole ls -l n --json | grep -c expires
      wormhole update n -- cat; wormhole ls -l n --json | grep -c expires
      wormhole update n -- echo 7
      wormhole update n --default '{' -- cat 2>"$T/said"; echo $?
      holds wormhole update n -- sh -c 'echo in >"$T/in"; exec sleep 60'
      wormhole update n --timeout 0 -- cat 2>"$T/said"; echo $?
      wormhole update n --add 1 --timeout 0 2>"$T/said"; echo $?; wormhole send n 1 --timeout 0 2>"$T/said"; echo $?
      kill -9 $pid
      """)
    #expect(outcome.output == "6\n7\n1\n9\n0\n10\n1\n1\n65\n124\n124\n124\n", "\(outcome)")
  }

  @Test("With a term, others change the message although COMMAND runs, which then runs again")
  func updateTerm() throws {
    let outcome = try Session().shell(
      """
      mkfifo "$T/out"
      holds wormhole update n --term 0.1 -- sh -c 'echo $WORMHOLE_ATTEMPT
        test $WORMHOLE_ATTEMPT = 2 || { echo in >"$T/in"; cat "$T/out"; }'
      wormhole update n --timeout 100 -- echo 7; wormhole read n
      : >"$T/out"; wait $pid; wormhole read n
      """)
    #expect(outcome.output == "7\n2\n", "\(outcome)")
  }

  @Test(
    "Without one, its lease has no term",
    .enabled(if: TestEngine.current == .directory, "on etcd no lease is held meanwhile"))
  func updateWithoutTerm() throws {
    let outcome = try Session().shell(
      """
      wormhole update n -- sh -c 'ls "$C/values/n/lease/held" | grep -c "^x-.*-7fffffffffffffff-"'
      wormhole read n
      """)
    #expect(outcome.output == "1\n", "\(outcome)")
  }

  @Test("What a log's command is run for is in its environment")
  func logVariables() throws {
    let outcome = try Session().shell(
      """
      wormhole log append sales '"M"'
      wormhole log read --follow sales --count 1 -- sh -c 'cat
        echo $WORMHOLE_IDENTIFIER $WORMHOLE_NUMBER $WORMHOLE_REDELIVERY
        expr "$WORMHOLE_TIME" : "2[0-9]*-[01][0-9]-[0-3][0-9]T.*Z$" >/dev/null || echo no time' 2>"$T/said"
      """)
    #expect(outcome.output == "1\n\"M\"\nsales 1 0\n", "\(outcome)")
  }
}
