import Testing
import Wormhole
import WormholeEtcd
import WormholeTestSupport

@Suite("wormhole backup and restore", .blocking)
struct BackupCommandTests {
  @Test(
    "keep a container in a file that tar(1) lists, and make it again",
    arguments: TestEngine.available)
  func andBack(engine: TestEngine) throws {
    let session = try Session()
    let other = try engine.location(of: session.container + "-other")?.description ?? "$T/other"
    let outcome = try session.shell(
      """
      export XDG_STATE_HOME="$T/state"
      wormhole send greeting '"hello"'; wormhole defaults write key 5; wormhole peer send till 7 >said
      wormhole peer launch w -- true
      start listen greeting >heard
      echo old >file
      wormhole backup file 2>said; sed 's/[0-9][0-9]*/N/g' said
      tar -tf file | grep -c value.plist; tar -xf file container/values && ls container/values; rm -r container/values
      kill $pid
      export WORMHOLE_CONTAINER="\(other)"
      wormhole restore file --json | sed 's/[0-9][0-9]*/N/g'
      wormhole read greeting; wormhole defaults read key; wormhole peer receive till --count 1 2>said
      wormhole peer launch w 2>said; echo $?
      wormhole restore file; echo $?
      wormhole backup - 2>said | gzip -d | gzip | wormhole --container "$T/back" restore - 2>said; echo $?
      wormhole --container "$T/back" read greeting
      find "$T" -name '*.wormhole-*' -o -name '*.partial-*' -o -name '*.copying-*'
      """)
    #expect(
      outcome.output == """
        wormhole: backed up N parts, N bytes
        2
        greeting
        {"bytes":N,"files":N,"parts":N}
        "hello"
        5
        7
        1
        65
        0
        "hello"

        """, "\(outcome.errors)")
    #expect(outcome.errors.contains("already"), "\(outcome.errors)")
  }

  @Test("can be ended while a pipe keeps them waiting")
  func pipes() throws {
    let outcome = try Session().shell(
      """
      wormhole send a 1; mkfifo pipe
      for words in 'backup pipe' "restore pipe --container $T/new"; do
        wormhole $words 2>said & pid=$!
        while kill -TERM $pid 2>"$T/null"; do sleep 0.05; done &
        wait $pid; echo $?; wait
      done
      ls -A "$T" | grep -e wormhole- -e new
      """, within: .seconds(60))
    #expect(outcome.output == "143\n143\n", "\(outcome)")
  }

  @Test("end when they are asked to, and leave nothing")
  func interrupted() throws {
    let outcome = try Session().shell(
      """
      wormhole send a 1; wormhole backup file 2>said; mkfifo pipe
      wormhole --container "$T/new" restore pipe 2>said & pid=$!
      exec 3>pipe; head -c 100 file >&3
      until test -e "$T"/.wormhole-restore-*; do sleep 0.01; done
      kill -TERM $pid; wait $pid; echo $?
      ls -A "$T" | grep -e wormhole- -e new
      """)
    #expect(outcome.output == "143\n", "\(outcome.errors)")
  }

  @Test("end at the deadline and when asked to, also in the middle of a huge file in a log")
  func huge() throws {
    let outcome = try Session().shell(
      """
      wormhole log append l 1 >said; truncate -s 1T "$(find "$C/logs" -type f | head -1)" "$C/beside"
      { wormhole backup - --timeout 1 2>said; echo $? >status; } | cat >/dev/null; cat status said
      mkdir -m 700 "$T/other"; wormhole --container "$T/other" send a 1; truncate -s 1G "$T/other/beside"
      wormhole --container "$T/other" backup file 2>said & pid=$!
      until test -s "$(echo file.partial-*)" || ! kill -0 $pid; do sleep 0.01; done
      kill -TERM $pid; wait $pid; echo $?
      find "$T" -name '*.wormhole-*' -o -name '*.partial-*'
      """)
    #expect(outcome.output.hasPrefix("124\n") && outcome.output.hasSuffix("\n143\n"), "\(outcome)")
    #expect(outcome.output.contains("the deadline passed"), "\(outcome)")
  }

  /// Programs of these names in `$T/bin`, which say their numbers and then sleep.
  private static let sleepers = #"""
    wormhole send a 1; wormhole backup kept 2>said; cp kept file; mkdir bin
    for name in tar gzip; do
      printf '#!/bin/sh\necho $$ >>"$T/ids"\nexec sleep 1000\n' >bin/$name; chmod +x bin/$name
    done
    both="env PATH=$T/bin:$PATH wormhole"
    begun() { pause=0.01; until test "$(grep -c . ids 2>null)" = 2; do pause; done; }
    all_gone() { for id in $(cat ids); do gone $id; done; rm ids; }

    """#

  @Test(
    "kill tar(1) and gzip(1) at the deadline and when they are asked to end, and when they are killed"
  )
  func killed() throws {
    let outcome = try Session().shell(
      Self.sleepers + """
        $both backup file --timeout 1 2>late; echo $?; all_gone; cat late
        for signal in TERM HUP; do
          for words in 'backup file' "restore kept --container $T/new"; do
            $both $words 2>said & pid=$!; begun; kill -$signal $pid; wait $pid; echo $?; all_gone
          done
        done
        ls -A | grep -e wormhole- -e partial- -e new; cmp kept file
        $both backup file 2>said & pid=$!; begun; kill -KILL $pid; wait $pid; echo $?; all_gone
        ls -A | grep -c -e wormhole-backup- -e partial-; cmp kept file && wormhole backup file
        """, within: .seconds(60))
    #expect(
      outcome.output.hasPrefix("124\n") && outcome.output.contains("the deadline passed"),
      "\(outcome)")
    #expect(outcome.output.hasSuffix("\n143\n143\n129\n129\n137\n2\n"), "\(outcome)")
  }

  @Test("say which program is missing, and what to do; what a failing one has written is not whole")
  func programs() throws {
    let outcome = try Session().shell(
      """
      wormhole send a 1; wormhole backup file 2>said; mkdir bin one
      ln -s "$(command -v wormhole)" one/wormhole
      for name in tar gzip; do
        ln -s "$(command -v $name)" one/$name
        PATH=$T/one wormhole --container "$T/new" restore file; echo $?
        PATH=$T/one wormhole backup file; echo $?
      done
      rm -r new; cp file kept
      printf '#!/bin/sh\n"%s" "$@" | head -c 10240; exec >&-; sleep 0.5; exit 2\n' "$(command -v tar)" >bin/tar; chmod +x bin/tar
      PATH=$T/bin:$PATH wormhole backup file 2>said; echo $?; cmp file kept
      PATH=$T/bin:$PATH wormhole backup - 2>said >part; gzip -t <part 2>said || echo not whole
      for number in $(seq 30); do head -c 8000 /dev/urandom >"$C/$number"; done
      (ulimit -f 64; wormhole backup file; echo $?)
      head -c 1000000 /dev/zero >"$C/big"; wormhole backup zeros 2>said
      (ulimit -f 64; wormhole --container "$T/new" restore zeros; echo $?)
      cmp file kept; ls -A | grep -e wormhole- -e partial- -e new
      """)
    #expect(
      outcome.output == "74\n74\n0\n0\n74\nnot whole\n74\n74\n", "\(outcome)")
    #expect(outcome.errors.contains("gzip is not installed; install GNU tar and gzip"))
  }

  @Test("change nothing when they fail")
  func failures() throws {
    let outcome = try Session().shell(
      """
      wormhole backup file; echo $?
      wormhole send a 1; echo old >file
      wormhole backup "$T/absent/file"; echo $?
      wormhole backup - >/dev/full; echo $?
      wormhole backup file 2>said; head -c 300 file >part
      wormhole --container "$T/new" restore part; echo $?
      wormhole --container "$T/new" restore "$T/absent"; echo $?
      echo garbage | wormhole --container "$T/new" restore -; echo $?
      wormhole restore file; echo $?
      unset WORMHOLE_CONTAINER; wormhole --group group.example.new restore file 2>said; wormhole ls --groups
      wormhole --group group.example.new read a
      ls -A "$T" | grep -v out- | grep -v err-
      """)
    #expect(
      outcome.output == """
        1
        74
        74
        65
        74
        65
        65
        group.example.new
        1
        .local
        container
        file
        part
        said

        """, "\(outcome.errors)")
    #expect(outcome.errors.contains("the backup is damaged: gzip: stdin: unexpected end of file"))
  }

  @Test("A device, a pipe and the target of a link are written, not replaced")
  func specialFiles() throws {
    let outcome = try Session().shell(
      """
      wormhole send a 1
      mkfifo pipe; cat pipe >copy & reader=$!
      wormhole backup pipe 2>said; wait $reader; test -p pipe && wormhole --container "$T/new" restore copy
      : >target; ln -s target link; wormhole backup link 2>said
      test -L link && wormhole --container "$T/other" restore target
      wormhole backup /dev/stdout 2>said | tail -c +1 >piped; wormhole --container "$T/third" restore piped
      for place in new other third; do wormhole --container "$T/$place" read a; done
      """)
    #expect(outcome.output == "1\n1\n1\n", "\(outcome)")
  }
}
