import Testing
import WormholeTestSupport

@Suite("wormhole queue", .blocking) struct QueueCommandTests {
  @Test("Entries are taken one at a time, in the order of sending", .bothEngines)
  func order() throws {
    let outcome = try Session().shell(
      """
      for value in 1 2 text; do wormhole queue put jobs $value; done >"$T/ids" 2>"$T/said"
      wormhole queue put jobs '{"a":[1]}' >>"$T/ids"
      wormhole queue put jobs 4 --delay 3600 >>"$T/ids"
      sort -u "$T/ids" | wc -l
      wormhole queue list jobs --next --count 9 --json | jq -c .value
      wormhole queue take jobs; wormhole queue take jobs --count 2
      wormhole queue take jobs --format raw
      wormhole queue take jobs --timeout 0; echo $?
      wormhole queue list jobs --next; echo $?
      """)
    #expect(
      outcome.output == """
        5
        1
        2
        "text"
        {"a":[1]}
        1
        2
        "text"
        {"a":[1]}
        1
        1

        """, "\(outcome)")
  }

  private static let mayTrace = Session.succeeds(
    #"strace -f -o "$T/calls" true"#, missing: "strace")

  @Test("This and all other commands say that there is no container, and none ends by a signal")
  func missing() throws {
    let outcome = try Session().shell(
      """
      export WORMHOLE_CONTAINER="$T/absent"; echo x >"$T/file"
      for line in 'send a 1' 'update a --add 1' 'update a -- echo 1' 'queue put q 1' 'queue take q' 'log append l 1' \
        'peer send w 1' 'peer receive w --count 1' "peer send w --file $T/file" "peer receive w --files $T" \
        'notify post n' 'defaults write k 1' 'presence enter p -- true'
      do
        wormhole $line 2>"$T/said" </dev/null; echo "$? $(grep -c 'there is no such directory' "$T/said")"
      done | sort | uniq -c | tr -s ' '
      """)
    #expect(outcome.output == " 13 74 1\n", "\(outcome)")
  }

  // It waits for nothing here, so it watches nothing; it once made 960 calls, and began ten threads.
  @Test(
    "Taking an entry that waits makes few system calls, and begins few threads",
    .enabled(if: mayTrace))
  func calls() throws {
    let outcome = try Session().shell(
      """
      for value in 1 2; do wormhole queue put jobs $value >"$T/said"; done
      strace -f -qq -o "$T/calls" wormhole --version >"$T/said"
      start=$(grep -vc ' resumed>' "$T/calls")
      for round in new known; do
        strace -f -qq -o "$T/calls" wormhole queue take jobs
        echo $(($(grep -vc ' resumed>' "$T/calls") - start)) $(grep -c 'clone3*(' "$T/calls")
      done
      """)
    let numbers = outcome.output.split(separator: "\n").map { line in
      line.split(separator: " ").compactMap { Int($0) }
    }
    #expect(numbers.map(\.count) == [1, 2, 1, 2], "\(outcome)")
    for round in numbers where round.count == 2 {
      #expect(round[0] < 320 && round[1] <= 4, "\(outcome)")
    }
  }

  @Test("The end of a command settles the entry", .bothEngines)
  func settling() throws {
    let outcome = try Session().shell(
      """
      id=$(wormhole queue put jobs 7 --from till)
      test "$(wormhole queue list jobs --json | grep -c '"status":"waiting"')" = 1
      # Inside, it is taken; then it is released.
      wormhole queue take jobs -- sh -c '
        wormhole queue list jobs --json | grep -o "\\"status\\":.*"; exit 3' 2>"$T/said"; echo $?
      wormhole queue take jobs -- sh -c '
        test "$WORMHOLE_ENTRY" = "$0" || exit 9
        echo "$(cat) $WORMHOLE_IDENTIFIER $WORMHOLE_SENDER $WORMHOLE_REDELIVERY $WORMHOLE_ATTEMPT"
        expr "$WORMHOLE_TIME" : "2[0-9]*-[01][0-9]-[0-3][0-9]T.*Z$" >/dev/null' "$id"
      echo $?
      # No other status deletes an entry; one that the user names fails it at once, and keeps it.
      wormhole queue put jobs 8 >"$T/null"; wormhole queue put jobs 9 >"$T/null"
      wormhole queue take jobs -- sh -c 'exit 65' 2>"$T/said"; echo $?
      wormhole queue take jobs --count 2 --retries 3 --fail-status 65 -- \
        sh -c 'test $(cat) = 9 || exit 65' 2>"$T/said"; echo $?
      wormhole queue list jobs --json | grep -o '"reason":.*,"send'
      wormhole queue take jobs --timeout 0 2>"$T/said"; echo $?; cat "$T/said"
      """)
    #expect(
      outcome.output == """
        "status":"taken","value":7}
        3
        7 jobs till 1 2
        0
        65
        65
        "reason":"sh ended with status 65","send
        1
        wormhole: the queue "jobs" is empty

        """, "\(outcome)")
  }

  /// ```
  /// first                       second
  /// its command has 1; stopped
  ///                             gets 1, marked, and ends
  /// continued: 1 was lost
  /// gets 2
  /// ```
  @Test(
    "A stopped worker loses its entry to another, and goes on when it is continued",
    .waiting, .bothEngines)
  func stopped() throws {
    let outcome = try Session().shell(
      """
      wormhole queue put jobs 1 >"$T/null"
      mkfifo "$T/in"
      wormhole queue take jobs --follow -- sh -c 'read -r n; echo $n >>"$T/heard"
        test $n != 1 || { echo $$ >main; echo >"$T/in"; until test -e go; do sleep 0.02; done; }' 2>"$T/said" & first=$!
      read -r x <"$T/in"; kill -STOP $first $(cat main); stopped $(cat main)
      wormhole queue take jobs --details 2>/dev/null | grep -o '"redelivery":[a-z]*'
      : >go; kill -CONT $first $(cat main) 2>"$T/null"; says "$T/said" 'was lost to'
      wormhole queue put jobs 2 >"$T/null"; hears 2
      kill -TERM $first; wait $first; echo $?; cat "$T/heard"
      """)
    #expect(outcome.output == "\"redelivery\":true\n0\n1\n2\n", "\(outcome)")
  }

  @Test("A job whose worker is restarted a hundred times in order has been attempted once")
  func restarts() throws {
    let outcome = try Session().shell(
      """
      wormhole queue put jobs 1 >"$T/null"; mkfifo "$T/in"
      n=0; while [ $((n += 1)) -le 100 ]; do
        wormhole queue take jobs --follow --retries 2 -- sh -c '
          test $WORMHOLE_ATTEMPT = 1 || echo attempt >>"$T/heard"; echo >"$T/in"; exec sleep 60' \
          2>>"$T/said" & worker=$!
        read -r x <"$T/in"; kill -TERM $worker; wait $worker || echo $?
      done
      wormhole queue take jobs --retries 2 --details -- grep -o '"attempt":.,\\|"redelivery":[a-z]*'
      wormhole queue list jobs; cat "$T/heard" 2>/dev/null; grep -c 'goes back' "$T/said"
      """)
    #expect(outcome.output == "\"attempt\":1,\n\"redelivery\":true\n100\n", "\(outcome)")
  }

  /// A worker in Python, as the page "As a service" has it: 1 is acknowledged, 2 is tried twice, 3 fails, and
  /// 4 has no answer when the worker ends.
  @Test(
    "A program answers each entry on standard input, and what has no answer goes back", .bothEngines
  )
  func answers() throws {
    let outcome = try Session().shell(
      #"""
      seq 4 | wormhole queue put jobs --lines >"$T/null"
      cat >"$T/worker.py" <<'END'
      import json, subprocess, sys
      take = subprocess.Popen(["wormhole", "queue", "take", "jobs", "--follow", "--ack", "--backoff", "0"],
          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
      for line in take.stdout:
          job = json.loads(line)
          number, id = job["value"], job["id"]
          print(number, job["attempt"], flush=True)
          if number == 4: break
          answer = id
          if number == 2 and job["attempt"] == 1: answer = id + " retry no paper left"
          if number == 3: answer = id + " fail torn"
          if number == 1: answer = "nonsense\n" + id
          print(answer, file=take.stdin, flush=True)
      take.stdin.close()
      print(take.wait())
      END
      python3 "$T/worker.py" 2>"$T/said"; cat "$T/said" | grep -v listening
      wormhole queue list jobs --json | grep -o '"reason":"[a-z ]*"\|"status":"[a-z]*"'
      wormhole queue take jobs --details -- grep -o '"attempt":.'
      """#)
    #expect(
      outcome.output.contains(
        "\n0\nwormhole: \"nonsense\" is not an entry that waits for an answer\n"
          + "\"status\":\"waiting\"\n\"reason\":\"torn\"\n\"status\":\"failed\"\n\"attempt\":1\n"),
      "\(outcome)")
    #expect(
      outcome.output.hasPrefix("1 1\n2 1\n2 2\n3 1\n4 1\n"), "\(outcome)")
  }

  @Test("Draining takes what is there, retries included, with several workers", .bothEngines)
  func drain() throws {
    let outcome = try Session().shell(
      """
      wormhole queue take never --drain -- cat; echo $?
      seq 20 | wormhole queue put jobs --lines >"$T/null"
      wormhole queue put jobs later --delay 3600 >"$T/null"
      n=0; while [ $((n += 1)) -le 4 ]; do
        wormhole queue take jobs --drain -j 4 --retries 1 --backoff .01 -- \
          sh -c 'read -r n; test $n != 7 -o $WORMHOLE_ATTEMPT = 2 && echo $n >>"$T/heard"' 2>"$T/said"
        echo $?; grep -v 'one more retry\\|^listening' "$T/said"
        seq 21 24 | wormhole queue put jobs --lines >"$T/null"
      done
      sort -n "$T/heard" | uniq | wc -l; wormhole queue list jobs | wc -l
      """)
    #expect(outcome.output == "0\n0\n0\n0\n0\n24\n6\n", "\(outcome)")
  }

  @Test("An idle worker that was replaced while it was stopped goes on, and so after a removal")
  func removed() throws {
    let outcome = try Session().shell(
      """
      start queue take jobs --follow >"$T/heard"
      kill -STOP $pid; stopped $pid
      wormhole queue put jobs 1 >"$T/null"; wormhole queue take jobs
      kill -CONT $pid; wormhole queue put jobs 2 >"$T/null"; hears 2
      until rm -rf "$C"; do :; done; mkdir -m 700 "$C"
      wormhole queue put jobs 3 >"$T/null"; hears 3
      kill -TERM $pid; finish; echo $?
      """)
    #expect(outcome.output == "1\n0\n", "\(outcome)")
  }

  @Test("A failed entry is kept, listed, sent again and forgotten", .bothEngines)
  func failures() throws {
    let outcome = try Session().shell(
      """
      failed() { wormhole queue list jobs --json | sed -n 's/.*"id":"\\([^"]*\\)","reason".*/\\1/p'; }
      wormhole queue put jobs 1 >"$T/null"
      wormhole queue take jobs --retries 1 --backoff 0 -- sh -c 'echo $WORMHOLE_ATTEMPT; exit 5' \
        2>"$T/said"; echo $?
      grep -cE "queue retry jobs [a-z2-9]{6}'" "$T/said"
      test "$(wormhole queue retry jobs "$(failed)")" = "$(wormhole queue list jobs --json |
        sed 's/.*"id":"\\([^"]*\\)".*/\\1/')" && echo again
      wormhole queue take jobs --retries 0 -- false 2>"$T/said"
      wormhole queue remove jobs "$(failed)"; echo $?
      wormhole queue remove jobs nonsense 2>"$T/said"; echo $?
      wormhole queue list jobs
      for verb in retry remove; do wormhole queue $verb jobs --failed; echo $?; done
      """)
    #expect(outcome.output == "1\n2\n5\n1\nagain\n0\n1\n0\n0\n", "\(outcome)")
  }

  @Test("An older entry with the key that cannot be withdrawn is reported; the new one is stored")
  func notSuperseded() throws {
    let outcome = try Session().shell(
      """
      wormhole queue put jobs 1 --key k >"$T/null"
      rm -rf "$C/queues/jobs/lease"; : >"$C/queues/jobs/lease"
      wormhole queue put jobs 2 --key k >"$T/null" 2>"$T/said"; echo $?
      grep -c 'cannot withdraw older entries with the key "k" from "jobs".*delivered, too' "$T/said"
      rm "$C/queues/jobs/lease"; wormhole queue list jobs --next --count 2 --json | jq -c .value
      """)
    #expect(outcome.output == "0\n1\n1\n2\n", "\(outcome)")
  }

  @Test("A short id of the list names the same entry for retry and remove", .bothEngines)
  func shortIDs() throws {
    let outcome = try Session().shell(
      """
      short() { wormhole queue list jobs | sed -n '2s/ .*//p'; }
      wormhole queue put jobs 1 >"$T/null"
      wormhole queue take jobs --retries 0 -- false 2>"$T/said"
      wormhole queue retry jobs "$(short)" >"$T/null"; wormhole queue list jobs --json | grep -c waiting
      wormhole queue remove jobs "$(short)"; wormhole queue list jobs; echo $?
      """)
    #expect(outcome.output == "1\n1\n", "\(outcome)")
  }

  @Test("Of a time that the local clock shows twice, the next one is meant")
  func repeatedHour() throws {
    // The clock is put back by an hour 40 minutes from now.
    let outcome = try Session().shell(
      """
      now=$(date +%s); clock=$((now + 3600)); change=$((clock % 86400 / 60 + 40))
      day=$(($(date -ud @$clock +%j | sed 's/^0*//') - 1))
      TZ="XST0XDT-1,0/0,$day/$((change / 60)):$((change % 60))"; export TZ
      wormhole queue put jobs x --at "$(date -d @$((now + 600)) +%H:%M)" >"$T/null"
      due=$(wormhole queue list jobs --json | sed 's/.*"due":"\\([^"]*\\)".*/\\1/')
      echo "$(((($(date -d "$due" +%s) - now) / 60) / 11))"
      """)
    #expect(outcome.output == "0\n", "\(outcome)")
  }

  @Test("Entries that have expired are shown as such, and not as the next")
  func peekExpired() throws {
    let outcome = try Session().shell(
      """
      wormhole queue put jobs '"dead"' --expires 0.01 >"$T/null"
      while wormhole queue list jobs --next >"$T/null"; do :; done
      wormhole queue put jobs '"live"' >"$T/null"; wormhole queue list jobs --next --json | jq -c .value
      wormhole queue list jobs --json | sed 's/.*"status":"\\([a-z]*\\)".*/\\1/'
      """)
    #expect(outcome.output == "\"live\"\nexpired\nwaiting\n", "\(outcome)")
  }

  @Test("An entry with --at is taken when that time has come, and not before", .bothEngines)
  func at() throws {
    let outcome = try Session().shell(
      """
      wormhole queue put jobs late --at "$(date -ud '+1 hour' +%Y-%m-%dT%H:%M:%SZ)" >"$T/null"
      wormhole queue take jobs --timeout 0; echo $?
      wormhole queue list jobs | grep -c 'waiting, due 20'
      wormhole queue put jobs past --at 2001-01-01T00:00:00Z >"$T/null"
      wormhole queue take jobs --format raw 2>"$T/said"
      wormhole queue put jobs soon --at "$(date -ud '+1 second' +%Y-%m-%dT%H:%M:%SZ)" >"$T/null"
      wormhole queue take jobs --format raw 2>"$T/said"
      wormhole queue put jobs x --at 25:00 2>"$T/said"; echo $?
      wormhole queue put jobs x --at 07:00 --delay 1 2>"$T/said"; echo $?
      wormhole queue put jobs x --at 9999-12-31T23:59:59Z
      """)
    #expect(outcome.output == "1\n1\npast\nsoon\n64\n64\n", "\(outcome)")
    #expect(outcome.errors.contains("it is more than 1000000000 seconds ahead"), "\(outcome)")
  }

  @Test("A command that reaches its --limit has failed, and its entry is delivered again")
  func limit() throws {
    let outcome = try Session().shell(
      """
      wormhole queue put jobs 1 >"$T/null"
      wormhole queue take jobs --limit 100ms -- sleep 60 2>"$T/said"; echo $?
      grep -c 'sleep was killed by signal 15, because it had run for 0.1 s; it is delivered again' "$T/said"
      wormhole queue take jobs --limit 1m -- cat
      wormhole queue take jobs --limit 1m 2>"$T/said"; echo $?
      """)
    #expect(outcome.output == "124\n1\n1\n64\n", "\(outcome)")
  }

  @Test("With -j as many commands run at once, and they end with this process")
  func jobs() throws {
    let outcome = try Session().shell(
      """
      for i in 1 2 3; do wormhole queue put jobs $i >"$T/null"; done
      mkfifo "$T/gate"
      wormhole queue take jobs --follow -j3 -- sh -c 'echo $$ >>"$T/heard"; exec cat "$T/gate"' 2>"$T/said" &
      pid=$!; pause=0.01
      until test "$(wc -l 2>"$T/null" <"$T/heard")" = 3; do pause; done
      wormhole queue list jobs --json | grep -c taken
      kill -KILL $pid; for job in $(cat "$T/heard"); do gone $job; done
      wormhole queue take jobs --follow --timeout 0 -j 2 -- cat 2>"$T/said" | sort; wormhole queue list jobs
      wormhole queue take jobs -j 2 -- cat 2>"$T/said"; echo $?
      """)
    #expect(outcome.output == "3\n1\n2\n3\n64\n", "\(outcome)")
  }

  @Test("With -j 'listening' is printed once, when all wait for an entry")
  func listeningJobs() throws {
    let outcome = try Session().shell(
      """
      wormhole queue put jobs 1 >"$T/null"; mkfifo "$T/gate"
      wormhole queue take jobs --follow -j3 --ready-fd 9 -- sh -c 'echo "${WORMHOLE_COPY-none}" >"$T/copy"; cat "$T/gate"' \
        9>"$T/ready" 2>"$T/said" &
      pid=$!; pause=0.01
      until test -s "$T/copy"; do pause; done; cat "$T/copy"
      echo "before: $(cat "$T/said")"; : >"$T/gate"
      until test -s "$T/ready"; do pause; done; wc -l <"$T/ready"; cat "$T/said"; kill $pid; wait $pid
      """)
    #expect(outcome.output == "none\nbefore: \n1\nlistening\n", "\(outcome)")
  }

  @Test("Waiting entries are cancelled, one or all, and their sender learns it", .bothEngines)
  func cancelling() throws {
    let outcome = try Session().shell(
      """
      id=$(wormhole queue put jobs 1)
      wormhole queue remove jobs "$id"; echo $?
      wormhole queue remove jobs "$id"; echo $?
      wormhole queue remove jobs nonsense 2>"$T/said"; echo $?
      wormhole queue put jobs 2 --wait processed >"$T/null" 2>"$T/why" & waiting=$!
      until wormhole queue list jobs --next >"$T/null"; do sleep 0.01; done
      wormhole queue put jobs 3 >"$T/null"
      wormhole queue remove --all jobs 2>"$T/said"; echo $?
      wormhole queue remove jobs --all --yes
      wait $waiting; echo $?; grep -c cancelled "$T/why"
      wormhole queue remove nowhere --all --yes
      wormhole queue put jobs 4 >"$T/null"; wormhole queue put jobs 5 >"$T/null"
      wormhole queue take jobs -- false 2>"$T/said"
      wormhole queue remove jobs --all --yes; wormhole queue list jobs; echo $?
      """)
    #expect(outcome.output == "0\n0\n1\n64\n2\n1\n1\n0\n2\n1\n", "\(outcome)")
  }

  @Test("A list for people has a row for each queue and each entry")
  func lists() throws {
    let outcome = try Session().shell(
      """
      wormhole queue put jobs '{"film":"M"}' --key k >"$T/null"
      wormhole queue list | cut -c -8
      wormhole queue list jobs | tr -s ' ' | sed -E "s/^[a-z2-9]{6} /ID /; s/[0-9T:-]+Z/TIME/"
      wormhole queue list --json | grep -o '"waiting":1,'
      """)
    #expect(
      outcome.output == """
        QUEUE  W
        jobs   1
        ENTRY FROM SENT STATUS VALUE
        ID wormhole TIME waiting, key "k" {"film":"M"}
        "waiting":1,

        """, "\(outcome)")
  }

  @Test("A limit ends what a command has started, too")
  func limitOfGroup() throws {
    let outcome = try Session().shell(
      """
      wormhole queue put jobs --as string 'sh -c "sleep 300 & echo \\$! >id; wait"; true' >"$T/null"
      wormhole queue take jobs --format raw --limit 0.3 -- sh 2>said; echo $?
      gone "$(cat id)"; echo gone
      echo 'trap "sleep 0.3; echo tidied; exit" TERM; sleep 9 & wait' >job
      wormhole queue put other --as string 'sh job & wait' >"$T/null"
      wormhole queue take other --format raw --limit 0.3 -- sh 2>said; echo $?
      """)
    #expect(outcome.output == "124\ngone\ntidied\n124\n", "\(outcome)")
  }
}
