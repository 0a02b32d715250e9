import Testing
import WormholeTestSupport

@Suite("A command that waits", .blocking)
struct IdleTests {
  @Test("wakes no processor as long as nothing happens", .waiting)
  func idle() throws {
    let outcome = try Session().shell(
      #"""
      echo 1 >file
      pids=; mkfifo "$T/ready"
      for words in 'listen a b' 'notify wait n' 'presence wait p' 'log read --follow l' \
        'queue take q --follow' 'watch file'; do
        wormhole $words --ready-fd 3 3>"$T/ready" >"$T/null" 2>&1 & pids="$pids $!"
        read -r line <"$T/ready"
      done
      # Each thread's own waits: what others make it do at a busy time does not count.
      switches() {
        for pid in $pids; do
          cat /proc/$pid/task/*/status | awk '/^voluntary/ { n += $2 } END { printf "%d ", n }'
        done
      }
      # A thread that ends in the first seconds is waited for.
      for try in 1 2 3 4 5; do
        before=$(switches); sleep 12; after=$(switches)
        test "$before" != "$after" || { echo idle; break; }
        echo "$before: $after" >&2
      done
      kill $pids; wait
      """#, within: .seconds(100))
    #expect(outcome.output == "idle\n", "\(outcome)")
  }
}
