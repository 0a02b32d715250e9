import Testing
import WormholeTestSupport

@Suite("wormhole claim", .blocking, .bothEngines)
struct ClaimCommandTests {
  /// What a release leaves was a fault, and the advice was to put the last number aside.
  @Test("leaves nothing that doctor finds fault with when it is released")
  func released() throws {
    let outcome = try Session().shell(
      """
      wormhole claim n --as a >"$T/null"; wormhole doctor >said; echo $?
      wormhole release n --as a; wormhole doctor >>said; echo $?
      wormhole status --json >>said; grep -c 'no claim' said
      """)
    #expect(outcome.output == "0\n0\n0\n", "\(outcome)")
  }

  @Test("prints the same number for one holder, and says who else has the name")
  func words() throws {
    let outcome = try Session().shell(
      """
      one=$(wormhole claim n --as a --for 1m); two=$(wormhole claim n --as a)
      test "$one" = "$two" && echo same
      wormhole claim n --as b 2>"$T/said"; echo $?
      grep -c '^wormhole: cannot get the claim "n": "a" has had it since 20.*Z, until 20.*Z$' "$T/said"
      wormhole claim | sed 's/20[-0-9T:]*Z/TIME/g'
      wormhole status | grep -A1 CLAIM | tail -1 | cut -d' ' -f1
      wormhole claim --json | sed 's/[0-9T:-]*Z/TIME/g; s/"fence":[0-9]*/"fence":N/'
      WORMHOLE_FENCE=$one wormhole send v 1 --while n; echo $?
      wormhole release n --as b 2>"$T/said"; echo $?; cat "$T/said"
      wormhole release n --as a; echo $?
      WORMHOLE_FENCE=$one wormhole send v 2 --while n 2>"$T/said"; echo $?
      wormhole claim; echo $?
      wormhole read v
      sh -c 'wormhole claim n --as a --pid $$ >"$T/null"'
      wormhole claim n --as b >"$T/null"; echo $?
      wormhole claim n --pid 1 2>"$T/said"; echo $?
      """, within: .seconds(60))
    #expect(
      outcome.output == """
        same
        1
        1
        CLAIM  HOLDER  SINCE                 UNTIL
        n      a       TIME  TIME
        n
        {"fence":N,"name":"n","since":"TIME","until":"TIME","who":"a"}
        0
        1
        wormhole: cannot release the claim "n": "a" has it, not "b"
        0
        1
        1
        1
        0
        1

        """, "\(outcome)")
  }

  private static let page = "Sources/Core/Wormhole/Wormhole.docc/SeveralTools.md"

  /// Workers run the page's script, each command of it in a new process, while they are stopped, killed and
  /// replaced at random. A task that two sessions do at once is written to `twice`, unless the other has died.
  @Test("gives each task to one of many workers that are killed and stopped, by the page's script")
  func workers() throws {
    let script = try #require(
      Readme.blocks(ofPage: Self.page).first { $0.language == "sh" }?.text)
    let (workers, tasks, faults) = TriedSteps.isThorough ? (20, 500, 200) : (6, 60, 24)
    let outcome = try Session().shell(
      """
      cat >worker.sh <<'END'
      \(script)
      END
      cat >do <<'END'
      #!/bin/sh
      name=${1##*/}
      if ! mkdir "doing/$name" 2>/dev/null; then
        other=$(cat "doing/$name/session" 2>/dev/null)
        if [ -n "$other" ] && grep -qs 'State:.[^ZX]' "/proc/$other/status"; then
          echo "$name $PPID $other" >>twice
        fi
        mkdir -p "doing/$name"
      fi
      echo "$PPID" >"doing/$name/session"
      sleep 0.05
      echo "$name" >>finished
      rm -r "doing/$name"
      END
      chmod +x do; mkdir tasks done doing; : >twice; : >outlived
      for number in $(seq \(tasks)); do : >"tasks/t$number"; done
      for worker in $(seq \(workers)); do setsid sh worker.sh "w$worker.0" & eval "p$worker=$!"; done
      random() { echo $(($(od -An -N2 -tu2 /dev/urandom) % $1)); }
      for fault in $(seq \(faults)); do
        worker=$(($(random \(workers)) + 1)); eval "pid=\\$p$worker"
        sleep 0.0$(random 9)
        if [ $((fault % 2)) = 0 ]; then
          kill -STOP -- "-$pid" 2>/dev/null; sleep 0.1; kill -CONT -- "-$pid" 2>/dev/null
        else
          kill -KILL -- "-$pid" 2>/dev/null; wait "$pid"
          wormhole claim --json | grep "\\"process\\":$pid," >>outlived
          setsid sh worker.sh "w$worker.$fault" & eval "p$worker=$!"
        fi
      done
      wait
      # Those that were killed have left tasks.
      sh worker.sh last
      ls tasks done | grep -c .; cat twice outlived
      sort -u finished | grep -c .
      wormhole claim; echo $?
      """, within: .seconds(TriedSteps.isThorough ? 600 : 100))
    // The names, and two headings of ls.
    #expect(outcome.output == "\(tasks + 2)\n\(tasks)\n1\n", "\(outcome)")
  }
}
