import Testing
import WormholeTestSupport

@Suite("A command that is stopped before its work begins", .blocking)
struct StoppedStartTests {
  private static let commands = [
    "lock f -- sh work", "lock f -- sh work {}", "lock -s f -- sh work", "lock --name n -- sh work",
    "queue take q -- sh work", "log read l --subscriber me", "update x -- sh work",
  ]

  private static let isPossible = Session.succeeds("strace -f -qq -o null true", missing: "strace")

  /// ```
  /// late    stopped before a call; continued: does its work
  /// other   takes over what the late one has, and does its own work
  /// ```
  @Test(
    "ends without an error when others took over and it is continued",
    .enabled(if: isPossible, "needs strace"), arguments: commands)
  func stopped(_ command: String) throws {
    let outcome = try Session().shell(
      #"""
      echo 'echo done >>"$T/done"; test -z "$1" || echo 1 >"$1"; echo 1' >work
      begin() {
        mkdir -m 700 $1; export WORMHOLE_CONTAINER="$T/$1"; echo 0 >f; rm -rf trace done .coordination-f
        wormhole queue put q 1; wormhole queue put q 2; wormhole log append l 1; wormhole log append l 2
      } >"$T/null"
      calls=mkdirat,renameat,renameat2,unlinkat,flock,linkat
      begin first; strace -f -qq -o trace -e trace=execve,$calls wormhole \#(command) >"$T/null"
      # Each call before the work, with its number in its thread.
      awk '/execve/ { if (NR > 1) exit; next } { sub(/[(].*/, "", $2); print $2, ++count[$1, $2] }' trace |
        sort -u >points
      test -s points || cat trace
      # Of fewer calls than a sample skips at least one is tried.
      step=0; stride=\#(TriedSteps.stride); count=$(wc -l <points); test $stride -le $count || stride=$count
      while read -r call number; do
        step=$((step + 1))
        test $((step % stride)) = $((\#(TriedSteps.first) % stride)) || continue
        begin step$step
        strace -f -qq -o trace -e trace=$calls -e inject=$call:signal=SIGSTOP:when=$number \
          wormhole \#(command) >late 2>said & late=$!
        pause=0.01
        until grep -qs 'stopped by SIGSTOP' trace || ! kill -0 $late 2>"$T/null"; do pause; done
        timeout 20 wormhole \#(command) >other 2>>said; other=$?
        while kill -0 $late 2>"$T/null"; do
          kill -CONT $(awk '/stopped by/ { print $1 }' trace | sort -u) 2>"$T/null"; sleep 0.02
        done &
        wait $late; ended=$?; wait
        # What has printed something has begun, and may say that it has lost its place.
        case "\#(command)" in log*) test ! -s late || : >said; test $ended != 1 || ended=0;; esac
        echo "$call $number: $other $ended: $(cat said)"
      done <points
      """#, within: .seconds(300))
    let ended = outcome.output.split(separator: "\n")
    #expect(!ended.isEmpty, "\(outcome)")
    for line in ended {
      // The other one finds nothing to read if the late one was not stopped.
      let isFirst = command.hasPrefix("log") && line.hasSuffix(": 1 0: ")
      #expect(line.hasSuffix(": 0 0: ") || isFirst, "\(command): \(line)")
    }
    #expect(outcome.errors.isEmpty, "\(outcome)")
  }

  /// ```
  /// late    stopped when it has taken the first entry
  /// other   takes that one and the second
  /// late    continued: takes the third
  /// ```
  @Test(
    "says nothing of an entry that it lost before it was delivered",
    .enabled(if: isPossible, "needs strace"))
  func lostEntry() throws {
    let outcome = try Session().shell(
      #"""
      for n in 1 2 3; do wormhole queue put q $n; done >"$T/null"
      strace -f -qq -o trace -e trace=renameat wormhole queue take q >first
      number=$(awk '{ count[$1]++ } /"pending/ { print count[$1]; exit }' trace)
      rm trace
      strace -f -qq -o trace -e trace=renameat -e inject=renameat:signal=SIGSTOP:when=$number \
        wormhole queue take q >late 2>said & late=$!
      pause=0.01
      until grep -qs 'stopped by SIGSTOP' trace; do pause; done
      grep -c '"pending.* = 0' trace
      timeout 20 wormhole queue take q --count 2 >other 2>"$T/null"; sort other
      wormhole queue put q 4 >"$T/null"
      kill -CONT $(awk '/stopped by/ { print $1 }' trace | sort -u)
      wait $late; echo "$? $(cat late first said)"
      """#, within: .seconds(60))
    #expect(outcome.output == "1\n2\n3\n0 4\n1\n", "\(outcome)")
    #expect(outcome.errors.isEmpty, "\(outcome)")
  }
}
