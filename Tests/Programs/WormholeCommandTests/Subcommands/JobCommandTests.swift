import Testing
import WormholeSystem
import WormholeTestSupport

@testable import WormholeCommand

@Suite("A command as an entry", .blocking) struct JobCommandTests {
  @Test(
    "has the words, the directory and the named variables of its sender, and no input", .bothEngines
  )
  func surroundings() throws {
    let outcome = try Session().shell(
      """
      mkdir -p 'a b'; cd 'a b'
      LIST='one
      two' EMPTY= OTHER=x wormhole queue put jobs --env LIST --env EMPTY -- sh -c '
        printf "<%s>" "$@" "$LIST" "${EMPTY-unset}" "${OTHER-unset}" "$WORMHOLE_ATTEMPT"
        echo; basename "$PWD"; basename "$(pwd)"; cat; echo error >&2
        wormhole queue list jobs | wc -l' sh '' 'b c' 'd
      e' -- --env '$x' >"$T/null"
      cd ..
      wormhole queue take jobs --run --drain; echo $?
      wormhole queue list jobs "$(wormhole queue list jobs --ended | sed -n '2s/ .*//p')" | sed '1,/attempt 1/d'
      """)
    #expect(
      outcome.output == """
        0
        <><b c><d
        e><--><--env><$x><one
        two><><unset><1>
        a b
        a b
        error
        2

        """, "\(outcome)")
  }

  @Test("is shown with its status and output: as it waits, has failed, is retried, and has ended")
  func shown() throws {
    let outcome = try Session().shell(
      """
      id=$(wormhole queue put jobs --env HOME -- sh -c 'echo try $WORMHOLE_ATTEMPT; test -e go')
      show() { wormhole queue list jobs "$@" | sed -E "s,$T,T,; s/20[0-9T:-]+Z/TIME/g"; }
      show "$id" | sed 1d
      wormhole queue take jobs --run --drain --retries 1 --backoff 0 2>said; echo $?
      grep -c 'sh ended with status 1, given the entry .* it is kept' said
      show "$id" | sed '1,/sent/d'; wormhole queue list jobs --ended; echo $?
      new=$(wormhole queue retry jobs --failed); : >go
      wormhole queue take jobs --run --count 1; echo $?
      show "$new" | sed '1,/sent/d'; show --ended | tr -s ' ' | cut -d ' ' -f 4-
      wormhole queue list jobs "$new" --json | grep -o '"attempt":1\\|"exit":0\\|"output":"[^"]*"\\|"status":"[a-z]*"'
      wormhole queue list jobs; echo $?; wormhole queue list jobs none 2>said; echo $?; cat said
      """)
    #expect(
      outcome.output == """
          command    sh -c 'echo try $WORMHOLE_ATTEMPT; test -e go'
          directory  T
          variable   HOME=T
          sent       TIME from wormhole
          status     waiting
        1
        1
          status     failed: sh ended with status 1
          attempt 1  TIME to TIME: sh ended with status 1
        try 1
          attempt 2  TIME to TIME: sh ended with status 1
        try 2
        1
        0
          status     ended with status 0, TIME
          attempt 1  TIME to TIME: ended with status 0
        try 1
        STATUS VALUE
        sh ended with status 1, TIME sh -c 'echo try $WORMHOLE_ATTEMPT; test -e go'
        ended with status 0, TIME sh -c 'echo try $WORMHOLE_ATTEMPT; test -e go'
        "attempt":1
        "exit":0
        "output":"try 1\\n"
        "status":"ended"
        1
        1
        wormhole: cannot show "none": there is no entry with this id

        """, "\(outcome)")
  }

  @Test("leaves the end of its output, and of about a hundred that ended", .bothEngines)
  func bounds() throws {
    let outcome = try Session().shell(
      """
      seq 120 | sed 's,.*,{"command":["true"]\\,"directory":"/"},' | wormhole queue put jobs --lines >"$T/null"
      id=$(wormhole queue put jobs -- sh -c 'printf é%.0s $(seq 50000); echo; echo end')
      wormhole queue take jobs --run --drain; echo $?
      count=$(wormhole queue list jobs --ended --json | wc -l); test $count -ge 100 && test $count -le 107; echo $?
      wormhole queue list jobs "$id" | sed '1,/attempt 1/d' >output
      size=$(wc -c <output); test $size -le 65536 && test $size -ge 65535; echo $?; tail -n 1 output
      tr -d é <output | wc -c
      wormhole log bounds jobs.results --messages 500 >"$T/null"
      wormhole queue put jobs -- true >"$T/null"; wormhole queue take jobs --run --drain
      wormhole log bounds jobs.results
      """)
    #expect(
      outcome.output == "0\n0\n0\nend\n5\n{\"bytes\":33554432,\"messages\":500}\n", "\(outcome)")
  }

  @Test(
    "that cannot be run fails with the reason, is kept, and does not keep others from running",
    arguments: [
      (#"7"#, 65, "it is not a command, as 'queue put -- COMMAND' stores one"),
      (#"{"command":["true"]}"#, 65, "it is not a command, as 'queue put -- COMMAND' stores one"),
      (
        #"{"command":["a\u0000b"],"directory":"/"}"#, 65,
        "it is not a command, as 'queue put -- COMMAND' stores one"
      ),
      (
        #"{"command":["true"],"directory":"/none"}"#, 74,
        "cannot enter the directory /none: No such file or directory"
      ),
      (
        #"{"command":["none"],"directory":"/"}"#, 127,
        "cannot run none: No such file or directory"
      ),
      (#"{"command":["./x"],"directory":"/"}"#, 127, "cannot run ./x: No such file or directory"),
    ])
  func unfit(_ value: String, _ status: Int, _ reason: String) throws {
    let outcome = try Session().shell(
      """
      wormhole queue put jobs '\(value)' >"$T/null"
      wormhole queue put jobs -- sh -c 'echo ran >>"$T/heard"' >"$T/null"
      wormhole queue take jobs --run --drain 2>said; echo $?; cat "$T/heard"
      grep -c 'it is kept' said
      wormhole queue list jobs --json | grep -o '"reason":"[^"]*"'
      wormhole queue list jobs "$(wormhole queue list jobs | sed -n '2s/ .*//p')" | grep -c 'status     failed'
      """)
    #expect(
      outcome.output == "\(status)\nran\n1\n\"reason\":\"\(reason)\"\n1\n", "\(outcome)")
  }

  /// ```
  /// first                  second
  /// its command runs
  /// is killed, and its
  /// command with it
  ///                        runs the command again
  /// ```
  @Test("whose process is killed is run again by the next one, and shows it", .bothEngines)
  func killed() throws {
    let outcome = try Session().shell(
      """
      mkfifo "$T/in"
      id=$(wormhole queue put jobs -- sh -c 'echo $WORMHOLE_ATTEMPT $WORMHOLE_REDELIVERY
        test $WORMHOLE_ATTEMPT != 1 || { echo $$ >"$T/in"; exec sleep 300; }')
      wormhole queue take jobs --run 2>said & first=$!
      read -r job <"$T/in"; wormhole queue list jobs "$id" | grep status
      kill -KILL $first; gone $job
      wormhole queue take jobs --run --count 1 2>said; echo $?
      wormhole queue list jobs "$id" | sed -E "1,/sent/d; s/20[0-9T:-]+Z/TIME/g"
      """)
    #expect(
      outcome.output == """
          status     taken
        0
          status     ended with status 0, TIME
          attempt 1  no result is kept, as when its process was killed
          attempt 2  TIME to TIME: ended with status 0
        2 1

        """, "\(outcome)")
  }

  @Test(
    "A signal reaches it, and it goes back without a result; a limit ends it, and is the reason")
  func ended() throws {
    let outcome = try Session().shell(
      """
      id=$(wormhole queue put jobs -- sh -c 'echo in >"$T/in"; exec sleep 300')
      holds wormhole queue take jobs --run 2>said; kill $pid; wait $pid; echo $?
      wormhole queue list jobs "$id" | sed '1,/sent/d'
      mkfifo "$T/in"; cat "$T/in" >"$T/null" &
      wormhole queue take jobs --run --drain --limit 0.5 2>said; echo $?
      wormhole queue list jobs "$id" | grep -o 'killed by signal 15, because it had run for 0.5 s'
      """)
    #expect(
      outcome.output == """
        0
          status     waiting
        124
        killed by signal 15, because it had run for 0.5 s
        killed by signal 15, because it had run for 0.5 s

        """, "\(outcome)")
  }

  @Test("A daemon that it leaves behind may print for ever, and does not keep it from ending")
  func daemon() throws {
    let outcome = try Session().shell(
      """
      id=$(wormhole queue put jobs -- sh -c 'setsid sh -c "echo \\$\\$ >daemon; exec yes" & until test -s daemon; do :; done')
      wormhole queue take jobs --run --count 1; echo $?; gone "$(cat daemon)"
      wormhole queue list jobs "$id" | grep -o 'status     ended with status 0'
      """)
    #expect(outcome.output == "0\nstatus     ended with status 0\n", "\(outcome)")
  }

  @Test("The rest of an output without an end is read for a moment only")
  func endless() throws {
    let zeros = SharedDescriptor(try FileDescriptor.open("/dev/zero", .readOnly))
    var output = CollectedOutput(zeros, keepingLast: 10)
    try output.readRest()
    #expect(output.bytes == [UInt8](repeating: 0, count: 10))
  }

  @Test("A result that cannot be kept is reported, and the command has run, once")
  func notKept() throws {
    let outcome = try Session().shell(
      """
      wormhole queue put jobs -- sh -c 'echo ran >>"$T/heard"' >"$T/null"
      mkdir -p "$C/logs"; : >"$C/logs/jobs.results"
      wormhole queue take jobs --run --drain 2>said; echo $?; cat "$T/heard"
      grep -c 'the result of the entry .* is not kept: ' said; wormhole queue list jobs; echo $?
      """)
    #expect(outcome.output == "0\nran\n1\n1\n", "\(outcome)")
  }

  @Test("What it has printed does not control the terminal on which it is shown")
  func terminal() throws {
    let outcome = try Session().shell(
      """
      id=$(wormhole queue put jobs -- printf 'a\\tb\\033[31m\\n'); wormhole queue take jobs --run --drain
      wormhole queue list jobs "$id" | tail -n 1 | od -An -c | tr -d ' '
      python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' wormhole queue list jobs "$id" | tail -n 1 | tr -d '\\r'
      """)
    #expect(outcome.output == "a\\tb033[31m\\n\na\tb\\u{1B}[31m\n", "\(outcome)")
  }

  @Test("A sender that waits learns how it has ended")
  func waited() throws {
    let outcome = try Session().shell(
      """
      wormhole queue take jobs --run 2>said & pid=$!
      wormhole queue put jobs --wait processed -- true >"$T/null"; echo $?
      wormhole queue put jobs --wait processed -- false >"$T/null"; echo $?; kill $pid; wait $pid
      """)
    #expect(outcome.output == "0\n1\n", "\(outcome)")
    #expect(outcome.errors.contains("false ended with status 1"), "\(outcome)")
  }

  @Test("A line that means two things, or lacks one, is refused, and stores nothing")
  func refused() throws {
    let outcome = try Session().shell(
      """
      for line in 'put jobs 5 -- true' 'put jobs --lines -- true' 'put jobs --env HOME 5' \
        'put jobs --env NONE -- true' 'put jobs --env HOME=x -- true' 'put jobs make all' 'take jobs --run -- true' \
        'take jobs --run --format raw' 'take jobs --run --ack' 'take jobs --run --follow --drain' \
        'list jobs 5 --ended' 'list --ended'; do
        wormhole queue $line; echo $?
      done
      wormhole queue list; echo $?; wormhole queue put jobs -- -5 >"$T/null"; wormhole queue take jobs
      """)
    #expect(outcome.output == String(repeating: "64\n", count: 12) + "1\n-5\n", "\(outcome)")
    #expect(
      outcome.errors.contains("a command goes after '--': 'wormhole queue put jobs -- make all'"),
      "\(outcome)")
    #expect(outcome.errors.contains("--run and a command exclude each other"), "\(outcome)")
  }
}
